"""Tests of `common.parallel`: training by several processes."""
