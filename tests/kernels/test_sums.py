"""Sums and extremes: bits of the kernels against the definition in plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dynamic  # its ops name scalar functions, too
import static
from common.core.numerics import BLOCK, LANES
from common.kernels.arrays import sums
from common.kernels.arrays.shared_parts import WHOLE
from tests.helpers.proofs import each
from tests.kernels.run import assert_same_bits, run, special_values

DTYPES = ["float32", "float64", "int64"]
SIZES = [0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 1023, 1024, 1025, 2048, 5000, 1024 * 1024 + 1]
COLUMNS = [
    (1, 0, 3), (2, 1, 5), (3, 15, 2), (1, 16, 7), (1, 17, 7), (2, 100, 50), (1, 63, 1500), (1, 1000, 130),
    (2, 12, 2048), (1, 9, 3072),
    (4, 1024, 3), (2, 1025, 5), (1, 2500, 1030), (2, 5000, 1), (1, 1024 * 1024, 2), (1, 1024 * 1024 + 5, 3),
    (2, 3, 0), (0, 3, 2), (2, 0, 20), (2, 5, 8), (3, 17, 31), (1, 64, 33), (1, 1024, 16), (1, 1025, 16), (2, 100, 100),
    (1, 70, 1024), (2, 45, 512), (1, 33, 2048), (1, 17, 4096), (1, 257, 256),  # rows share places of the caches
]  # fmt: skip


def sum_by_definition(x):
    """The definition read aloud, one scalar addition at a time."""
    if len(x) > BLOCK:
        return sum_by_definition([sum_by_definition(x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)])
    lanes = [type(x[0])(0)] * LANES
    for i, value in enumerate(x):
        lanes[i % LANES] = lanes[i % LANES] + value
    h = LANES // 2
    while h:
        lanes = [lanes[j] + lanes[j + h] for j in range(h)]
        h //= 2
    return lanes[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 16, 17, 33, 1023, 1025, 3000])
def test_oracle_is_the_definition(dtype, n):
    x = np.random.default_rng(n).normal(size=n).astype(dtype)
    assert sums.sum_oracle(x).tobytes() == sum_by_definition(list(x)).tobytes()


@pytest.mark.parametrize("n", SIZES)
@each("dtype", DTYPES)
@each("special", [False, True])
def test_sum_rows(dtype, n, special):
    rng = np.random.default_rng(n)
    rows = 37 if n < 1000 else 3 if n < 10**6 else 1
    x = special_values(rng, (rows, n), dtype) if special else rng.normal(size=(rows, n), scale=100).astype(dtype)
    out = np.full(rows, 7, dtype)
    assert run(sums.sum_rows_source(dtype), [x, out], [rows, n, WHOLE]) == 0
    assert_same_bits(out, sums.sum_oracle(x))
    assert run(sums.prod_rows_source(dtype), [x, out], [rows, n, WHOLE]) == 0
    assert_same_bits(out, sums.sum_oracle(x, product=True))


@pytest.mark.parametrize("shape", COLUMNS)
@each("dtype", DTYPES)
@each("special", [False, True])
def test_sum_cols(dtype, shape, special):
    rng = np.random.default_rng(sum(shape))
    batch, rows, columns = shape
    x = special_values(rng, shape, dtype) if special else rng.normal(size=shape, scale=100).astype(dtype)
    out = np.full((batch, columns), 7, dtype)
    size = sums.sum_cols_scratch(rows, columns)
    scratch = np.full(size + 1, 7, dtype)
    assert run(sums.sum_cols_source(dtype), [x, out, scratch], [batch, rows, columns]) == 0
    assert_same_bits(out, sums.sum_oracle(x.transpose(0, 2, 1)))
    assert scratch[size] == 7, "scratch overrun"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("columns", [16, 17, 40, 256, 512, 513, 1100])
def test_few_rows_are_folded_as_many_are(dtype, columns):
    """Sums and products of any number of rows up to more than are folded together: infinities, nan, zeros."""
    rng = np.random.default_rng(columns)
    for rows in (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49):
        x = (rng.standard_normal((2, rows, columns)) * 3).astype(dtype)
        if dtype != "int64":
            x[rng.random(x.shape) < 0.05] = -0.0
            x[:, :, 3], x[0, rows - 1, 5], x[1, 0, 6], x[1, rows // 2, 7] = -0.0, np.inf, np.nan, -np.inf
        for kind in ("sum", "prod"):
            out, scratch = np.full((2, columns), 7, dtype), np.empty(sums.sum_cols_scratch(rows, columns), dtype)
            source = getattr(sums, f"{kind}_cols_source")(dtype)
            assert run(source, [x, out, scratch], [2, rows, columns]) == 0
            assert_same_bits(out, sums.sum_oracle(np.moveaxis(x, 1, 2), product=kind == "prod"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_of_negative_zeros_is_positive_zero(dtype):
    x = np.full((1, 40), -0.0, dtype)
    for columns, rows in ((1, 40), (40, 1), (8, 5)):
        out, scratch = np.full(columns, 7, dtype), np.empty(sums.sum_cols_scratch(rows, columns), dtype)
        run(sums.sum_cols_source(dtype), [x, out, scratch], [1, rows, columns])
        assert not np.signbit(out).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_is_accurate(dtype):
    x = np.random.default_rng(1).uniform(size=10**6).astype(dtype)
    out = np.empty(1, dtype)
    run(sums.sum_rows_source(dtype), [x, out], [1, x.size, WHOLE])
    exact = math.fsum(x.astype(float).tolist())
    assert abs(float(out[0]) - exact) <= 32 * np.finfo(dtype).eps * exact  # (64 + 4 + 64 + 4) / 2 roundings at worst


def extreme_oracle(x, name):
    """Order -inf < ... < -0 < +0 < ... < inf by Python's sort on (value, sign), NaN first of all."""
    if np.isnan(x).any():
        return np.nan
    ordered = sorted(x, key=lambda v: (v, not np.signbit(v)))
    return ordered[-1] if name == "max" else ordered[0]


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 65, 1000])
@each("dtype", DTYPES)
@each("values", ["normal", "special", "nonpositive", "nonnegative", "zeros"])
def test_extremes(dtype, name, n, values):
    rng = np.random.default_rng(n)
    x = special_values(rng, (30, n), dtype, nan=values == "special")
    if values == "nonpositive":
        x = np.where(x < 0, x, rng.choice(np.array([0.0, -0.0]), x.shape).astype(dtype))
    elif values == "nonnegative":
        x = np.where(x > 0, x, rng.choice(np.array([0.0, -0.0]), x.shape).astype(dtype))
    elif values == "zeros":
        x = np.where(rng.random(x.shape) < 1 / n, 0.0, -0.0).astype(dtype)
    expected = np.array([extreme_oracle(row, name) for row in x], dtype)
    out = np.full(30, 7, dtype)
    assert run(getattr(sums, f"{name}_rows_source")(dtype), [x, out], [30, n, WHOLE]) == 0
    assert_same_bits(out, expected)
    columns = np.ascontiguousarray(x.reshape(2, 15, n).transpose(0, 2, 1))
    assert run(getattr(sums, f"{name}_cols_source")(dtype), [columns, out], [2, n, 15]) == 0
    assert_same_bits(out, expected)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("rows", [1, 2, 8, 9, 18])
@each("dtype", [*DTYPES, "int8"])
@each("columns", [2, 3, 4, 15, 16, 17, 33, 100])
def test_extremes_of_columns_that_fill_vectors_or_not(dtype, name, rows, columns):
    x = special_values(np.random.default_rng(rows * columns), (2, rows, columns), dtype, nan=columns != 33)
    out = np.full((3, columns), 7, dtype)
    assert run(getattr(sums, f"{name}_cols_source")(dtype), [x, out], [2, rows, columns]) == 0
    expected = [[extreme_oracle(x[b, :, c], name) for c in range(columns)] for b in range(2)]
    assert_same_bits(out[:2], np.array(expected, dtype))
    assert (out[2] == 7).all(), "written beyond the end"


def test_extreme_of_nothing_is_refused():
    x, out = np.empty(0, "float32"), np.full(3, 7, "float32")
    assert run(sums.max_rows_source("float32"), [x, out], [3, 0, WHOLE]) == sums.EMPTY
    assert run(sums.min_cols_source("float32"), [x, out], [1, 0, 3]) == sums.EMPTY
    assert (out == 7).all()
    assert run(sums.max_rows_source("float32"), [x, out], [0, 0, WHOLE]) == 0


def test_fused_column_sum_recipe():
    """The recipe in the module's docstring, with the summed element computed in the loop."""
    source = f"""def fused(bufs, args):
    x = buffer(bufs, 0, float32)
    out = buffer(bufs, 1, float32)
    acc = buffer(bufs, 2, float32)
    rows = args[0]
    columns = args[1]
    start_columns(acc, 0, columns, rows)
    for r in range(rows):
        if r & {BLOCK - 1} == 0 and r > 0:
            carry_columns(acc, 0, columns, (r >> 10) - 1)
        lane = (r & {LANES - 1}) * columns
        for c in range(columns):
            acc[lane + c] = acc[lane + c] + x[r * columns + c] * x[r * columns + c]
    finish_columns(acc, 0, columns, rows, out, 0)
    return 0
"""
    for rows, columns in ((0, 3), (5, 3), (1024, 9), (1025, 9), (40000, 3), (1024 * 1024 + 1, 2)):
        x = np.random.default_rng(rows).normal(size=(rows, columns)).astype("float32")
        out, scratch = np.empty(columns, "float32"), np.empty(sums.sum_cols_scratch(rows, columns), "float32")
        run(source, [x, out, scratch], [rows, columns])
        assert_same_bits(out, sums.sum_oracle((x * x).T))


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "int8", "int16", "int32"])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@each("columns", range(1, 13))
def test_rows_of_few_elements_have_the_bits_of_other_rows(kind, dtype, columns):
    if kind in ("sum", "prod") and dtype not in DTYPES:
        return
    source = sums.few_rows_source(kind, np.dtype(dtype), columns)
    if columns < 2 or columns > (4 if kind in ("sum", "prod") else 11):
        assert source is None
        return
    rng = np.random.default_rng(columns)
    x = rng.random((67, columns)) < 0.5 if dtype == "bool" else special_values(rng, (67, columns), dtype)
    if np.dtype(dtype).kind == "f":
        x[:9] = rng.choice(np.array([0.0, -0.0, np.inf, np.nan, 1e-45]), (9, columns))
    found, wanted = np.empty(67, dtype), np.empty(67, dtype)
    assert run(source, [x, found], (67, columns, WHOLE)) == 0
    assert run(getattr(sums, f"{kind}_rows_source")(np.dtype(dtype)), [x, wanted], (67, columns, WHOLE)) == 0
    assert_same_bits(found, wanted)
    assert run(source, [x[:0], found[:0]], (0, columns, WHOLE)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("layout", ["dense", "turned", "parts"])
def test_extremes_over_dimensions_apart(dtype, layout):
    """Of the first and the last dimensions, and others between which some stay: against numpy, zeros and nan too."""
    rng = np.random.default_rng(0)
    x = (
        rng.choice([-0.0, 0.0, -1, np.nan], 360, p=[0.45, 0.1, 0.44, 0.01])
        if dtype[0] == "f"
        else rng.integers(-9, 9, 360)
    )
    x = x.astype(dtype).reshape(3, 4, 5, 6)
    x = {"dense": x, "turned": x.transpose(3, 1, 0, 2), "parts": x[::2, :, 1:, ::-1]}[layout]
    if dtype == "float64":
        x = -x
    for dims in ((0, 2), (0, 2, 3), (0, 1, 3), (1, 3), (0, 3)):
        for name, join in (("amax", np.maximum), ("amin", np.minimum)):
            kept = [i for i in range(4) if i not in dims]
            found = np.asarray(getattr(dynamic.tensor(x), name)(dims))
            rows = x.transpose(*kept, *dims).reshape(*found.shape, -1)
            with np.errstate(invalid="ignore"):
                assert np.array_equal(found, join.reduce(rows, -1), equal_nan=dtype[0] == "f"), (dims, name)
            if dtype[0] == "f":
                zeros = found == 0
                signs = np.signbit(rows) & (rows == 0)
                expected = ~((rows == 0) & ~signs).any(-1) if name == "amax" else signs.any(-1)
                np.testing.assert_array_equal(np.signbit(found)[zeros], expected[zeros])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [(0, 2), (0, 3), (1, 3), (0, 1, 3), (0, 2, 3)])
def test_sums_over_dimensions_apart(dtype, dims):
    """The last dimensions may stay where they are: the order is that of the definition."""
    rng = np.random.default_rng(0)
    for shape in ((3, 5, 20, 33), (3, 4, 50, 7), (2, 70, 6, 8)):
        x = (rng.standard_normal(shape) * 100).astype(dtype)
        kept = [i for i in range(4) if i not in dims]
        rows = x.transpose(*kept, *dims).reshape(*(shape[i] for i in kept), -1)
        for given in (x, x.transpose(3, 2, 1, 0).copy().transpose(3, 2, 1, 0)):
            assert_same_bits(np.asarray(dynamic.tensor(given).sum(dims)), sums.sum_oracle(rows))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_channels_are_summed_block_by_block(dtype, compiler):
    """Blocks that lie side by side, and those of several pieces; both engines, sums and sums of an expression."""
    rng = np.random.default_rng(1)
    compiled = static.function(lambda x: (x.sum((0, 2)), (x * x + x).sum((0, 2))), compiler=compiler)
    for shape in ((2, 3, BLOCK), (3, 2, 683), (41, 2, 50), (5, 2, BLOCK + 7), (3, 2, 3000), (1025, 2, 1), (2, 2, 513)):
        x = (rng.standard_normal(shape) * 100).astype(dtype)
        rows = x.transpose(1, 0, 2).reshape(shape[1], -1)
        sums_of, others = compiled(x)
        for found in (dynamic.tensor(x).sum((0, 2)), sums_of):
            assert_same_bits(np.asarray(found), sums.sum_oracle(rows))
        assert_same_bits(np.asarray(others), sums.sum_oracle(rows * rows + rows))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 2, 3, 1), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_reductions_of_arrays_in_another_order_have_the_bits_of_copies(dtype, order):
    """As they lie, where the order is in no bit; floats are summed in the order of the dimensions."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 7, 9, 20)) * 100
    if dtype[0] == "f":
        x[rng.random(x.shape) < 0.3] = -0.0
        x[0, 0, 0, :5] = 0.0, np.nan, np.inf, -np.inf, -0.0
    x = (x > 0) if dtype == "bool" else x.astype(dtype)
    turned, copy = x.transpose(order), np.ascontiguousarray(x.transpose(order))
    for name in ("amax", "amin", "sum", "any", "all"):
        for dims in ((2, 3), (1, 2, 3), (0, 2, 3), (0, 1), (0, 1, 2, 3), (1, 3), (3,)):
            found, expected = (getattr(dynamic.tensor(y), name)(dims).numpy() for y in (turned, copy))
            assert_same_bits(found, expected)
            if dtype[0] != "f" or name in ("amax", "amin"):
                by_numpy = getattr(copy, {"amax": "max", "amin": "min"}.get(name, name))(dims)
                assert np.array_equal(found, by_numpy, equal_nan=dtype[0] == "f")
