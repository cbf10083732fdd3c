"""Fused, unfused and interpreted runs of one program give the same bits."""

from __future__ import annotations

from static.jit.function import function
from tests.bits import assert_all_same_bits


def assert_compiles(program, *inputs):
    """Compare runs on each set of inputs; returns the fused function."""
    fused, single, oracle = (function(program, **o) for o in ({}, {"fuse": False}, {"interpret": True}))
    for arrays in inputs:
        before = [x.copy() for x in arrays]
        expected = as_tuple(oracle(*arrays))
        assert_all_same_bits(as_tuple(fused(*arrays)), expected, "fused")
        assert_all_same_bits(as_tuple(single(*arrays)), expected, "unfused")
        assert_all_same_bits(arrays, before, "arguments")
    return fused


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def program_of(compiled):
    """The compiled program of a function's newest trace."""
    return compiled.traces[-1].program
