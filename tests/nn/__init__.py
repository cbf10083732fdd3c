"""Tests of `common.nn`."""
