"""Tests of `static.graph`."""
