"""Tests of the eager engine: the semantics of PyTorch, and the fast paths."""
