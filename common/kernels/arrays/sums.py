"""Kernels that sum and multiply, and the maximum and minimum, over rows or columns; the order is defined once.

Definition: `common.core.numerics`; in numpy: `sum_oracle`. A kernel here is source text for
`common.compiler.compile.compile_kernel`; its name is that of the function, `sum_rows` for `sum_rows_source`.
Buffers are C-contiguous, of the kernel's dtype: float32, float64 or int64, for extremes also bool and the smaller
signed ints (other dtypes are converted first).

=============  ===============  =======  ===========================  ==================
kernel         buffers          args     result                       scratch
=============  ===============  =======  ===========================  ==================
``sum_rows``   x, out           R, C     out[r] = S(x[r, :])          none
``sum_cols``   x, out, scratch  B, R, C  out[b, c] = S(x[b, :, c])    `sum_cols_scratch`
``prod_rows``  x, out           R, C     out[r] = P(x[r, :])          none
``prod_cols``  x, out, scratch  B, R, C  out[b, c] = P(x[b, :, c])    `sum_cols_scratch`
``max_rows``   x, out           R, C     out[r] = max(x[r, :])        none
``min_rows``   x, out           R, C     out[r] = min(x[r, :])        none
``max_cols``   x, out           B, R, C  out[b, c] = max(x[b, :, c])  none
``min_cols``   x, out           B, R, C  out[b, c] = min(x[b, :, c])  none
=============  ===============  =======  ===========================  ==================

P is S with * for + and 1 for +0.0: 16 lanes start at 1, blocks of 1024, lanes and blocks are multiplied in the order
in which S adds them.

Kernels of rows have a further int, see `common.kernels.arrays.shared_parts`.

Status: 0, or `EMPTY` from a maximum or minimum over no elements (nothing is written then), unless they are bools:
the maximum of no bools is False, the minimum True.

A fused kernel sums columns without storing the summed elements; with scratch of ``sum_cols_scratch(R, C)``
elements, allocated for C <= `TILE` or its own tiles of that width, and the functions of
`common.kernels.arrays.row_functions`::

    start_columns(acc, 0, C, R)
    for r in range(R):
        if r & (BLOCK - 1) == 0 and r > 0:
            carry_columns(acc, 0, C, (r >> 10) - 1)
        lane = (r & (LANES - 1)) * C
        for c in range(C):
            acc[lane + c] = acc[lane + c] + ...
    finish_columns(acc, 0, C, R, out, 0)

How `LANES` was chosen
----------------------
Nanoseconds per element on one AVX-512 core (Zen 4), best of 7-9 runs, numpy beside it; columns are first-axis
sums of rows x columns elements, rows last-axis sums; streaming over rows, 4 rows of equal lane at a time:

==================  ==============  =====  =======  =======  =======  =======
float32             shape           numpy  8 lanes  16       32       64
==================  ==============  =====  =======  =======  =======  =======
columns             1000 x 1000     .085   .059     .059     .068     .071
columns             1000 x 50       .394   .070     .059     .068     .078
columns             64 x 128        .295   .098     .095     .169     .194
columns             1000 x 512      .107   .060     .060     .071     .071
columns, 1 row      1000 x 512      .107   .065     .101     .099     .102
columns, ymm        64 x 128        .361   .079     .087     .123     .212
rows                1000 x 1000     .165   .061     .046     .043     .044
rows                1000 x 50       .528   .062     .055     .057     .068
rows                1000 x 10       2.02   .172     .18      .23      .34
==================  ==============  =====  =======  =======  =======  =======

float64: columns 1000 x 1000 .120 .122 .128 .143 (numpy .135), rows within 3 % of each other. Keeping the lane
in the outer loop is as fast or slower everywhere. 16 lanes are within noise of the best for columns, where
many lanes cost accumulators beyond the first-level cache and a longer fold, and hide the latency of an
addition in rows on all of SSE2, AVX2 and AVX-512.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.shared_parts import in_parts

__all__ = [
    "EMPTY", "TILE", "extreme_dtype", "few_rows_source", "max_cols_source", "max_rows_source", "min_cols_source",
    "min_rows_source",
    "prod_cols_source", "prod_rows_source", "sum_cols_scratch", "sum_cols_source", "sum_oracle", "sum_rows_source",
]  # fmt: skip

SHORT_BYTES = 400
"""Bytes of rows up to which the lanes of several are folded together: of longer rows the fold is a small part."""

EMPTY = 1
"""Status: an extreme of no elements."""

TILE = 1024
"""Columns that are summed together; wider arrays go tile by tile."""

VECTOR_BYTES = 64
"""Bytes of columns whose lanes are held in registers together: an AVX-512 register, of which LANES leave as many."""

FEW_ROWS = 48
"""Rows up to which four lanes are folded at a time: sums of 16 x 4,096 take a third of the time, of 48 x 4,096 0.7."""

_FEW, _IN_CACHE = (8, 256), 1 << 18
"""From how many rows on, and up to how many, these are summed vector after vector of columns; or bytes of fewer or more
rows of which this holds, because a second-level cache holds them.
"""

_PLACES, _BESIDE = 1 << 16, (1024, 4096, 40)
"""Bytes of few elements; and bytes between rows whose columns share few places of the caches, where a vector of columns
is gone before the next is read: of more rows than so many, and of fewer (benchmarks/gates/test_reductions.py). Rows
that do not fill the lanes are few enough to stay.
"""


def sum_oracle(x: np.ndarray, product: bool = False) -> np.ndarray:
    """Return S over the last axis, or P, in plain numpy, from the definition.

    Parameters
    ----------
    x : (..., n)
        float32, float64 or int64.

    Examples
    --------
    >>> sum_oracle(np.full((2, 3000), 0.5, np.float32))
    array([1500., 1500.], dtype=float32)
    """
    n = x.shape[-1]
    if n > BLOCK:
        return sum_oracle(sum_oracle(_pad(x, BLOCK, product), product), product)
    combine = np.multiply if product else np.add
    rows = _pad(x, LANES, product)
    lanes = np.full((*x.shape[:-1], LANES), int(product), x.dtype)
    with np.errstate(all="ignore"):
        for j in range(rows.shape[-2]):
            lanes = combine(lanes, rows[..., j, :])
        for h in (LANES >> k for k in range(1, LANES.bit_length())):
            lanes = combine(lanes[..., :h], lanes[..., h : 2 * h])
    return lanes[..., 0]


def _pad(x: np.ndarray, width: int, product: bool) -> np.ndarray:
    """Split the last axis into rows of `width`, the last one filled up with +0.0, or 1."""
    n = x.shape[-1]
    missing = np.full((*x.shape[:-1], -n % width), int(product), x.dtype)
    return np.concatenate([x, missing], axis=-1).reshape(*x.shape[:-1], -(-n // width), width)


def sum_cols_scratch(rows: Any, columns: Any) -> Any:
    """Return the elements of scratch that sums of columns need: LANES rows per level."""
    levels = 1
    while rows > BLOCK:
        rows, levels = -(-rows // BLOCK), levels + 1
    return levels * LANES * min(columns, TILE)


def sum_rows_source(dtype: Any, apart: bool = False) -> str:
    """Return the kernel ``out[r] = S(x[r, :])``; with `apart` the third int says how far a row is from the next."""
    return _rows_source("sum_rows", "block_sum", np.dtype(dtype), apart, least=0, short="short_sums")


def prod_rows_source(dtype: Any, apart: bool = False) -> str:
    """Return the kernel ``out[r] = P(x[r, :])``."""
    return _rows_source("prod_rows", "block_product", np.dtype(dtype), apart, least=0, short="short_products")


def max_rows_source(dtype: Any, apart: bool = False) -> str:
    """Return the kernel ``out[r] = max(x[r, :])``; NaN if any is NaN, +0 above -0."""
    return _rows_source("max_rows", "row_max", np.dtype(dtype), apart, least=int(dtype != np.bool_))


def min_rows_source(dtype: Any, apart: bool = False) -> str:
    """Return the kernel ``out[r] = min(x[r, :])``; NaN if any is NaN, -0 below +0."""
    return _rows_source("min_rows", "row_min", np.dtype(dtype), apart, least=int(dtype != np.bool_))


_FEW_JOINED = {
    "sum": ("({} + {})", "({} + {}(0))", 4), "prod": ("({} * {})", "{}", 4),
    "max": ("maximum({}, {})", "{}", 11), "min": ("minimum({}, {})", "{}", 11),
}  # fmt: skip
"""Per reduction what joins two elements, what one is before, and up to how many of a row are joined one by one."""


def few_rows_source(kind: str, dtype: Any, columns: int) -> str | None:
    """Return the kernel ``few_rows`` of a reduction of rows of few elements, in vectors of rows; None of longer ones.

    The order is that of `common.kernels.arrays.fold_rows`: an element waits for the next but one.
    """
    kind_of, (join, leaf, most) = buffer_dtype(np.dtype(dtype)), _FEW_JOINED[kind]
    if not 2 <= columns <= most:
        return None
    parts = [leaf.format(f"x[r * {columns} + {c}]", kind_of) for c in range(columns)]
    while len(parts) > 2:
        parts = [join.format(*parts[i : i + 3 : 2]) if i + 2 < len(parts) else parts[i] for i in (0, 1)] + parts[4:]
    return f"""def few_rows(bufs, args):
    x = buffer(bufs, 0, {kind_of})
    out = buffer(bufs, 1, {kind_of})
{in_parts(2, "args[0]", f"args[0] * {LANES}", "x")}    for r in range(low, high):
        out[r] = {join.format(*parts)}
    return 0
"""


def extreme_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which the extreme of elements is found: their own, but for unsigned ones."""
    return np.dtype(np.int16) if dtype == np.uint8 else dtype


def _rows_source(name: str, function: str, dtype: np.dtype[Any], apart: bool, least: int, short: str = "") -> str:
    """The kernel of a row by row `function`; short rows that follow each other many at a time by that named `short`."""
    name, distance, whole = (f"{name}_apart", "args[2]", 3) if apart else (name, "columns", 2)
    together = f"""
    if columns <= {SHORT_BYTES // dtype.itemsize}:
        first = low + (high - low) // {LANES} * {LANES}
        {short}(x, low * columns, out, low, first - low, columns)""" if short and not apart else ""  # fmt: skip
    return f"""def {name}(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    out = buffer(bufs, 1, {buffer_dtype(dtype)})
    columns = args[1]
    if args[0] > 0 and columns < {least}:
        return {EMPTY}
{in_parts(whole, "args[0]", f"args[0] * max(columns, {LANES})", "x")}    first = low{together}
    for r in range(first, high):
        out[r] = {function}(x, r * {distance}, columns)
    return 0
"""


def sum_cols_source(dtype: Any) -> str:
    """Return the kernel ``out[b, c] = S(x[b, :, c])``."""
    return _cols_source("sum_cols", np.dtype(dtype), "block_sum", "columns", "+")


def prod_cols_source(dtype: Any) -> str:
    """Return the kernel ``out[b, c] = P(x[b, :, c])``."""
    return _cols_source("prod_cols", np.dtype(dtype), "block_product", "products", "*")


def whole_columns(kind: np.dtype[Any], parts: str) -> str:
    """The part of a kernel that sums few rows in registers, and then returns.

    Parameters
    ----------
    parts : what follows "whole_" in the name of a function of `common.kernels.arrays.row_functions`.
    """
    return f"""
    held = min({BLOCK}, {_IN_CACHE // kind.itemsize} // (args[2] + 1))
    some = args[1] >= {_FEW[0]} and args[1] <= {_FEW[1]}
    beside = {_BESIDE[0] // kind.itemsize} if args[1] > {_BESIDE[2]} else {_BESIDE[1] // kind.itemsize}
    apart = (args[2] & (beside - 1)) != 0 or args[1] * args[2] <= {_PLACES // kind.itemsize} or args[1] <= {FEW_ROWS}
    if args[2] >= {VECTOR_BYTES // kind.itemsize} and apart and (some or args[1] <= held):
        for b in range(args[0]):
            whole_{parts}(x, b * args[1] * args[2], args[1], args[2], out, b * args[2])
        return 0"""


def _cols_source(name: str, kind: np.dtype[Any], block: str, parts: str, sign: str) -> str:
    """Four rows of equal lane are added per pass over the accumulators.

    Where a tile is whole rows, the LANES rows of a group lie side by side in x and in the accumulators, and one loop
    runs over all of them.
    """
    return f"""def {name}(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    acc = buffer(bufs, 2, {kind})
    batch = args[0]
    rows = args[1]
    columns = args[2]
    if columns == 1:
        for b in range(batch):
            out[b] = {block}(x, b * rows, rows)
        return 0{whole_columns(kind, parts)}
    together = {LANES} if columns <= {TILE} else 1
    group = {LANES} * columns
    for b in range(batch):
        for c0 in range(0, columns, {TILE}):
            width = min({TILE}, columns - c0)
            start_{parts}(acc, 0, width, rows)
            for r0 in range(0, rows, {BLOCK}):
                if r0 > 0:
                    carry_{parts}(acc, 0, width, (r0 >> {BLOCK.bit_length() - 1}) - 1)
                r1 = min(rows, r0 + {BLOCK})
                r = r0
                while r + {4 * LANES} <= r1:
                    for lane in range(0, {LANES}, together):
                        a = lane * width
                        p = (b * rows + r + lane) * columns + c0
                        q = p + group
                        s = q + group
                        t = s + group
                        for c in range(together * width):
                            acc[a + c] = acc[a + c] {sign} x[p + c] {sign} x[q + c] {sign} x[s + c] {sign} x[t + c]
                    r += {4 * LANES}
                while r < r1:
                    a = (r & {LANES - 1}) * width
                    p = (b * rows + r) * columns + c0
                    taken = min(together, r1 - r)
                    for c in range(taken * width):
                        acc[a + c] = acc[a + c] {sign} x[p + c]
                    r += taken
            finish_{parts}(acc, 0, width, rows, out, b * columns + c0)
    return 0
"""


def max_cols_source(dtype: Any) -> str:
    """Return the kernel ``out[b, c] = max(x[b, :, c])``; NaN if any is NaN, +0 above -0."""
    return _extreme_cols_source("max", np.dtype(dtype))


def min_cols_source(dtype: Any) -> str:
    """Return the kernel ``out[b, c] = min(x[b, :, c])``; NaN if any is NaN, -0 below +0."""
    return _extreme_cols_source("min", np.dtype(dtype))


def _extreme_cols_source(name: str, dtype: np.dtype[Any]) -> str:
    empty = f"return {EMPTY}"
    if dtype == np.bool_:
        empty = f"""for i in range(batch * columns):
            out[i] = bool_({int(name == "min")})
        return 0"""
    return f"""def {name}_cols(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    out = buffer(bufs, 1, {buffer_dtype(dtype)})
    batch = args[0]
    rows = args[1]
    columns = args[2]
    if rows < 1 and batch * columns > 0:
        {empty}
    if columns == 1:
        for b in range(batch):
            out[b] = row_{name}(x, b * rows, rows)
        return 0
    for b in range(batch):
        p = b * rows * columns
        o = b * columns
        for c in range(columns):
            out[o + c] = x[p + c]
        {name}_of_rows(out, o, x, p + columns, columns, rows - 1)
    return 0
"""
