"""Windows that are read without loops, or many at a time, against an oracle: among NaN, at edges, and in steps."""

import numpy as np
import pytest

from common.evaluate.kernels import compiled
from common.kernels.arrays import window_rows
from common.kernels.arrays.window_maxima import WIDTHS, put_source, serves
from common.kernels.arrays.window_rows import amax_source, sum_source
from common.kernels.arrays.windows import add_source, max_source, window_args
from common.ops.image.windows import _amax_oracle, _max_oracle, _sum_oracle
from tests.bits import assert_all_same_bits

WINDOWS = [  # size, stride, padding, dilation
    ((1, 1, 2), (1, 1, 2), (0, 0, 0), (1, 1, 1)),
    ((1, 2, 2), (1, 2, 2), (0, 0, 0), (1, 1, 1)),
    ((1, 3, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
    ((1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 2, 3)),
    ((2, 2, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2)),
    ((1, 1, 5), (1, 1, 3), (0, 0, 2), (1, 1, 1)),
    ((1, 1, 9), (1, 1, 1), (0, 0, 4), (1, 1, 1)),
    ((1, 1, 4), (1, 1, 3), (0, 0, 2), (1, 1, 2)),
    ((1, 2, 8), (1, 1, 1), (0, 0, 3), (1, 1, 1)),
]


def count_of(sizes, window, ceil):
    reach = [n + 2 * p - d * (k - 1) - 1 for n, k, _, p, d in zip(sizes, *window, strict=True)]
    return tuple(-(-r // s) + 1 if ceil else r // s + 1 for r, s in zip(reach, window[1], strict=True))


@pytest.mark.parametrize("sizes", [(2, 5, 9), (2, 3, 75)], ids=["short", "long"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_maxima_of_windows(window, dtype, sizes):
    size, stride, padding, dilation = window
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, (2, 3, *sizes)).astype(dtype)  # many are equal: the first one counts
    if dtype is np.float32:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.1] = -0.0
    kernel = compiled(max_source(dtype, size, stride, dilation, padding), "window_max")
    values = compiled(amax_source(dtype, size, stride, dilation), "window_amax")
    for ceil in (False, True):
        count = count_of(sizes, window, ceil)
        found = np.empty((2, 3, *count), np.int64)
        kernel(x, found, *window_args(6, sizes, (size, count, stride, padding, dilation)))
        expected = _max_oracle(x, size=size, count=count, stride=stride, padding=padding, dilation=dilation)
        inside = expected >= 0  # a window that `ceil` adds may lie in the padding only
        np.testing.assert_array_equal(found[inside], expected[inside])
        maxima = np.empty((2, 3, *count), dtype)
        values(x, maxima, *window_args(6, sizes, (size, count, stride, padding, dilation)))
        expected = _amax_oracle(x, size=size, count=count, stride=stride, padding=padding, dilation=dilation)
        assert_all_same_bits([maxima], [expected], f"maxima, {ceil=}")


def in_order(x, out, sizes, size, count, stride, padding, dilation):
    """Add up each window into `out`, and each of its numbers to the places of the window, one by one."""
    places = np.zeros_like(x)
    for l in np.ndindex(*count):
        total = x.dtype.type(0)
        for k in np.ndindex(*size):
            p = tuple(i * s - b + j * d for i, s, b, j, d in zip(l, stride, padding, k, dilation, strict=True))
            if all(0 <= i < n for i, n in zip(p, sizes, strict=True)):
                total = total + x[p]
                places[p] = places[p] + out[l]
        out[l] = total
    return places


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("window", [*WINDOWS, ((1, 2, 3), (1, 2, 3), (0, 0, 1), (1, 1, 1))], ids=str)
def test_sums_and_additions_of_windows_are_made_in_order(window, dtype):
    size, stride, padding, dilation = window
    rng = np.random.default_rng(1)
    for sizes in ((2, 5, 9), (1, 4, 70), (1, 3, 1), (2, 2, 36)):
        reach = [n + 2 * p - d * (k - 1) - 1 for n, k, _, p, d in zip(sizes, *window, strict=True)]
        count = tuple(max(r // s + 1, 0) for r, s in zip(reach, stride, strict=True))
        args = window_args(1, sizes, (size, count, stride, padding, dilation))
        x, g = ((5 * rng.standard_normal(shape)).astype(dtype) for shape in (sizes, count))
        total, places = np.full(count, 7, dtype), np.full(sizes, 7, dtype)
        compiled(sum_source(dtype, size, stride, dilation), "window_sum")(x, total, *args)
        compiled(add_source(dtype), "window_add")(g, places, *args)
        expected = in_order(x, g, sizes, size, count, stride, padding, dilation)
        assert_all_same_bits([total, places], [g, expected], f"windows of {sizes}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_put_where_maxima_are(width, dtype):
    rng = np.random.default_rng(width)
    for sizes, size, stride in (
        ((1, 2, 19), (1, 2, width), (1, 2, width)), ((2, 9, 5 * width), (2, 1, width), (2, 1, width)),
        ((4, 7, 50 * width + 1), (1, 2, width), (3, 2, width)), ((3, 3, width), (2, 2, width), (2, 4, width)),
    ):  # fmt: skip
        count = tuple((n - k) // s + 1 for n, k, s in zip(sizes, size, stride, strict=True))
        assert serves(sizes, size, count, stride, (0, 0, 0), (1, 1, 1))
        assert not serves(sizes, size, count, stride, (0, 0, 0), (1, 1, 2))  # such windows have gaps
        x = rng.integers(-2, 3, (2, 3, *sizes)).astype(dtype)
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.2] = -0.0
        x[rng.random(x.shape) < 0.2] = -np.inf
        v = rng.choice([1.5, -0.0, -2.0], (2, 3, *count)).astype(dtype)
        out = np.full(x.shape, np.nan, dtype)
        windows = {"size": size, "count": count, "stride": stride, "padding": (0, 0, 0), "dilation": (1, 1, 1)}
        args = window_args(6, sizes, tuple(windows.values()))
        assert compiled(put_source(np.dtype(dtype), width), "window_put")(v, x, out, *args) == 0
        expected, at = np.zeros_like(x), _max_oracle(x, **windows)
        for place in np.ndindex(*v.shape):
            expected[place[:2]].reshape(-1)[at[place]] += v[place]
        assert_all_same_bits([out], [expected], f"{sizes}, {size}, {stride}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(0, 0, 0), None])
def test_planes_that_are_one_window(dtype, size):
    rng = np.random.default_rng(7)
    for sizes in ((1, 1, 1), (1, 3, 5), (2, 4, 8), (1, 7, 7), (3, 5, 11)):
        x = rng.integers(-2, 3, (5, 8, *sizes)).astype(dtype)
        x[0, rng.random(x.shape[1:]) < 0.3] = np.nan
        x[1] = -np.inf
        x[2, rng.random(x.shape[1:]) < 0.7] = -0.0
        windows = {"size": size or sizes, "count": (1, 1, 1), "stride": (1, 1, 1), "padding": (0, 0, 0)}
        windows["dilation"] = (1, 1, 1)
        given = dtype, windows["size"], windows["stride"], windows["dilation"]
        found, maxima = np.empty((5, 8, 1, 1, 1), np.int64), np.empty((5, 8, 1, 1, 1), dtype)
        args = window_args(40, sizes, tuple(windows.values()))
        compiled(max_source(*given, windows["padding"]), "window_max")(x, found, *args)
        compiled(amax_source(*given), "window_amax")(x, maxima, *args)
        assert_all_same_bits([found, maxima], [_max_oracle(x, **windows), _amax_oracle(x, **windows)], str(sizes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(
    ("sizes", "count"),
    [((1, 6, 32), (1, 3, 8)), ((1, 16, 16), (1, 5, 5)), ((4, 6, 10), (2, 2, 5)), ((1, 1, 40), (1, 1, 10)),
     ((1, 7, 9), (1, 7, 2)), ((3, 5, 8), (2, 5, 8)), ((1, 8, 32), (1, 3, 7)), ((1, 4, 6), (1, 1, 1)),
     ((1, 4, 6), (1, 8, 12)), ((1, 20, 180), (1, 2, 2))],
    ids=str,
)  # fmt: skip
def test_adaptive_windows_that_are_alike_and_those_that_are_not(sizes, count, dtype):
    rng = np.random.default_rng(5)
    windows = {"size": (0, 0, 0), "stride": (1, 1, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1)}
    given = dtype, (0, 0, 0), (1, 1, 1), (1, 1, 1)
    for now in (sizes, (sizes[0], sizes[1] + 1, sizes[2] + 3)):  # the second time the sizes are others than expected
        x = (5 * rng.standard_normal((2, 3, *now))).astype(dtype)
        if dtype is not np.int64:
            x[rng.random(x.shape) < 0.02] = np.nan
            x[rng.random(x.shape) < 0.1] = -0.0
        args = window_args(6, now, (windows["size"], count, *list(windows.values())[1:]))
        totals, maxima = (np.empty((2, 3, *count), dtype) for _ in range(2))
        compiled(sum_source(*given, sizes, count), "window_sum")(x, totals, *args)
        compiled(amax_source(*given, sizes, count), "window_amax")(x, maxima, *args)
        expected = _sum_oracle(x, count=count, **windows), _amax_oracle(x, count=count, **windows)
        assert_all_same_bits([totals, maxima], expected, f"{now}")


def test_windows_are_alike_where_sizes_leave_at_most_one():
    """As all of their starts and ends say; of windows beyond memory this is told at once."""
    for extent in range(40):
        for count in range(1, 45):
            places = [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
            step, size = (places[1][0] if count > 1 else extent), places[0][1]
            same = all(place == (i * step, i * step + size) for i, place in enumerate(places))
            assert window_rows._alike(extent, count) == ((step, size) if same else None)
    assert window_rows._alike(5, 2**62) is None
    assert window_rows._alike(5, 0) is None
