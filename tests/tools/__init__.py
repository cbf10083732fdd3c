"""Tests of `common.tools`: pictures, profiles, files."""
