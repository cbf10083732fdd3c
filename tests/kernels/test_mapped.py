"""Sums of functions of elements: bits of the kernels against the ops one after the other and the defined sum."""

from __future__ import annotations

import numpy as np
import pytest

from common.compiler.primitives import evaluate
from common.kernels.arrays import mapped_sums, sums
from common.kernels.math import elementary
from tests.helpers.proofs import each
from tests.kernels.run import assert_same_bits, run, special_values

FUNCTIONS = {
    "squares": lambda v, m: v * v,
    "magnitudes": lambda v, m: abs(v),
    "cubes": lambda v, m: abs(v) * abs(v) * abs(v),
    "numbers": lambda v, m: np.where(np.isnan(v), v.dtype.type(0), v),
    "deviations": lambda v, m: (v - m) * (v - m),
    "exponentials": lambda v, m: evaluate(elementary.exp, v - m),
}
SHAPES = [
    (2, 0, 9), (1, 1, 3), (2, 5, 8), (3, 17, 31), (1, 64, 33), (2, 100, 50), (2, 70, 1030), (1, 1000, 20),
    (1, 1024, 16), (1, 1025, 16), (1, 2100, 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("element", FUNCTIONS)
@each("shape", SHAPES)
def test_columns(element, shape, dtype):
    rng = np.random.default_rng(sum(shape))
    batch, rows, columns = shape
    x = special_values(rng, shape, dtype)
    means = rng.normal(size=(batch, 1, columns)).astype(dtype)
    out, size = np.full((batch, columns), 7, dtype), mapped_sums.scratch(element, rows, columns)
    scratch = np.full(size + 1, 7, dtype)
    buffers = [x, *[means] * (element in mapped_sums.OF_TWO), out, scratch]
    assert run(mapped_sums.cols_source(element, dtype, dtype), buffers, [batch, rows, columns]) == 0
    with np.errstate(all="ignore"):
        expected = sums.sum_oracle(np.ascontiguousarray(FUNCTIONS[element](x, means).transpose(0, 2, 1)))
    assert_same_bits(out, expected)
    assert scratch[size] == 7, "scratch overrun"
