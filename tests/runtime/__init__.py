"""Tests of `common.runtime`: native builtins and programs of kernels."""
