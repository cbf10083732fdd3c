"""Tests of `common.data`."""
