"""Tests of `static.passes`."""
