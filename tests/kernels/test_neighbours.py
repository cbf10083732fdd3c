"""Integrals by the trapezoidal rule without areas in memory: the bits of the areas, and their sum."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.kernels.arrays.sums import sum_oracle
from tests.bits import assert_all_same_bits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((391, 256), 1),
        ((7, 2500), -1),
        ((5, 2), 1),
        ((3, 1025), 1),
        ((30, 40), 0),
        ((17,), 0),
        ((3, 1), 1),
        ((2, 3, 4), 1),
    ],
)
def test_bits_are_those_of_areas(shape, dim, dtype):
    """The gradient is half a cotangent from each neighbour; +0 where that of an end is -0."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    front = np.moveaxis(x, dim, -1)
    areas = (front[..., 1:] + front[..., :-1]) / dtype(2)
    value = sum_oracle(areas)
    g = rng.standard_normal(value.shape).astype(dtype)
    g.reshape(-1)[:1] = -0.0
    slope = np.zeros_like(front)
    slope[..., 1:] += (g / dtype(2))[..., None]
    slope[..., :-1] += (g / dtype(2))[..., None]
    if front.shape[-1] > 2:
        slope[..., 1:-1] = (g / dtype(2) + g / dtype(2))[..., None]
    expected = [value, np.moveaxis(slope, -1, dim)]
    for tw in (dynamic, static):
        f = tw.function(
            lambda x, g, tw=tw: (
                tw.trapezoid(x, dim=dim), tw.grad(lambda x: (tw.trapezoid(x, dim=dim) * g).sum())(x)
            )
        )  # fmt: skip
        for _ in range(2):
            assert_all_same_bits(f(x, g), expected, f"{shape}, {dim}")
