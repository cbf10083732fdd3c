"""Tests of `common.transforms`."""
