"""Matrix products: every product of both engines, for every shape, is one of the kernels in this file.

``out[s] = op(a[s]) @ op(b[s])``, row-major, for each slice s of a batch; op is the transpose where a flag
says so, never where strides would suggest it. float32 and float64 go to BLAS (alpha = 1, beta = 0, one
thread); integers are summed in a loop and wrap.

Kernel ``gemm`` (`gemm_source`):

- buffers: ``a`` (slices of m x k, or k x m if trans_a), ``b`` (k x n, or n x k if trans_b), ``out`` (batch,
  m, n); out does not overlap the operands;
- args: ``batch, m, n, k, trans_a, trans_b, stride_a, stride_b``; the strides are the elements from one slice
  to the next, 0 to use one slice for all;
- no scratch; status 0, or `TOO_LARGE` (nothing is written) if a size exceeds 2**31 - 1, the largest that BLAS
  takes;
- one row by one column is BLAS' dot product, which gemm would take five times as long for;
- k = 0 gives zeros; with m, n or batch 0 there is nothing to do; BLAS is not called.

A large product is cut into tiles of rows, or of columns when it has too few rows (`tiles`). The grid depends
on (m, n, k) only and is the same at one thread, so that threads, each owning whole tiles, change no bits
(`common.native.pool`). Cutting costs packing an operand again: measured at one thread (OpenBLAS 0.3.30, AVX-512), rows
of 1024 and up cost 0-2.5 %, 512 up to 10 %, columns of 4096 and up 0-2.4 %, of 1024 up to 8 %. From 1024 x 1024 x 1024
on there are at least two tiles, which costs 3-4 % in float32 and under 1 % in float64 there, and less above. A call
from Python with one 8 x 8 product takes 0.16 us in all (np.matmul with out= 0.98), holding BLAS to one thread 12 ns
of it.
"""

from __future__ import annotations

import textwrap
from functools import partial
from typing import Any

import numpy as np

from common.kernels import blas
from common.native import pool
from common.native.compile import compile_kernel
from common.op import NativeCall

__all__ = ["TOO_LARGE", "call", "gemm_source", "oracle", "tasks", "threads_are_held", "tile_source",
    "tiles",
]  # fmt: skip

TOO_LARGE = 1
"""Status: a size does not fit into the 32-bit integers of BLAS."""

LIMIT = 2**31 - 1

_ROWS, _COLUMNS, _WORK = 1280, 4096, 2**25
"""Least rows, columns and multiplications of a tile."""

_HALVED = 1024
"""Rows, columns and inner size from which there are at least two tiles."""

_SHARED = 2**22
"""Multiplications of a product or a batch from which threads share its tiles."""

_ARGS = 8

threads_are_held = blas.threads_are_held


def tiles(m: int, n: int, k: int) -> tuple[int, int]:
    """Return the rows and columns of a tile; the last tiles of a product may be smaller.

    Examples
    --------
    >>> tiles(512, 512, 512), tiles(1024, 1024, 1024), tiles(4000, 1000, 1000), tiles(64, 10000, 800)
    ((512, 512), (512, 1024), (1344, 1000), (64, 5008))
    """
    down = max(m // max(_ROWS, _WORK // max(n * k, 1)), 2 if min(m, n, k) >= _HALVED else 1)
    across = max(n // max(_COLUMNS, _WORK // max(m * k, 1)), 1) if down == 1 else 1
    rows = m if down == 1 else (-(-m // down) + 15) // 16 * 16
    columns = n if across == 1 else (-(-n // across) + 15) // 16 * 16
    return rows, columns


def tasks(batch: int, m: int, n: int, k: int) -> int:
    """Return how many tasks threads make of products of floats; 1 if one thread computes them."""
    if min(batch, m, n, k) == 0 or m == n == 1 or batch * m * n * k < _SHARED:
        return 1
    rows, columns = tiles(m, n, k)
    return batch * -(-m // rows) * -(-n // columns)


def gemm_source(dtype: Any) -> str:
    """Return the kernel ``out[s] = op(a[s]) @ op(b[s])`` for a float or integer dtype."""
    kind = np.dtype(dtype)
    body = _FLOAT if kind.kind == "f" else _INTEGER
    return ("def gemm(bufs, args):\n" + _HEAD + body).format(kind=kind)


def tile_source(dtype: Any) -> str:
    """Return the kernel of one tile: arguments of ``gemm``, then the tile's number; columns, rows, slices in turn."""
    return ("def gemm_tile(bufs, args):\n" + _HEAD + _GRID + _ONE_TILE).format(kind=np.dtype(dtype))


_HEAD = """    a = buffer(bufs, 0, {kind})
    b = buffer(bufs, 1, {kind})
    out = buffer(bufs, 2, {kind})
    batch = args[0]
    m = args[1]
    n = args[2]
    k = args[3]
    trans_a = args[4]
    trans_b = args[5]
    stride_a = args[6]
    stride_b = args[7]
    if batch == 0 or m == 0 or n == 0:
        return 0
"""

_GRID = f"""    rows = m
    columns = n
    down = m // max({_ROWS}, {_WORK} // (n * k))
    if down < 2 and min(m, min(n, k)) >= {_HALVED}:
        down = 2
    if down > 1:
        rows = ((m + down - 1) // down + 15) // 16 * 16
    else:
        across = n // max({_COLUMNS}, {_WORK} // (m * k))
        if across > 1:
            columns = ((n + across - 1) // across + 15) // 16 * 16
    lda = m if trans_a else k
    ldb = k if trans_b else n
"""


def _tile(indent: int) -> str:
    """The product of the tile at row i and column j of slice s."""
    lines = """first = s * stride_a + (i if trans_a else i * k)
second = s * stride_b + (j * k if trans_b else j)
third = (s * m + i) * n + j
height = min(rows, m - i)
width = min(columns, n - j)
blas_gemm(a, first, b, second, out, third, height, width, k, lda, ldb, n, trans_a, trans_b)
"""
    return textwrap.indent(lines, " " * indent)


_ONE_TILE = f"""    wide = (n + columns - 1) // columns
    tall = (m + rows - 1) // rows
    task = args[{_ARGS}]
    j = task % wide * columns
    i = task // wide % tall * rows
    s = task // (wide * tall)
{_tile(4)}    return 0
"""

_FLOAT = f"""    if m > {LIMIT} or n > {LIMIT} or k > {LIMIT}:
        return {TOO_LARGE}
    if k == 0:
        for i in range(batch * m * n):
            out[i] = {{kind}}(0)
        return 0
    hold_threads()
    if m == 1 and n == 1:
        for s in range(batch):
            blas_dot(a, s * stride_a, b, s * stride_b, out, s, k)
        release_threads()
        return 0
{_GRID}    tasks = batch * ((m + rows - 1) // rows) * ((n + columns - 1) // columns)
    if tasks > 1 and batch * m * n * k >= {_SHARED} and there_are_threads(a) != 0:
        share_tiles(bufs, args, a, {_ARGS}, tasks)
    else:
        for s in range(batch):
            for i in range(0, m, rows):
                for j in range(0, n, columns):
{_tile(20)}    release_threads()
    return 0
"""

_CHECK = f"""def gemm_sizes(bufs, args):
    if args[0] * args[1] * args[2] != 0 and max(args[1], args[2], args[3]) > {LIMIT}:
        return {TOO_LARGE}
    return 0
"""

_INTEGER = """    down_a = 1 if trans_a else k
    across_a = m if trans_a else 1
    down_b = 1 if trans_b else n
    across_b = k if trans_b else 1
    for s in range(batch):
        for i in range(m):
            o = (s * m + i) * n
            for j in range(n):
                out[o + j] = {kind}(0)
            for p in range(k):
                x = a[s * stride_a + i * down_a + p * across_a]
                q = s * stride_b + p * down_b
                for j in range(n):
                    out[o + j] = to_{kind}(out[o + j] + x * b[q + j * across_b])
    return 0
"""


def call(
    dtype: Any,
    batch: Any,
    m: Any,
    n: Any,
    k: Any,
    trans_a: bool,
    trans_b: bool,
    shared_a: bool = False,
    shared_b: bool = False,
) -> NativeCall:
    """Return the call of ``gemm`` for contiguous operands; a shared one is a single matrix for all slices."""
    strides = (0 if shared_a else m * k, 0 if shared_b else k * n)
    ints = (batch, m, n, k, int(trans_a), int(trans_b), *strides)
    errors = {TOO_LARGE: "a matrix has more than 2**31 - 1 rows or columns, which BLAS cannot address"}
    check = NativeCall(_CHECK, "gemm_sizes", (batch, m, n, k), (), errors=errors, sure_below=LIMIT + 1)
    return NativeCall(gemm_source(dtype), "gemm", ints, errors=errors, sure_below=LIMIT + 1, check=check)


def oracle(a: np.ndarray, b: np.ndarray, trans_a: bool = False, trans_b: bool = False) -> np.ndarray:
    """Return ``op(a) @ op(b)`` of one or a batch of matrices without a compiled kernel, with the same bits.

    Floats go tile by tile through SciPy's own wrapper of the same BLAS, on one thread; integers are summed by
    numpy and wrap.
    """
    if a.ndim == 3:
        slices = [oracle(x, y, trans_a, trans_b) for x, y in zip(a, b, strict=True)]
        return np.stack(slices) if slices else np.zeros((0, *_shape(a, b, trans_a, trans_b)[:2]), a.dtype)
    m, n, k = _shape(a, b, trans_a, trans_b)
    left, right = a.T if trans_a else a, b.T if trans_b else b
    out = np.zeros((m, n), a.dtype)
    if 0 in (m, n, k):
        return out
    if a.dtype.kind != "f":
        for p in range(k):
            out += left[:, p, None] * right[p]
        return out
    from scipy.linalg.blas import ddot, dgemm, sdot, sgemm

    if m == n == 1:
        with blas.one_thread():
            out[0, 0] = (sdot if a.dtype == np.float32 else ddot)(a.ravel(), b.ravel())
        return out

    function = sgemm if a.dtype == np.float32 else dgemm
    rows, columns = tiles(m, n, k)
    with blas.one_thread():
        for i in range(0, m, rows):
            for j in range(0, n, columns):
                x, y = left[i : i + rows], right[:, j : j + columns]
                # Fortran order and flags as in the kernel: out.T = op(b).T @ op(a).T
                second = np.asfortranarray(y if trans_b else y.T)
                first = np.asfortranarray(x if trans_a else x.T)
                tile = function(1.0, second, first, trans_a=trans_b, trans_b=trans_a)
                out[i : i + rows, j : j + columns] = tile.T
    return out


def _shape(a: np.ndarray, b: np.ndarray, trans_a: bool, trans_b: bool) -> tuple[int, int, int]:
    m, k = a.shape[-2:][::-1] if trans_a else a.shape[-2:]
    return m, b.shape[-2] if trans_b else b.shape[-1], k


def _tile_address(dtype: str) -> int:
    return compile_kernel(tile_source(dtype), "gemm_tile")


pool.define_for_threads(blas.tile_symbol("float"), partial(_tile_address, "float32"))
pool.define_for_threads(blas.tile_symbol("double"), partial(_tile_address, "float64"))
