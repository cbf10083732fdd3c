"""Reductions of integers, and of nothing; every op alone: tests/parity."""

from __future__ import annotations

import numpy as np
import pytest

import static
from common.core.op import REGISTRY
from tests.static.compare import assert_compiles


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_reductions_of_integers(dtype):
    x = np.random.default_rng(2).integers(0, 2, (5, 4, 3)).astype(dtype)
    for name in ("sum", "amax", "amin"):
        for dim in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            assert_compiles(lambda x, n=name, d=dim: REGISTRY[n](x, dim=d, keepdim=False), [x])


@pytest.mark.parametrize("repeats", [(0, 0), (0, 1, 0), (0, 0, 0)])
def test_sums_over_several_sizes_of_zero_are_written(repeats):
    """The gradient of what is repeated never lies where NaNs lay before."""
    program = static.function(static.grad(lambda x: (static.tile(x, repeats) ** 2).sum()))
    x = np.ones((2, 4, 2), np.float32)
    for _ in range(20):
        poisoned = [np.full(x.shape, np.nan, np.float32) for _ in range(64)]
        del poisoned
        assert not np.asarray(program(x)).any()
