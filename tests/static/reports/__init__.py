"""Tests of `static.reports`."""
