"""Tests of `common.evaluate`: one op on arrays, its specialised ways against the general one."""
