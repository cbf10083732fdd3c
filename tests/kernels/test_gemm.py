"""Matrix products: correct for every shape and flag, and their bits depend on values and sizes only."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from common.kernels import blas, gemm
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
]
LARGE = [(2700, 160, 160), (5, 9000, 1500), (2600, 130, 200)]


def product(a, b, m, n, k, trans_a=0, trans_b=0, batch=1, strides=(0, 0)):
    out = np.full((batch, m, n), np.nan if a.dtype.kind == "f" else 7, a.dtype)
    assert run(gemm.gemm_source(a.dtype), [a, b, out], [batch, m, n, k, trans_a, trans_b, *strides]) == 0
    return out


def operands(m, n, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        info = np.iinfo(dtype)
        return (rng.integers(info.min, info.max, size=s, dtype=dtype) for s in ((m, k), (k, n)))
    return (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [*SHAPES, *LARGE])
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_product(dtype, shape, trans_a, trans_b):
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    stored = np.ascontiguousarray(a.T) if trans_a else a, np.ascontiguousarray(b.T) if trans_b else b
    out = product(*stored, m, n, k, trans_a, trans_b)[0]
    exact = a.astype("float64") @ b.astype("float64")
    assert_same_bits(out, gemm.oracle(*stored, bool(trans_a), bool(trans_b)))
    bound = (k + 2) * np.finfo(dtype).eps * (np.abs(a).astype("float64") @ np.abs(b).astype("float64"))
    assert (np.abs(out - exact) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_empty_sizes(dtype):
    a = np.ones(100, dtype)
    assert (product(a, a, 3, 4, 0) == 0).all()
    assert not np.signbit(product(a, a, 3, 4, 0)).any()
    for m, n, batch in ((0, 4, 1), (3, 0, 1), (3, 4, 0)):
        assert product(a, a, m, n, 5, batch=batch).size == 0


def test_sizes_beyond_blas_are_refused():
    a = np.ones(1, "float32")
    out = np.full(1, 7, "float32")
    assert run(gemm.gemm_source("float32"), [a, a, out], [1, 1, 1, 2**31, 0, 0, 0, 0]) == gemm.TOO_LARGE
    assert out[0] == 7


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1, 2**31), (1, 2**31, 1, 1), (2, 1, 2**31, 0), (1, 2**31, 0, 0), (1, 1, 1, 2**31 - 1)]
)
def test_the_check_of_sizes_says_what_the_product_will_say(sizes):
    check = gemm.call("float32", *sizes, False, False).check
    assert check is not None
    assert check.buffers == ()
    refused = max(sizes) >= 2**31 and 0 not in sizes[:3]
    assert run(check.source, [], [*check.ints]) == (gemm.TOO_LARGE if refused else 0)


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


@pytest.mark.parametrize("m", [1, 2559, 2560, 2561, 5000])
@pytest.mark.parametrize("n", [1, 100, 8191, 8192])
def test_tiles_are_not_too_small(m, n):
    rows, columns = gemm.tiles(m, n, 3000)
    assert rows == m or (rows % 16 == 0 and rows >= 1280)
    assert columns == n or (columns % 16 == 0 and columns >= 4096 and rows == m)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_thread_inside_and_nothing_changed_outside(dtype):
    pair = blas._thread_functions()
    if pair is None:
        assert not gemm.threads_are_held()
        return
    get = ctypes.CFUNCTYPE(ctypes.c_int)(pair[0])
    put = ctypes.CFUNCTYPE(None, ctypes.c_int)(pair[1])
    before = get()
    try:
        results = []
        for count in (1, 2):
            put(count)
            a, b = operands(600, 500, 700, dtype)
            results.append(product(a, b, 600, 500, 700))
            assert get() == count
        assert_same_bits(*results)
    finally:
        put(before)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_integer_products_wrap(dtype, flags):
    m, n, k = 5, 7, 11
    a, b = operands(m, n, k, dtype)
    stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags)]
    assert_same_bits(product(*stored, m, n, k, *flags)[0], gemm.oracle(a, b))
    assert (product(a, b, m, n, 0) == 0).all()


@pytest.mark.parametrize("name", ["sgemm", "dgemm", "sdot", "ddot"])
def test_scipy_calls_the_functions_that_kernels_call(name, monkeypatch):
    """The wheel's library is found without SciPy; where it is not, what SciPy's capsules hold has the same bits."""
    results = []
    for way in ("library", "capsule"):
        if way == "capsule":
            monkeypatch.setattr(blas, "_libraries", list)
        results.append(_by_blas(name, blas._function_address(name)))
    assert_same_bits(*results)


def _by_blas(name, address):
    """What a BLAS function makes of fixed operands."""
    n, dtype = 301, np.dtype("float32" if name[0] == "s" else "float64")
    a, b = operands(n, n, n, dtype.name)
    real = ctypes.c_float if name[0] == "s" else ctypes.c_double
    size, step, one, zero, no = ctypes.c_int(n), ctypes.c_int(1), real(1), real(0), ctypes.c_char(b"N")
    x, y = (ctypes.c_void_p(array.ctypes.data) for array in (a, b))
    if name.endswith("dot"):
        size = ctypes.c_int(n * n)
        arguments = (ctypes.byref(size), x, ctypes.byref(step), y, ctypes.byref(step))
        return np.array(ctypes.CFUNCTYPE(real, *[ctypes.c_void_p] * 5)(address)(*arguments), dtype)
    out = np.zeros((n, n), dtype)
    c = ctypes.c_void_p(out.ctypes.data)
    given = (no, no, size, size, size, one, x, size, y, size, zero, c, size)
    arguments = [g if isinstance(g, ctypes.c_void_p) else ctypes.byref(g) for g in given]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)(*arguments)
    return out
