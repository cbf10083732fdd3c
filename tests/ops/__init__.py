"""Tests of `common.ops`: records, arguments and what indexing means; values and gradients: parity, oracle."""
