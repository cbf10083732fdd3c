"""Tests of `common.core`: dtypes, errors, modes, names that are absent."""
