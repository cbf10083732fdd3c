"""Rows of a few elements are read, and joined, at indices by the loop that computes with them."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from tests.static.compare import assert_compiles
from tests.static.lowering.test_indexed import floats, names

RNG = np.random.default_rng(0)


def forces(x, i, j):
    """Springs between points: lengths are sums over short rows."""
    d = tw.index_select(x, 0, i) - tw.index_select(x, 0, j)
    length = tw.sqrt((d * d).sum(1, keepdim=True) + 1e-3)
    pull = (length - 1.0) * d / length
    return tw.zeros(x.shape, dtype=x.dtype).index_add(0, i, -pull).index_add(0, j, pull)


def laplace(x, i, j):
    """Differences between points, without sums over rows."""
    d = tw.index_select(x, 0, i) - tw.index_select(x, 0, j)
    return tw.index_add(tw.index_add(tw.zeros(x.shape, dtype=x.dtype), 0, i, d), 0, j, -d)


def gated(x, i, j):
    """Rows times a number of each, which lies at an index, too; elementary functions of elements."""
    w = tw.exp(-tw.index_select(x[:, 0], 0, i).abs())
    return tw.index_add(x, 0, j, tw.tanh(tw.index_select(x, 0, i)) * w[:, None])


def gradient(program):
    def computed(x, i, j):
        return tw.grad(lambda x: (program(x, i, j) ** 2).sum())(x)

    return computed


@pytest.mark.parametrize("program", [forces, laplace, gated])
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7, 8])
def test_short_rows_at_indices(program, columns):
    """Whole vectors of rows and what is left of them; later calls with rows of another length take the other form."""
    dtype = np.float32 if columns % 2 else np.float64
    inputs = [
        (floats(20, n).astype(dtype), RNG.integers(0, 20, edges), RNG.integers(0, 20, edges))
        for n, edges in ((columns, 45), (columns, 16), (columns, 3), (columns, 0), (columns + 1, 21))
    ]
    compiled = assert_compiles(program, *inputs)
    assert "take" not in names(compiled)
    assert "add1" not in names(compiled) or program is not gated
    assert_compiles(gradient(program), *inputs)


def test_many_writes_to_one_row_are_made_in_order():
    x, i = floats(2, 3), np.zeros(100, np.int64)
    assert_compiles(lambda x, i: tw.zeros((2, 3)).index_add(0, i, tw.tanh(tw.index_select(x, 0, i))), (x, i))
    i[::2] = -1
    assert_compiles(lambda x, i: x.index_put((i,), x[i] * 0.37, accumulate=True), (x, i))
    assert_compiles(lambda x, i: x.index_copy(0, i.abs(), x[i] * tw.arange(100.0)[:, None]), (x, i))


def test_elements_are_joined_at_indices_by_the_loop_that_computes_them():
    def program(w, i):
        total = tw.zeros((7,)).index_add(0, i, tw.exp(w))
        return total, tw.exp(w) / tw.index_select(total, 0, i)

    compiled = assert_compiles(program, *((floats(n), RNG.integers(0, 7, n)) for n in (100, 17, 40)))
    assert "add1" not in names(compiled)


def test_an_index_is_overwritten_only_after_its_rows_are_read():
    def program(x, i):
        return tw.index_select(x, 0, i * 2) + 1, i * 2

    assert_compiles(program, (floats(40, 4), RNG.integers(0, 20, 33)))


@pytest.mark.parametrize("wrong", [0, 8, 39])
def test_wrong_indices_are_refused_before_anything_is_read(wrong):
    i = RNG.integers(0, 20, 40)
    i[wrong] = 20
    with pytest.raises(IndexRangeError, match="index 20 is out of bounds for dimension 0 with size 20"):
        tw.function(forces)(floats(20, 3), i, i)


def test_large_arrays_are_joined_in_kernels_of_their_own():
    x, i = floats(200_000, 4), RNG.integers(0, 200_000, 30)
    compiled = assert_compiles(lambda x, i: tw.zeros(x.shape).index_add(0, i, tw.index_select(x, 0, i) * 2), (x, i))
    refused = [reason for kernel in compiled.explain().kernels for reason in kernel.refused]
    assert any("several large arrays" in reason for reason in refused)


@pytest.mark.parametrize("count", [1, 2, 16])
def test_few_elements_are_joined_by_a_kernel_of_their_own(count):
    x, w, i = floats(5), floats(count), np.full(count, -2)
    compiled = assert_compiles(lambda x, w, i: x.index_put((i,), w * 2, accumulate=True), (x, w, i))
    assert ("add1" in names(compiled)) == (count < 16)
    one = tw.ones(1)
    assert_compiles(lambda x, i: x.index_put((i[:1],), one * x[0] * 2, accumulate=True), (x, i))
