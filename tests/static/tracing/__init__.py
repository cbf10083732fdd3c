"""Tests of `static.tracing`."""
