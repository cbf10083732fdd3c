"""Tests of `static.session`: graphs that are built first."""
