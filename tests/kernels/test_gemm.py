"""Matrix products: correct for every shape and flag, and their bits depend on values and sizes only."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dynamic
from common.compiler import llvm_engine
from common.compiler.exact_sums import fma
from common.core.numerics import DEEP, LANES
from common.kernels.arrays import gemm
from tests.helpers import proofs
from tests.helpers.proofs import each, rotated
from tests.kernels.run import assert_same_bits, run

SHAPES = [
    (1, 1, 1),
    (1, 64, 64),
    (64, 1, 64),
    (64, 64, 1),
    (1, 1, 100),
    (33, 17, 65),
    (100, 10, 784),
    (7, 3, 1000),
    (8, 48, DEEP),
    (9, 49, DEEP + 1),
    (1, 600, 33),
    (600, 1, 70),
]
LARGE = [(2700, 160, 160), (5, 9000, 1500), (2600, 130, 200), (1029, 219, 519)]
PRODUCTS = [(shape, a, b) for shape in [*SHAPES, *LARGE] for a in (0, 1) for b in (0, 1)]
"""Sizes, and whether the operands are stored transposed."""


def product(a, b, m, n, k, trans_a=0, trans_b=0, batch=1, strides=(0, 0)):
    out = np.full((batch, m, n), np.nan if a.dtype.kind == "f" else 7, a.dtype)
    if a.dtype.kind == "f":
        assert run(gemm.gemm_source(a.dtype), [a, b, out], [batch, m, n, k, trans_a, trans_b, *strides]) == 0
        return out
    called(gemm.call(a.dtype, batch, m, n, k, bool(trans_a), bool(trans_b), not strides[0], not strides[1]), a, b, out)
    return out


def called(call, *buffers):
    given = [buffers[i] for i in call.buffers or range(3)] + [np.full(call.scratch, 7, np.uint8)] * bool(call.scratch)
    assert run(call.source, given, call.ints) == 0


def operands(m, n, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return (rng.integers(info.min, info.max, size=s, dtype=dtype) for s in ((m, k), (k, n)))
    return (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n)))


def some(count):
    """A few of the numbers below count, at the borders of tiles of any kind too."""
    numbers = {0, 1, 3, 7, 8, 15, 16, 47, 48, 127, 128, 255, 256, 511, 512, 1343, 1344, count // 2, count - 1}
    return sorted(i for i in numbers if 0 <= i < count)


@pytest.mark.parametrize(("case", "dtype"), rotated(PRODUCTS, ("float32", "float64")))
def test_product(case, dtype):
    (m, n, k), trans_a, trans_b = case
    a, b = operands(m, n, k, dtype)
    stored = np.ascontiguousarray(a.T) if trans_a else a, np.ascontiguousarray(b.T) if trans_b else b
    out = product(*stored, m, n, k, trans_a, trans_b)[0]
    exact = a.astype("float64") @ b.astype("float64")
    rows, columns = some(m), some(n)  # the oracle is slow, and an element does not depend on the others
    assert_same_bits(out[np.ix_(rows, columns)], gemm.oracle(a[rows], b[:, columns]))
    bound = (k + 2) * np.finfo(dtype).eps * (np.abs(a).astype("float64") @ np.abs(b).astype("float64"))
    assert (np.abs(out - exact) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_empty_sizes(dtype):
    a = np.ones(100, dtype)
    assert (product(a, a, 3, 4, 0) == 0).all()
    assert not np.signbit(product(a, a, 3, 4, 0)).any()
    for m, n, batch in ((0, 4, 1), (3, 0, 1), (3, 4, 0)):
        assert product(a, a, m, n, 5, batch=batch).size == 0


def nearest(x, dtype):
    """The float that is nearest to a fraction; of two the even one."""
    around = np.array(float(x)).astype(dtype)
    near = [np.nextafter(around, dtype(-np.inf)), around, np.nextafter(around, dtype(np.inf))]
    whole = np.int32 if dtype is np.float32 else np.int64
    return min(near, key=lambda y: (abs(Fraction(float(y)) - x), int(y.view(whole)) & 1))


def chain(pairs, dtype):
    total = dtype(0)
    for x, y in pairs:
        total = nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(total)), dtype)
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, DEEP, 2 * DEEP + 3])
def test_an_element_is_a_sum_of_chains_of_exact_products(dtype, k):
    a, b = operands(2, 3, k, dtype, seed=5)
    blocks = [chain(zip(a[1, p : p + DEEP], b[p : p + DEEP, 2]), dtype) for p in range(0, k, DEEP)]
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    assert product(a, b, 2, 3, k)[0, 1, 2] == total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 16, 37, 300])
def test_an_element_of_one_row_or_column_is_a_sum_of_lanes(dtype, k):
    a, b = operands(1, 3, k, dtype, seed=6)
    lanes = [chain(zip(a[0, j::LANES], b[j::LANES, 2]), dtype) for j in range(LANES)]
    while len(lanes) > 1:
        lanes = [x + y for x, y in zip(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])]
    assert product(a, b, 1, 3, k)[0, 0, 2] == lanes[0]
    transposed = np.ascontiguousarray(b.T), np.ascontiguousarray(a.T)
    assert product(*transposed, 3, 1, k)[0, 2, 0] == lanes[0]
    assert product(b, a, 3, 1, k, 1, 1)[0, 2, 0] == lanes[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_oracle_rounds_once(dtype):
    """Sums that nearly cancel, and float32 products whose sum in float64 is a tie of float32 by rounding."""
    rng = np.random.default_rng(7)
    x, y = (rng.normal(size=400).astype(dtype) for _ in range(2))
    noise = (1 + rng.integers(-3, 4, 400) * np.finfo(dtype).eps) * 2.0 ** rng.integers(-40, 40, 400)
    for z in (-(x * y), (-(x * y) * noise.astype(dtype)).astype(dtype), rng.normal(size=400).astype(dtype)):
        ours = fma(x, y, z)
        for i in range(400):
            exact = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
            assert ours[i] == nearest(exact, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(33, 70, 300), (9, 17, 20), (30, 203, 530)])
def test_bits_do_not_depend_on_transposes_or_on_other_rows_and_columns(dtype, shape):
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    expected = product(a, b, m, n, k)[0]
    for flags in ((0, 1), (1, 0), (1, 1)):
        stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags)]
        assert_same_bits(product(*stored, m, n, k, *flags)[0], expected)
    for rows in range(2, m):
        assert_same_bits(product(a[:rows], b, rows, n, k)[0], expected[:rows])
    for columns in [*range(2, min(n, 80)), *range(n - 12, n)]:
        part = np.ascontiguousarray(b[:, -columns:])
        assert_same_bits(product(a, part, m, columns, k)[0], expected[:, -columns:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_not_a_number_and_infinity(dtype):
    a, b = operands(20, 50, 30, dtype)
    a[3, 4], b[5, 6], a[7, 8], b[8, 9] = np.nan, np.inf, np.inf, 0
    with np.errstate(invalid="ignore"):
        exact = a.astype("float64") @ b.astype("float64")
    for flags in ((0, 0), (1, 1)):
        stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags)]
        out = product(*stored, 20, 50, 30, *flags)[0]
        assert (np.isnan(out) == np.isnan(exact)).all()
        assert (np.isinf(out) == np.isinf(exact)).all()


_ELSEWHERE = """
import hashlib, sys
import numpy as np
from common.kernels.arrays import gemm
from tests.kernels.test_gemm import SHAPES, operands, product
found = hashlib.sha256()
for dtype in ("float32", "float64"):
    for shape in SHAPES:
        found.update(product(*operands(*shape, dtype), *shape).tobytes())
print(found.hexdigest())
"""


def test_bits_do_not_depend_on_the_instruction_set(tmp_path):
    """Registers of 64, 32 and 16 bytes; the last without fused multiply-adds, which libm makes."""
    kinds = [{}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}]
    if "+fma" in llvm_engine.cpu()[1].split(","):
        kinds.append({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"})
    digests = set()
    for kind in kinds:
        environment = {**os.environ, "TWINGRAD_CACHE": str(tmp_path), **kind}
        done = subprocess.run(
            [sys.executable, "-c", _ELSEWHERE], cwd=Path(__file__).parents[2], env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [*SHAPES, (8, 8, 8), (64, 64, 64), (300, 300, 30)])
def test_bits_do_not_depend_on_alignment_or_place_in_a_batch(dtype, shape):
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    expected = product(a, b, m, n, k)[0]
    for shift in (1, 3, 8):
        room = [np.empty(x.size + shift, dtype)[shift:].reshape(x.shape) for x in (a, b)]
        room[0][:], room[1][:] = a, b
        assert_same_bits(product(*room, m, n, k)[0], expected)
    many = [np.random.default_rng(1).normal(size=(5, *x.shape)).astype(dtype) for x in (a, b)]
    many[0][3], many[1][3] = a, b
    assert_same_bits(product(*many, m, n, k, batch=5, strides=(m * k, k * n))[3], expected)
    many[0][:] = a
    shared = product(*many, m, n, k, batch=5, strides=(0, k * n))
    assert_same_bits(shared[3], expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_cover_the_product_and_are_products_themselves(dtype):
    for m, n, k in LARGE:
        a, b = operands(m, n, k, dtype)
        rows, columns = gemm.tiles(m, n, k)
        assert (rows, columns) != (m, n), "the shape is meant to be cut"
        out = product(a, b, m, n, k)[0]
        for i in range(0, m, rows):
            for j in range(0, n, columns):
                left, right = a[i : i + rows], np.ascontiguousarray(b[:, j : j + columns])
                tile = product(left, right, left.shape[0], right.shape[1], k)[0]
                assert_same_bits(out[i : i + rows, j : j + columns], tile)


@pytest.mark.parametrize("k", [1, 64, 3000])
@each("m", [1, 17, 512, 2561, 5000])
@each("n", [1, 100, 128, 8191])
def test_tiles_are_few_and_not_too_small(m, n, k):
    rows, columns = gemm.tiles(m, n, k)
    if m * n * k < 2 * 2**21:
        assert (rows, columns) == (m, n) or -(-m // rows) * -(-n // columns) == 1
    elif m >= n:
        assert rows % 16 == 0
        assert columns == n
    else:
        assert columns % 48 == 0
        assert rows == m
    assert -(-m // rows) * -(-n // columns) <= 16
    assert min(rows, m) * min(columns, n) * k >= min(m * n * k, 2**21)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_integer_products_wrap(dtype, flags):
    for m, n, k in ((5, 7, 11), (1, 9, 70), (9, 1, 33), (1, 1, 100), (3, 40, 2), (40, 2, 4), (2, 2, 31)):
        a, b = operands(m, n, k, dtype)
        stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags)]
        assert_same_bits(product(*stored, m, n, k, *flags)[0], gemm.oracle(a, b))
        assert (product(a, b, m, n, 0) == 0).all()
        both = [np.stack([x, x + x.dtype.type(1)]) for x in stored]
        found = product(*both, m, n, k, *flags, 2, (m * k, k * n))
        assert_same_bits(found[1], gemm.oracle(both[0][1], both[1][1], *flags))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_products_of_columns_and_rows_are_chains_of_one(dtype):
    """Loops over elements have the bits of the oracle: of zeros of both signs, and of what underflows."""
    small = {"float32": 1e-30, "float64": 0.5, "int64": 3}[dtype]  # the oracle of float64 knows nothing subnormal
    for m, n in ((1, 1), (1, 7), (9, 1), (5, 3), (3, 40), (40, 17)):
        for flags in ((0, 0), (0, 1), (1, 0), (1, 1)):
            a, b = operands(m, n, 1, dtype, seed=m * n)
            a.flat[:3], b.flat[:3] = [-0.0, 0.0, small][: a.size], [1, -small, -0.0][: b.size]
            stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags, strict=True)]
            found = gemm.call(np.dtype(dtype), 2, m, n, 1, *map(bool, flags), shared_b=True)
            general = "integer_products" if dtype == "int64" else "gemm"
            assert found.name == (general if 1 < n < 16 and m > 1 else "outer")
            out = np.full((2, m, n), 7, dtype)
            called(found, np.stack([stored[0]] * 2), stored[1], out)
            for y in out:
                assert_same_bits(y, gemm.oracle(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_by_itself_has_the_bits_that_it_has_among_others(dtype):
    """Beside several rows, whose chains run side by side, and the definition."""
    rng = np.random.default_rng(5)
    for n in (1, 15, 16, 17, 63, 64, 65, 79, 80, 127, 128, 1000, 1029, 5003):
        a, b = (rng.standard_normal(n).astype(dtype) for _ in "ab")
        found = dynamic.dot(a, b).numpy()
        assert_same_bits(dynamic.mv(np.stack([a] * 3), b).numpy(), np.repeat(found, 3))
        assert_same_bits(found, gemm.oracle(a[None], b[:, None])[0, 0].reshape(()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_short_rows_have_the_bits_of_each(dtype):
    """Rows are added up side by side, as many as a vector has lanes."""
    rng = np.random.default_rng(6)
    for i, k in enumerate((1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65)):
        for count in (7, 8, 9, 15, 16, 17, 40)[i % 2 :: 2 if proofs.sampled else 1]:
            a, b = rng.standard_normal((count, k)).astype(dtype), rng.standard_normal(k).astype(dtype)
            a[rng.random(a.shape) < 0.1] = -0.0
            a[rng.integers(count), rng.integers(k)] = np.inf
            b[rng.random(k) < 0.1] = -0.0
            found = dynamic.mv(a, b).numpy()
            assert_same_bits(found, np.array([gemm.oracle(row[None], b[:, None])[0, 0] for row in a], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_vector_times_rows_or_columns_is_the_definition(dtype):
    """Of any number of them, and where all products underflow to -0.0: the sum is +0.0, for all lanes or some."""
    rng, tiny = np.random.default_rng(8), np.finfo(dtype).tiny
    for i, k in enumerate((1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 70, 300)):
        for count in (2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)[i % 3 :: 3 if proofs.sampled else 1]:
            a, v = rng.standard_normal((count, k)).astype(dtype), rng.standard_normal(k).astype(dtype)
            for rows, vector in ((a, v), (np.full_like(a, tiny), np.full_like(v, -tiny))):
                columns = dynamic.tensor(np.ascontiguousarray(rows.T)).T
                expected = gemm.oracle(rows, vector[:, None])[:, 0]
                assert_same_bits(dynamic.mv(rows, vector).numpy(), expected)
                assert_same_bits((columns @ dynamic.tensor(vector)).numpy(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_narrow_products_are_those_of_the_definition(dtype):
    """Without copies up to one vector of columns; by blocks beyond. A column of chains that underflow to -0.0."""
    rng = np.random.default_rng(7)
    for m, n, k in [
        (2, 2, 1),
        (3, 3, 3),
        (4, 8, 4),
        (5, 2, 9),
        (8, 8, 8),
        (16, 16, 16),
        (17, 16, 8),
        (9, 17, 8),
        (4, 9, 17),
        (40, 3, 2 * DEEP + 5),
        (21, 8, DEEP),
        (16, 5, DEEP + 1),
        (3, 2, DEEP + 1),
    ]:
        a, b = (rng.normal(size=s).astype(dtype) for s in ((3, m, k), (3, k, n)))
        if np.dtype(dtype).kind == "f":
            a[rng.random(a.shape) < 0.1], b[rng.random(b.shape) < 0.1] = -0.0, -0.0
            a[1] = np.finfo(dtype).tiny
            b[1, :, 0] = -np.finfo(dtype).tiny
            a[0, m - 1, k - 1] = np.inf
        for trans_a, trans_b in ((0, 0), (1, 0), (0, 1), (1, 1)):
            stored = [np.ascontiguousarray(x.mT) if t else x for x, t in ((a, trans_a), (b, trans_b))]
            found = product(*stored, m, n, k, trans_a, trans_b, 3, (m * k, k * n))
            for y, left, right in zip(found, a, b, strict=True):
                assert_same_bits(y, gemm.oracle(left, right))
