"""Tests of `common.tensor`: making, printing, copying and sharing tensors."""
