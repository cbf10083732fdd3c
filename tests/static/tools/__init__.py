"""Tests of `static.tools`."""
