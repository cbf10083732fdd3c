"""Tests of `common.autograd`: recorded graphs and backward passes."""
