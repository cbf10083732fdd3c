"""Distances of all pairs of rows and their slopes, without the differences in memory: the eager engine runs them.

==============  ===========================  ==========  ======================================================
kernel          buffers                      args        result
==============  ===========================  ==========  ======================================================
``distances``   a, b, out, scratch           B, m, n, k  out[s, i, j] = sqrt(S((a[s, i, :] - b[s, j, :])^2)), or
                                                         S(|...|), or the largest |...|
``pairs``       a, a, out, scratch           1, n, n, k  the same for i < j alone, row after row
``slopes``      g, y, a, b, out, scratch     B, m, n, k  out[s, i, :] = S over j of (a[s, i, :] - b[s, j, :]) w,
                                                         w = g[s, i, j] / y[s, i, j], 0 where that y is 0
``turned``      g, y, a, b, out, scratch     B, m, n, k  the same of g[s, j, i] and y[s, j, i]
==============  ===========================  ==========  ======================================================

S is that of `common.kernels.arrays.sums`, so the bits are those of the ops by which `common.ops.linalg.distances` says
the same. What is summed lies in columns: a vector holds several pairs, or several rows of a, at the same place of S.
Buffers are of one float dtype; scratch: `scratch_of_distances` and `scratch_of_slopes` elements. Status: always 0.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

import numpy as np

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.sums import VECTOR_BYTES, sum_cols_scratch

__all__ = [
    "ORDERS", "distances_source", "scratch_of_distances", "scratch_of_slopes", "serves", "serves_pairs",
    "slopes_source",
]  # fmt: skip

ORDERS = 1.0, 2.0, inf
"""The norms that kernels measure differences by."""

_FEW = 2 * LANES
"""Elements of a row up to which its differences are registers."""
_ROWS = 64
"""Rows of a that lie beside each other."""
_CACHED = 1024
"""A quarter of the elements of b that every row of a meets before the next ones."""


def serves(n: int, k: int, itemsize: int) -> bool:
    """Whether there is a kernel of distances for n rows of k elements on the right."""
    return 1 <= k <= BLOCK and n * itemsize >= VECTOR_BYTES


def serves_pairs(n: int, k: int, itemsize: int) -> bool:
    """Whether there is a kernel of the pairs of n rows of k elements."""
    return serves(n, k, itemsize // 2)


def scratch_of_distances(n: int, k: int) -> int:
    """Elements of scratch of ``distances``: b by columns, where a row has few elements."""
    return n * k if k <= _FEW else 1


@cache
def distances_source(dtype: np.dtype[Any], k: int, p: float = 2.0, pairs: bool = False) -> str:
    """Return the kernel of distances of rows of k elements; few are differences in registers."""
    return _of_few(dtype, k, p, pairs) if k <= _FEW else _of_many(dtype, p, pairs)


_HEAD = """def {name}(bufs, args):
    a = buffer(bufs, 0, {dtype})
    b = buffer(bufs, 1, {dtype})
    out = buffer(bufs, 2, {dtype})
    held = buffer(bufs, 3, {dtype})
    m = args[1]
    n = args[2]
    k = args[3]
    wide()
    for s in range(args[0]):
"""


def _places(pairs: bool) -> tuple[str, str, str]:
    """The kernel's name; which result is that of row i and row 0 of b; and the first row of b beside row i."""
    return ("pairs", "i * n - (i * (i + 1) >> 1) - i - 1", "i + 1") if pairs else ("distances", "(s * m + i) * n", "0")


def _of_few(dtype: Any, k: int, p: float, pairs: bool) -> str:
    name, start, first = _places(pairs)
    if p == inf:
        size = "abs(d0)"
        for c in range(1, k):
            size = f"maximum({size}, abs(d{c}))"
    else:
        term = "d{0} * d{0}" if p == 2 else "abs(d{0})"
        lanes = [" + ".join(term.format(c) for c in range(lane, k, LANES)) for lane in range(min(k, LANES))]
        half = LANES
        while half > 1:
            half //= 2
            lanes, others = lanes[:half], lanes[half:]
            lanes = [f"({one}) + ({others[i]})" if i < len(others) else one for i, one in enumerate(lanes)]
        size = f"sqrt({lanes[0]})" if p == 2 else lanes[0]
    values = "\n".join(f"                v{c} = a[(s * m + i) * {k} + {c}]" for c in range(k))
    differences = "\n".join(f"                    d{c} = v{c} - held[{c} * n + j]" for c in range(k))
    return f"""{_HEAD.format(name=name, dtype=dtype)}        turn_rows(held, 0, b, s * n * k, n, k, k, n)
        for i in range(m):
            o = {start}
            if n > 0:
{values}
                for j in range({first}, n):
{differences}
                    out[o + j] = {size}
    return 0
"""


def _of_many(dtype: Any, p: float, pairs: bool) -> str:
    """By rows of b that stay in the cache."""
    name, start, first = _places(pairs)
    summed = {1.0: "magnitudes", 2.0: "squares", inf: "largest"}[p]
    root = """
                    for j in range(width):
                        out[o + j] = sqrt(out[o + j])""" if p == 2 else ""  # fmt: skip
    return f"""{_HEAD.format(name=name, dtype=dtype)}        step = max({_CACHED} // k, 1) * 4
        for j0 in range(0, n, step):
            for i in range(m):
                j1 = max(j0, {first})
                width = min(j0 + step, n) - j1
                o = {start} + j1
                if width > 0:
                    {summed}_of_differences(a, (s * m + i) * k, b, (s * n + j1) * k, out, o, width, k){root}
    return 0
"""


def scratch_of_slopes(n: int, k: int) -> int:
    """Elements of scratch of ``slopes``: quotients by rows and by columns, rows of a, results, b, and accumulators."""
    return 2 * _ROWS * n + 2 * _ROWS * k + n * k + int(sum_cols_scratch(n, _ROWS))


def slopes_source(dtype: Any, turned: bool) -> str:
    """Return the kernel of slopes, which is named "turned" where g and y are."""
    quotient = f"where(zero, {dtype}(0), g[p + e] / where(zero, {dtype}(1), y[p + e]))"
    by_rows = f"""
            p = (s * m + i0) * n
            for e in range(width * n):
                zero = y[p + e] == {dtype}(0)
                held[e] = {quotient}
            turn_rows(held, turned, held, 0, width, n, n, width)"""
    by_columns = f"""
            for j in range(n):
                p = (s * n + j) * m + i0
                t = turned + j * width
                for e in range(width):
                    zero = y[p + e] == {dtype}(0)
                    held[t + e] = {quotient}"""
    return f"""def {"turned" if turned else "slopes"}(bufs, args):
    g = buffer(bufs, 0, {dtype})
    y = buffer(bufs, 1, {dtype})
    a = buffer(bufs, 2, {dtype})
    b = buffer(bufs, 3, {dtype})
    out = buffer(bufs, 4, {dtype})
    held = buffer(bufs, 5, {dtype})
    m = args[1]
    n = args[2]
    k = args[3]
    turned = {_ROWS} * n
    rows = 2 * turned
    sums = rows + {_ROWS} * k
    columns = sums + {_ROWS} * k
    acc = columns + n * k
    wide()
    for s in range(args[0]):
        turn_rows(held, columns, b, s * n * k, n, k, k, n)
        for i0 in range(0, m, {_ROWS}):
            width = min({_ROWS}, m - i0){by_columns if turned else by_rows}
            turn_rows(held, rows, a, (s * m + i0) * k, width, k, k, width)
            for c in range(k):
                start_columns(held, acc, width, n)
                r = rows + c * width
                for j in range(0, n, {BLOCK}):
                    if j > 0:
                        carry_columns(held, acc, width, (j >> {BLOCK.bit_length() - 1}) - 1)
                    add_slopes(held, r, held, columns + c * n + j, held, turned + j * width, held, acc,
                               width, min({BLOCK}, n - j))
                finish_columns(held, acc, width, n, held, sums + c * width)
            turn_rows(out, (s * m + i0) * k, held, sums, k, width, width, k)
    return 0
"""
