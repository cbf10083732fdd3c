"""Copies of rows that lie apart, against numpy: rows of whole vectors and with a rest, near and far apart."""

from itertools import permutations

import numpy as np
import pytest

import dynamic
import dynamic.nn.functional as F
import static
from common.evaluate.kernels import compiled
from common.evaluate.layouts import copied
from common.kernels.arrays.copying import LONG, stepped_source
from tests.bits import assert_all_same_bits

DTYPES = ["bool", "uint8", "int16", "int32", "float32", "int64", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_every_length_of_rows_and_nothing_beside_them(step, dtype):
    rng = np.random.default_rng(step)
    x = rng.integers(0, 100, 4000).astype(dtype)
    kernel = compiled(stepped_source(np.dtype(dtype), step), "stepped_rows")
    for n in range(LONG, LONG + 40):
        out = np.full(6 * n + 2, 1, dtype)
        kernel(x, out[1:-1], 2, 3, n, 1500, n * step + 5)
        expected = [x[z * 1500 + r * (n * step + 5) :][: n * step : step] for z in range(2) for r in range(3)]
        assert np.array_equal(out[1:-1], np.concatenate(expected)), n
        assert out[0] == out[-1] == np.ones(1, dtype)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [1, 3])
def test_what_is_taken_away_at_the_ends(left, dtype):
    rng = np.random.default_rng(left)
    x = rng.integers(0, 100, (3, 40, 41 + left)).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 1:5], x[1, :, left] = np.nan, -0.0
    expected = np.ascontiguousarray(x[:, 1:-2, left:-1])
    for _ in range(3):
        assert_all_same_bits([dynamic.tensor(x)[:, 1:-2, left:-1].contiguous()], [expected], "a slice")
        for tw in (dynamic, static):
            padded = tw.function(lambda x, tw=tw: tw.nn.functional.pad(x, (-left, -1, -1, -2)))(tw.tensor(x))
            assert_all_same_bits([padded], [expected], "a negative border")
    given = dynamic.tensor(x)
    made = F.pad(given, (0, 0))
    made.fill_(0)
    assert np.array_equal(given.numpy(), x, equal_nan=x.dtype.kind == "f"), "the result has memory of its own"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(20, 3, 9, 17), (9, 1, 40, 30), (64, 8, 2, 9), (100, 10, 100), (5, 30, 40), (8, 900)]
)
def test_every_order_of_dimensions_forward_and_backward(shape, dtype):
    rng = np.random.default_rng(len(shape))
    x = rng.integers(0, 100, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[0], x[1] = np.nan, -0.0
    for order in permutations(range(len(shape))):
        for flipped in (None, 0, -1):
            view = x if flipped is None else np.flip(x, flipped)
            given = np.transpose(view, order)
            out = copied(given, given.shape, given.dtype)
            assert_all_same_bits([out], [np.ascontiguousarray(given)], f"{order} {flipped}")


@pytest.mark.parametrize("target", ["int32", "int64", "uint8", "int16"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_in_steps_become_ints(dtype, target):
    x = np.random.default_rng(0).uniform(0, 120, (40, 12, 50)).astype(dtype)
    given = dynamic.tensor(x)
    for view, expected in (
        (given.transpose(0, 2), x.transpose(2, 1, 0)), (given[:, 1:-1, 3:-3], x[:, 1:-1, 3:-3]),
        (given[:, :, ::2], x[:, :, ::2]), (given.flip(0).permute(1, 2, 0), x[::-1].transpose(1, 2, 0)),
    ):  # fmt: skip
        for _ in range(2):
            assert_all_same_bits([view.to(getattr(dynamic, target))], [expected.astype(target)], "cast")
