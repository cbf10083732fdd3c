"""Reading and adding at indices: against loops in Python, by bits."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from common.core.errors import ArgumentError
from common.kernels.arrays import indexing
from common.kernels.arrays.coordinates import WrongIndex
from common.kernels.arrays.shared_parts import WHOLE
from tests.helpers.proofs import each
from tests.kernels.run import assert_same_bits, run, special_values

MOVED = ["float32", "float64", "int64", "int32", "bool"]
ADDED = ["float32", "float64", "int64", "int32"]
INDEX = ["int64", "int32"]
SHAPES = [
    (1, 5, 1, 9),
    (1, 1, 1, 1),
    (3, 4, 6, 11),
    (7, 100, 1, 3),
    (1, 10, 33, 100),
    (2, 5, 3, 0),
    (0, 5, 3, 2),
    (2, 5, 0, 2),
    (4100, 3, 1, 1),
    (900, 3, 1, 10),
    (2, 3, 1, 4100),
]


def values(rng, shape, dtype):
    return rng.random(shape) < 0.5 if dtype == "bool" else special_values(rng, shape, dtype)


@pytest.mark.parametrize("index_dtype", INDEX)
@pytest.mark.parametrize("dtype", MOVED)
@each("shape", SHAPES)
def test_gather_and_take(dtype, index_dtype, shape):
    outer, extent, inner, count = shape
    rng = np.random.default_rng(sum(shape))
    x = values(rng, (outer, extent, inner), dtype)
    index = rng.integers(0, extent, (outer, count, inner)).astype(index_dtype)
    out = np.empty((outer, count, inner), dtype)
    assert run(indexing.gather_source(dtype, index_dtype), [x, index, out], shape) == 0
    assert_same_bits(out, np.take_along_axis(x, index.astype("int64"), 1))
    rows = rng.integers(0, extent, count).astype(index_dtype)
    assert run(indexing.take_source(dtype, index_dtype), [x, rows, out], (*shape, WHOLE)) == 0
    assert_same_bits(out, x[:, rows])


@pytest.mark.parametrize("index_dtype", INDEX)
@pytest.mark.parametrize("dtype", ADDED)
@each("shape", SHAPES)
def test_additions_happen_in_the_order_of_the_index(dtype, index_dtype, shape):
    outer, extent, inner, count = shape
    rng = np.random.default_rng(sum(shape))
    g = special_values(rng, (outer, count, inner), dtype)
    index = rng.integers(0, extent, (outer, count, inner)).astype(index_dtype)
    expected = np.zeros((outer, extent, inner), dtype)
    with np.errstate(all="ignore"):
        for o, i, c in np.ndindex(*g.shape):
            expected[o, index[o, i, c], c] += g[o, i, c]
    out = np.full((outer, extent, inner), 7, dtype)
    assert run(indexing.scatter_zeros_source(dtype, index_dtype), [g, index, out], shape) == 0
    assert_same_bits(out, expected)
    rows = rng.integers(0, extent, count).astype(index_dtype)
    expected = np.zeros((outer, extent, inner), dtype)
    with np.errstate(all="ignore"):
        for o, i in np.ndindex(outer, count):
            expected[o, rows[i]] += g[o, i]
    assert run(indexing.put_zeros_source(dtype, index_dtype), [g, rows, out], shape) == 0
    assert_same_bits(out, expected)


@pytest.mark.parametrize("index_dtype", INDEX)
@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("shape", [(1, 1), (7, 10), (100, 3), (0, 3)])
def test_one_element_per_row(dtype, index_dtype, shape):
    rng = np.random.default_rng(sum(shape))
    x = values(rng, shape, dtype)
    index = rng.integers(0, shape[1], shape[0]).astype(index_dtype)
    picked, spread, hot = np.empty(shape[0], dtype), np.empty(shape, dtype), np.empty(shape, dtype)
    assert run(indexing.pick_source(dtype, index_dtype), [x, index, picked], shape) == 0
    assert_same_bits(picked, x[np.arange(shape[0]), index])
    assert run(indexing.spread_source(dtype, index_dtype), [picked, index, spread], shape) == 0
    mark = index[:, None] == np.arange(shape[1])
    assert_same_bits(spread, np.where(mark, picked[:, None], np.zeros((), dtype)))
    assert run(indexing.one_hot_source(dtype, index_dtype), [index, hot], shape) == 0
    assert_same_bits(hot, mark.astype(dtype))


@pytest.mark.parametrize("index_dtype", INDEX)
@pytest.mark.parametrize("wrong", [-1, 5, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("place", [0, 8, 39])
def test_wrong_index_is_refused(index_dtype, wrong, place):
    """Before anything is written, or with nothing written outside of the result."""
    index = np.zeros(40, index_dtype)
    index[place] = np.clip(wrong, np.iinfo(index_dtype).min, np.iinfo(index_dtype).max)
    told = f"index {index[place]}" if abs(int(index[place])) < 2**24 else "an index beyond "
    x = np.ones(1000, "float32")
    for source, first, args, written in [
        (indexing.gather_source, [x], (1, 5, 4, 10), 40),
        (indexing.gather_source, [x], (4, 5, 1, 10), 40),
        (indexing.gather_source, [x], (1, 0, 4, 10), 0),
        (indexing.gather_source, [x], (40, 5, 1, 1), 40),
        (indexing.scatter_zeros_source, [x], (1, 5, 4, 10), 20),
        (indexing.scatter_zeros_source, [x], (4, 5, 1, 10), 20),
        (indexing.scatter_zeros_source, [x], (1, 0, 4, 10), 0),
        (indexing.take_source, [x], (1, 5, 3, 40, WHOLE), 0),
        (indexing.put_zeros_source, [x], (1, 5, 3, 40), 0),
        (indexing.pick_source, [x], (40, 5), 0),
        (indexing.spread_source, [x], (40, 5), 0),
        (indexing.one_hot_source, [], (40, 5), 0),
    ]:
        out = np.full(1000, 7, "float32")
        first_wrong = place == 0 or args[1] != 0  # of an empty dimension each index is wrong
        status = run(source("float32", index_dtype), [*first, index, out], args)
        assert f"index out of range: {told if first_wrong else 'index 0'}" in WrongIndex((5,), 2, False)[status]
        assert (out[written:] == 7).all()


def test_payloads_of_nan_move_unchanged():
    x = np.array([0x7F800001, 0xFFC12345], "uint32").view("float32")
    out = np.empty(2, "float32")
    run(indexing.take_source("float32", "int64"), [x, np.array([1, 0]), out], (1, 2, 1, 2, WHOLE))
    assert (out.view("uint32") == [0xFFC12345, 0x7F800001]).all()


@pytest.mark.parametrize("size", [16383, 16384, 16385, 16387, 20001])
def test_many_integers_are_counted_as_numpy_counts_them(size):
    """In four parts, if they are few numbers; a negative one is refused."""
    for most in (1, 2, 100, 4096, 5000):
        x = np.random.default_rng(most).integers(0, most, size)
        for least in (0, 7, 5000):
            assert np.array_equal(dynamic.bincount(x, minlength=least).numpy(), np.bincount(x, minlength=least))
    with pytest.raises(ArgumentError, match="non-negative"):
        dynamic.bincount(x - 1)
