"""Tests of `common.api`: the public names and what scripts say around a computation."""
