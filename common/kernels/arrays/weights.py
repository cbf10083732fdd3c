"""Parameters of distributions: a copy of them, unless one is impossible.

===========  =======  ====================  ===============================================================
kernel       buffers  args                  result
===========  =======  ====================  ===============================================================
``weights``  x, out   rows, columns, least  out[r, c] = x[r, c], all finite and >= 0; `least` per row are > 0
``bounded``  x, out   count                 out[i] = x[i], all >= 0, and <= 1 if there is a bound
===========  =======  ====================  ===============================================================

Statuses: `WRONG`, an element is none of those, or NaN; else `NONE`, a row has no element above 0; else `FEW`, it has
less than `least`. Rows of no elements are let through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FEW", "NONE", "WRONG", "bounded_source", "weights_source"]

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
