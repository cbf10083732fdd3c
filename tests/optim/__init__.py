"""Tests of `common.optim`."""
