"""Tests of `benchmarks`: what is measured, compared and shown."""
