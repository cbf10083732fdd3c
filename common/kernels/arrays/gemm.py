"""Matrix products: every product of both engines, for every shape, is one of the kernels in this file, or, of long
batches of the smallest matrices, that of `common.kernels.arrays.batched_products`.

``out[s] = op(a[s]) @ op(b[s])``, row-major, for each slice s of a batch; op is the transpose where a flag
says so, never where strides would suggest it.

An element is a sum of k products. Of floats they are added up in this order, whatever the processor, the transposes,
and the element's place:

- in blocks of `DEEP` products, of which each is a chain of fused multiply-adds, ``sum = fma(x, y, sum)``, from +0.0;
  they round x * y + sum once. What the blocks give is added, the first two first;
- if m or n is 1, in `LANES` chains over all of k, as S has lanes (`common.core.numerics`): lane j takes the products j,
  j + LANES, ...; to each lane +0.0 is added, and then the lanes are folded by halves. So the sum is never -0.0. A chain
  waits for its last addition, and a vector has few elements whose chains could fill the time.

Integers wrap: `common.kernels.arrays.integer_products`. `oracle` is the same in numpy, without a compiler.

Kernel ``gemm`` (`gemm_source`):

- buffers: ``a`` (slices of m x k, or k x m if trans_a), ``b`` (k x n, or n x k if trans_b), ``out`` (batch,
  m, n); out does not overlap the operands;
- args: ``batch, m, n, k, trans_a, trans_b, stride_a, stride_b``; the strides are the elements from one slice
  to the next, 0 to use one slice for all;
- no scratch but 60 KB of stack, of large products 680 KB; status 0;
- k = 0 gives zeros; with m, n or batch 0 there is nothing to do.

*Why not BLAS.* Its bits depend on its version, the processor and the number of its threads, and follow from blocks that
it chooses, so that nothing can be computed in another way than by the very same call. The order above is one that
processors like (`common.kernels.arrays.gemm_code`), and leaves the rest open: an operand may be transposed before,
rows may be added or taken away, sums may stay in registers for what comes next. Times on one core of a loaded AMD EPYC
(Zen 4) relative to numpy's OpenBLAS 0.3.31, which knows AVX-512 (`python -m benchmarks.products`):

========================  =======  =======    ========================  =======  =======
rows x columns x inner    float32  float64    rows x columns x inner    float32  float64
========================  =======  =======    ========================  =======  =======
8 x 8 x 8                 0.22     0.21       256 x 256 x 256           0.90     0.94
64 x 64 x 64              0.92     0.97       1024 x 1024 x 1024        1.01     1.04
32 x 512T x 160           0.59     0.83       2048 x 2048T x 512        0.98     1.06
512T x 160 x 32           0.85     0.86       64 x 10000 x 800          1.01     1.16
64 x 256T x 784           0.70     0.87       1 x 1000 x 1000           1.42     1.19
64 x 10T x 128            0.92     1.17       1 x 1000T x 1000          0.91     1.01
96T x 128 x 1024          0.89     0.86       1 x 1 x 1000              0.31     0.45
========================  =======  =======    ========================  =======  =======

With registers of 32 bytes, as AVX2 has them, a product of 1024 x 1024 x 1024 is 0.9x as fast as OpenBLAS,
one of 32 x 512T x 160 1.7x as fast.

Threads share tiles of large products (`tiles`, `common.runtime.thread_pool`); each is computed whole by one of them.
"""

from __future__ import annotations

import textwrap
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler.compile import compile_kernel
from common.compiler.exact_sums import fma
from common.core.numerics import DEEP, LANES
from common.core.op import NativeCall
from common.kernels.arrays import batched_products, integer_products
from common.runtime import thread_pool

__all__ = ["apart_source", "call", "gemm_source", "of_matrices", "oracle", "tasks", "tile_source",
    "tile_symbol", "tiles",
]  # fmt: skip

_TILES, _WORK = 16, 2**21
"""Most tiles of a product, and about the least multiplications of one: 20 to 60 us."""

_ROWS, _COLUMNS = 16, 48
"""Tiles are a multiple of so many rows or columns: whole panels, see `common.kernels.arrays.gemm_code`."""

_SHARED = 2**22
"""Multiplications of a product or a batch from which threads share its tiles."""

_WIDE = 16
"""Elements of a row from which on a product of inner size 1 is a loop over elements."""

_ARGS = 8


def tiles(m: int, n: int, k: int) -> tuple[int, int]:
    """Return the rows and columns of a tile; the last tiles of a product may be smaller.

    Only threads need tiles. The longer side is divided; a tile of rows copies the right operand into panels again.

    Examples
    --------
    >>> tiles(64, 64, 64), tiles(512, 128, 512), tiles(1024, 1024, 1024), tiles(64, 10000, 800)
    ((64, 64), (32, 128), (64, 1024), (64, 672))
    """
    count = max(min(_TILES, m * n * k // _WORK), 1)
    if m >= n:
        return (-(-m // count) + _ROWS - 1) // _ROWS * _ROWS, n
    return m, (-(-n // count) + _COLUMNS - 1) // _COLUMNS * _COLUMNS


def tasks(batch: int, m: int, n: int, k: int) -> int:
    """Return how many tasks threads make of products of floats; 1 if one thread computes them."""
    if min(batch, m, n, k) == 0 or batch * m * n * k < _SHARED:
        return 1
    rows, columns = tiles(m, n, k)
    return batch * -(-m // rows) * -(-n // columns)


def gemm_source(dtype: Any, vectors: bool = True) -> str:
    """Return the kernel ``out[s] = op(a[s]) @ op(b[s])`` for a float dtype.

    Parameters
    ----------
    vectors : whether m or n may be 1.
    """
    return ("def gemm(bufs, args):\n" + _HEAD + _float(vectors)).format(kind=np.dtype(dtype))


def of_matrices(source: str) -> str:
    """Return a kernel of products for sizes m and n that are not 1, of which less is compiled; others as they are."""
    return _of_matrices().get(source, source)


@cache
def _of_matrices() -> dict[str, str]:
    return {gemm_source(dtype): gemm_source(dtype, vectors=False) for dtype in ("float32", "float64")}


def tile_source(dtype: Any) -> str:
    """Return the kernel of one tile: arguments of ``gemm``, then the tile's number; columns, rows, slices in turn."""
    return ("def gemm_tile(bufs, args):\n" + _HEAD + _GRID + _LEADING + _ONE_TILE).format(kind=np.dtype(dtype))


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
    count = max(min({_TILES}, m * n * k // {_WORK}), 1)
    if m >= n:
        rows = ((m + count - 1) // count + {_ROWS - 1}) // {_ROWS} * {_ROWS}
    else:
        columns = ((n + count - 1) // count + {_COLUMNS - 1}) // {_COLUMNS} * {_COLUMNS}
"""


_LEADING = """    lda = m if trans_a else k
    ldb = k if trans_b else n
"""

_PLACES = """first = s * stride_a + (i if trans_a else i * k)
second = s * stride_b + (j * k if trans_b else j)
third = (s * m + i) * n + j
height = min(rows, m - i)
width = min(columns, n - j)
"""

_VECTORS = """if n == 1:
    multiply_vector(a, first, b, second, out, third, height, k, lda, trans_a if m > 1 else 0)
elif m == 1:
    multiply_vector(b, second, a, first, out, third, width, k, ldb, 1 - trans_b)
else:
"""

_MULTIPLY = "multiply(a, first, b, second, out, third, height, width, k, lda, ldb, n, trans_a, trans_b)\n"


def _tile(vectors: bool) -> str:
    """The product of a tile."""
    return _PLACES + (_VECTORS + textwrap.indent(_MULTIPLY, "    ") if vectors else _MULTIPLY)


_ONE_TILE = f"""    wide = (n + columns - 1) // columns
    tall = (m + rows - 1) // rows
    task = args[{_ARGS}]
    j = task % wide * columns
    i = task // wide % tall * rows
    s = task // (wide * tall)
{textwrap.indent(_tile(vectors=True), "    ")}    return 0
"""


def _float(vectors: bool) -> str:
    """The body of a kernel of floats: products of tiles, zeros where there is nothing to add."""
    return f"""    if k == 0:
        for q in range(batch * m * n):
            out[q] = {{kind}}(0)
        return 0
    if batch * m * n * k >= {_SHARED} and there_are_threads(a) != 0:
{textwrap.indent(_GRID, "    ")}        tasks = batch * ((m + rows - 1) // rows) * ((n + columns - 1) // columns)
        if tasks > 1:
            share_tiles(bufs, args, a, {_ARGS}, tasks)
            return 0
{_LEADING}    rows = m
    columns = n
    i = 0
    j = 0
    for s in range(batch):
{textwrap.indent(_tile(vectors), " " * 8)}    return 0
"""


def apart_source(dtype: Any) -> str:
    """Return the kernel of a float matrix and a vector: out[i] = matrix[i] @ vector, i < count, each of k products.

    Args: ``count, k, ld, columns``: a row, or where `columns` is 1 a column, begins `ld` elements behind the last one.
    """
    kind = np.dtype(dtype)
    return f"""def gemv_apart(bufs, args):
    matrix = buffer(bufs, 0, {kind})
    vector = buffer(bufs, 1, {kind})
    out = buffer(bufs, 2, {kind})
    multiply_vector(matrix, 0, vector, 0, out, 0, args[0], args[1], args[2], args[3])
    return 0
"""


def _outer_source(dtype: Any, turned: bool, vector: bool) -> str:
    """Kernel source of products of columns and rows.

    A chain of one product is fma(x, y, +0.0): x y, but of zeros never -0.0. Lanes add +0.0 to it once more.

    Parameters
    ----------
    turned : the longer operand is the first one.
    vector : one of the operands has one element.
    """
    kind = np.dtype(dtype).name
    plain = vector or np.dtype(dtype).kind != "f"
    return f"""def outer(bufs, args):
    x = buffer(bufs, {int(turned)}, {kind})
    y = buffer(bufs, {int(not turned)}, {kind})
    out = buffer(bufs, 2, {kind})
    rows = args[1]
    columns = args[2]
    wide()
    for s in range(args[0]):
        for r in range(rows):
            v = x[s * args[3] + r]
            for c in range(columns):
                w = y[s * args[4] + c]
                p = mul(v, w)
                q = add(p, {kind}(0))
                out[{"(s * columns + c) * rows + r" if turned else "(s * rows + r) * columns + c"}] = {
        "q" if plain else f"where(logical_or(eq(v, {kind}(0)), eq(w, {kind}(0))), q, p)"
    }
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
    """Return the call of ``gemm`` for contiguous operands; a shared one is a single matrix for all slices.

    Where the inner size is known to be 1, a loop over the elements does it: a chain of one product is x * y + 0. Long
    batches of matrices of up to four rows and columns have a kernel of their own, `batched_products`.
    """
    if not (shared_a or shared_b) and batched_products.pays(dtype, batch, m, n, k):
        return NativeCall(batched_products.source(dtype, m, n, k, trans_a, trans_b), "batched_products", (batch,))
    strides = (0 if shared_a else m * k, 0 if shared_b else k * n)
    if type(k) is type(m) is type(n) is int and k == 1 and (1 in (m, n) or n >= _WIDE):
        turned = n == 1  # the elements of a column are one row
        sizes = (batch, n, m) if turned else (batch, m, n)
        source = _outer_source(dtype, turned, 1 in (m, n))
        return NativeCall(source, "outer", (*sizes, *(strides[::-1] if turned else strides)))
    if np.dtype(dtype).kind != "f":
        return integer_products.call(dtype, batch, (m, n, k), (trans_a, trans_b), strides)
    ints = (batch, m, n, k, int(trans_a), int(trans_b), *strides)
    source = gemm_source(dtype)
    known = type(m) is int and type(n) is int  # of other sizes a plan says which kernel does
    return NativeCall(of_matrices(source) if known and m != 1 != n else source, "gemm", ints)


def oracle(a: np.ndarray, b: np.ndarray, trans_a: bool = False, trans_b: bool = False) -> np.ndarray:
    """Return ``op(a) @ op(b)`` of one or a batch of matrices without a compiled kernel, with the same bits."""
    if a.ndim == 3:
        slices = [oracle(x, y, trans_a, trans_b) for x, y in zip(a, b, strict=True)]
        return np.stack(slices) if slices else np.zeros((0, *_shape(a, b, trans_a, trans_b)[:2]), a.dtype)
    m, n, k = _shape(a, b, trans_a, trans_b)
    left, right = a.T if trans_a else a, b.T if trans_b else b
    out = np.zeros((m, n), a.dtype)
    if a.dtype.kind != "f":
        for p in range(k):
            out += left[:, p, None] * right[p]
        return out
    with np.errstate(all="ignore"):
        if 1 in (m, n):
            lanes = [_chain(left[:, j::LANES], right[j::LANES]) + out for j in range(LANES)]
            while len(lanes) > 1:
                lanes = [x + y for x, y in zip(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :], strict=True)]
            return lanes[0]
        for p in range(0, k, DEEP):
            block = _chain(left[:, p : p + DEEP], right[p : p + DEEP])
            out = out + block if p else block
    return out


def _chain(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sums of products, each added by one fused multiply-add."""
    total = np.zeros((left.shape[0], right.shape[1]), left.dtype)
    for p in range(left.shape[1]):
        total = fma(left[:, p, None], right[p], total)
    return total


def _shape(a: np.ndarray, b: np.ndarray, trans_a: bool, trans_b: bool) -> tuple[int, int, int]:
    m, k = a.shape[-2:][::-1] if trans_a else a.shape[-2:]
    return m, b.shape[-2] if trans_b else b.shape[-1], k


def tile_symbol(element: str) -> str:
    """Return the symbol of the kernel of one tile for elements of LLVM type ``float`` or ``double``."""
    return f"twingrad_{'s' if element == 'float' else 'd'}gemm_tile"


def _tile_address(dtype: str) -> int:
    return compile_kernel(tile_source(dtype), "gemm_tile", ready_made=True)


thread_pool.define_for_threads(tile_symbol("float"), partial(_tile_address, "float32"))
thread_pool.define_for_threads(tile_symbol("double"), partial(_tile_address, "float64"))
