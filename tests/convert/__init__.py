"""Tests of `common.convert`: Python's `if`, `while` and `for`, rewritten."""
