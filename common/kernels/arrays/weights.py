"""Parameters of distributions: a copy of them, or what is drawn by them, unless one is impossible.

==================  ===============  ====================  ============================================================
kernel              buffers          args                  result
==================  ===============  ====================  ============================================================
``weights``         x, out           rows, columns, least  out[r, c] = x[r, c], finite and >= 0; `least` a row are > 0
``bounded``         x, out           count                 out[i] = x[i], all >= 0, and <= 1 if there is a bound
``weighted_draws``  x, out, scratch  rows, columns, count  where in row r of x the share u[r, j] of its sum is
==================  ===============  ====================  ============================================================

Statuses: `WRONG`, an element is none of those, or NaN; else `NONE`, a row has no element above 0; else `FEW`, it has
less than `least`. Rows of no elements are let through. The scratch of ``weighted_draws`` begins with the rows of u, in
float64, and has room for another row of x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FEW", "NONE", "WRONG", "bounded_source", "weighted_draws_source", "weights_source"]

WRONG, NONE, FEW = 1, 2, 3


def weights_source(dtype: Any) -> str:
    """Return the kernel of rows of weights."""
    kind = np.dtype(dtype)
    return f"""def weights(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    columns = args[1]
    fewest = columns
    wrong = 0
    for r in range(args[0]):
        above = 0
        for c in range(columns):
            i = r * columns + c
            out[i] = x[i]
            if not (x[i] >= 0 and x[i] - x[i] == 0):
                wrong = 1
            if x[i] > 0:
                above += 1
        if above < fewest:
            fewest = above
    if wrong != 0:
        return {WRONG}
    if columns > 0 and fewest == 0:
        return {NONE}
    if columns > 0 and fewest < args[2]:
        return {FEW}
    return 0
"""


def bounded_source(dtype: Any, bound: bool) -> str:
    """Return the kernel of numbers >= 0, or between 0 and 1."""
    kind = np.dtype(dtype)
    return f"""def bounded(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    wrong = 0
    for i in range(args[0]):
        out[i] = x[i]
        if not (x[i] >= 0{" and x[i] <= 1" * bound}):
            wrong = 1
    if wrong != 0:
        return {WRONG}
    return 0
"""


def weighted_draws_source(dtype: Any) -> str:
    """Return the kernel of indices in proportion to weights: how many running sums, in float64, are at most u times the
    last one. A sum that overflows is `WRONG` too.
    """
    return f"""def weighted_draws(bufs, args):
    x = buffer(bufs, 0, {np.dtype(dtype)})
    out = buffer(bufs, 1, int64)
    u = buffer(bufs, 2, float64)
    n = args[1]
    count = args[2]
    running = args[0] * count
    for r in range(args[0]):
        total = to_float64(0)
        least = to_float64(0)
        for i in range(n):
            w = to_float64(x[r * n + i])
            total += w
            least = where(w < least, w, least)
            u[running + i] = total
        if not (least == 0 and total - total == 0):
            return {WRONG}
        if total == 0:
            return {NONE}
        for j in range(count):
            wanted = u[r * count + j] * total
            low = 0
            size = n
            while size > 0:
                half = (size + 1) >> 1
                low = where(u[running + low + half - 1] <= wanted, low + half, low)
                size -= half
            out[r * count + j] = low
    return 0
"""
