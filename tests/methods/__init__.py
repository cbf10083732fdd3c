"""Tests of `common.methods`: in-place forms."""
