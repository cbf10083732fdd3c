"""Stable order, the k first and binary search, against plain Python and numpy."""

import numpy as np
import pytest

import dynamic
import static
from common.compiler.primitives import evaluate
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.kernels.arrays import sorting
from tests.helpers.proofs import rotated
from tests.kernels.run import run

DTYPES = ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]


def rows(dtype, n, seed=0):
    """Three rows with ties, both zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        info = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        x = rng.integers(*info, (3, n), endpoint=True, dtype="int64" if dtype == "bool" else dtype)
        x[rng.random(x.shape) < 0.5] = rng.integers(0, 2)
        return x.astype(dtype)
    x = rng.normal(size=(3, n)).astype(dtype)
    for value in (np.nan, -0.0, 0.0, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal):
        x[rng.random(x.shape) < 0.1] = value
    return x


def order(row, descending):
    """The definition: NaN is above everything, zeros are equal, equal elements keep their order."""
    sign = -1 if descending else 1
    keys = [(sign * (v != v), 0 if v != v else sign * v) for v in row.tolist()]
    return sorted(range(len(keys)), key=keys.__getitem__)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows_side_by_side(dtype, descending):
    """Full and part groups of rows; the elements of the three kinds of rows in other orders."""
    for n, count in ((2, 16), (5, 37), (sorting.SHORT - 1, 18)):
        x = np.concatenate([rows(dtype, n, seed) for seed in range(13)])[:count]
        expected = np.array([order(row, descending) for row in x])
        assert np.array_equal(static.argsort(x, descending=descending), expected)
        assert np.array_equal(dynamic.argsort(x, descending=descending).numpy(), expected)


LENGTHS = [f"{n} {way}" for n in (1, 2, sorting.SHORT - 1, sorting.SHORT, 300, 2000) for way in ("up", "down")]


@pytest.mark.parametrize(("length", "dtype"), rotated(LENGTHS, DTYPES))
def test_order_is_that_of_the_definition(length, dtype):
    n, descending = int(length.split()[0]), length.endswith("down")
    x = rows(dtype, n)
    expected = np.array([order(row, descending) for row in x])
    assert np.array_equal(static.argsort(x, descending=descending), expected)
    values, indices = dynamic.sort(x, descending=descending)
    assert np.array_equal(indices.numpy(), expected)
    assert values.numpy().tobytes() == np.take_along_axis(x, expected, -1).tobytes()
    if dtype == "bool":  # as in PyTorch, which sorts bools
        with pytest.raises(DTypeError, match=r"topk. not implemented for bool"):
            static.topk(x, 1)
        return
    for k in {k for k in (0, 1, sorting.FEW, sorting.FEW + 1, n // 3, n) if k <= n}:
        values, indices = map(np.asarray, static.topk(x, k, largest=descending))
        assert np.array_equal(indices, expected[:, :k])
        assert values.tobytes() == np.ascontiguousarray(np.take_along_axis(x, expected, -1)[:, :k]).tobytes()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_places_are_numpys(dtype, side):
    x, v = np.sort(rows(dtype, 50)), rows(dtype, 43, seed=1)
    expected = np.array([np.searchsorted(a, b, side) for a, b in zip(x, v)])
    assert np.array_equal(static.searchsorted(x, v, side=side), expected)
    assert np.array_equal(dynamic.searchsorted(x[0], v, right=side == "right").numpy()[0], expected[0])
    assert static.bucketize(v, x[0], out_int32=True).dtype == np.int32


def test_keys_are_the_order_of_all_bit_patterns():
    patterns = np.random.default_rng(2).integers(-(2**31), 2**31, 100_000, dtype=np.int64).astype(np.int32)
    x = patterns.view(np.float32)
    keys = evaluate(sorting.sort_key, x)
    first, second = x[:50_000], x[50_000:]
    less = (first < second) | (np.isnan(second) & ~np.isnan(first))
    assert np.array_equal(keys[:50_000] < keys[50_000:], less)
    assert evaluate(sorting.sort_key, np.array([-0.0], np.float32)) == evaluate(sorting.sort_key, np.zeros(1, "f4"))


@pytest.mark.parametrize("k", [0, -1, 6])
def test_a_wrong_k_writes_nothing(k):
    """The op refuses it before; the kernel does no harm either."""
    x, out = np.arange(5, dtype=np.float32), np.full(8, 7, np.int64)
    scratch = np.empty(sorting.top_scratch(x.dtype, 5), np.uint8)
    assert run(sorting.top_source(x.dtype), [x, out, scratch], [1, 5, 0, k]) == 0
    assert (out == 7).all()


def test_unsorted_rows_give_places_within_them():
    rng = np.random.default_rng(3)
    found = static.searchsorted(rng.normal(size=100), rng.normal(size=1000))
    assert found.min() >= 0
    assert found.max() <= 100


def test_gradients_go_to_where_values_came_from():
    x = dynamic.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (x.sort()[0] * dynamic.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


def test_dimensions():
    x = rows("float32", 24).reshape(3, 4, 6)
    for dim in (0, 1, -1):
        assert np.array_equal(static.argsort(x, dim), np.argsort(x, dim, kind="stable"))
        values, indices = dynamic.kthvalue(x, 2, axis=dim, keepdims=True)
        assert np.array_equal(indices.numpy(), np.argsort(x, dim, kind="stable").take([1], dim))
        assert values.shape == indices.shape
    assert dynamic.sort(2.5).values.item() == 2.5
    assert dynamic.sort(2.5).indices.item() == 0
    assert dynamic.topk(dynamic.tensor(2.5), 1).values.shape == ()
    assert dynamic.sort(np.zeros((0, 3), "f4"), 0).values.shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda tw, x: tw.sort(x, 3), IndexRangeError, r"sort\(\): Dimension out of range .* got 3"),
        (lambda tw, x: tw.topk(x, 9), ShapeError, "k = 9, dimension -1 has size 4"),
        (lambda tw, x: tw.topk(x, -1), ShapeError, "k = -1"),
        (lambda tw, x: tw.kthvalue(x, 0), ShapeError, "k = 0, size 4"),
        (lambda tw, x: tw.searchsorted(x, x[:2]), ShapeError, r"\(3, 4\) and \(2, 4\)"),
        (lambda tw, x: tw.searchsorted(x[0], x, side="middle"), ArgumentError, "'middle'"),
        (lambda tw, x: tw.searchsorted(x[0], x, side="left", right=True), ArgumentError, "opposites"),
        (lambda tw, x: tw.bucketize(x, x), ShapeError, "must be 1 dimension"),
    ],
)
@pytest.mark.parametrize("tw", [dynamic, static])
def test_errors(tw, call, error, text):
    with pytest.raises(error, match=text):
        call(tw, np.zeros((3, 4), np.float32))
