"""Sums over the first and the last dimensions: one kernel, which copies nothing and stores no products."""

import numpy as np
import pytest

import dynamic
import static
from common.kernels.arrays.sums import sum_oracle
from tests.bits import assert_all_same_bits


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "shape", [(4, 3, 5, 7), (2, 9, 1, 33), (70, 2, 40), (1, 3, 4), (3, 1, 4), (2, 0, 5), (0, 3, 2)]
)
def test_channels_are_summed_where_they_lie(shape):
    dims = (0, *range(2, len(shape)))
    x, y = numbers(*shape), numbers(*shape)[::-1].copy()
    functions = [
        lambda tw, x, y: tw.sum(x, dims), lambda tw, x, y: tw.sum(x * x, dims), lambda tw, x, y: tw.sum(x * y, dims),
        lambda tw, x, y: tw.sum(x * y[:1], dims), lambda tw, x, y: x * y + tw.sum(x * y, dims, keepdim=True),
    ]  # fmt: skip
    for i, f in enumerate(functions):
        compiled = static.function(lambda x, y, f=f: f(static, x, y))
        assert_all_same_bits([compiled(x, y)], [f(dynamic, dynamic.tensor(x), dynamic.tensor(y))], f"function {i}")
    rows = np.moveaxis(x, 1, 0).reshape(shape[1], x.size // max(shape[1], 1))
    assert_all_same_bits([static.function(lambda x: static.sum(x, dims))(x)], [sum_oracle(rows)], "rows")


def test_the_products_are_not_stored():
    compiled = static.function(lambda x, y: static.sum(x * y, (0, 2, 3)))
    compiled(numbers(4, 3, 5, 7), numbers(4, 3, 5, 7))
    (kernel,) = compiled.explain().kernels
    assert (kernel.reads, kernel.writes) == (2 * 4 * 3 * 5 * 7 * 4, 3 * 4)


def test_sizes_may_change():
    compiled = static.function(lambda x: static.sum(x * x, (0, 2)))
    for shape in ((4, 3, 5), (6, 2, 9), (1, 4, 70), (5, 1, 6), (3, 3, 1)):
        x = numbers(*shape)
        assert_all_same_bits([compiled(x)], [dynamic.sum(dynamic.tensor(x * x), (0, 2))], str(shape))
