"""Kernels that find where the extreme of a row is.

===========  =======  =============  ======================================================================
kernel       buffers  args           result
===========  =======  =============  ======================================================================
``argmax``   x, out   rows, columns  out[r] = first c with x[r, c] = max(x[r, :])
``argmin``   x, out   rows, columns  out[r] = first c with x[r, c] = min(x[r, :])
===========  =======  =============  ======================================================================

The extreme is that of `common.kernels.sums`: the first NaN where there is one, +0 above -0. x is float32, float64, a
signed int or bool, out int64. Status: 0, or `EMPTY` for rows of no elements (nothing is written then).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.kernels.sums import EMPTY

__all__ = ["argmax_source", "argmin_source", "position_oracle"]


def argmax_source(dtype: Any) -> str:
    """Return the kernel that finds the first maximum of each row."""
    return _source("max", np.dtype(dtype))


def argmin_source(dtype: Any) -> str:
    """Return the kernel that finds the first minimum of each row."""
    return _source("min", np.dtype(dtype))


def _source(name: str, dtype: np.dtype[Any]) -> str:
    special = f"""        if best != best:
            while c < last and x[r * columns + c] == x[r * columns + c]:
                c += 1
        elif best == {dtype}(0):
            sign = {dtype}(1) / best
            while c < last and (x[r * columns + c] != best or {dtype}(1) / x[r * columns + c] != sign):
                c += 1
        else:
            while c < last and x[r * columns + c] != best:
                c += 1
"""
    plain = """        while c < last and x[r * columns + c] != best:
            c += 1
"""
    return f"""def arg{name}(bufs, args):
    x = buffer(bufs, 0, {"bool_" if dtype == np.bool_ else dtype})
    out = buffer(bufs, 1, int64)
    columns = args[1]
    last = columns - 1
    if args[0] > 0 and columns < 1:
        return {EMPTY}
    for r in range(args[0]):
        best = row_{name}(x, r * columns, columns)
        c = 0
{special if dtype.kind == "f" else plain}        out[r] = c
    return 0
"""


def position_oracle(x: np.ndarray, name: str) -> np.ndarray:
    """First positions of the extremes over the last axis, in plain numpy, from the definition."""
    low = name == "min"
    flat = x.reshape(-1, x.shape[-1])
    out = np.empty(len(flat), np.int64)
    for r, row in enumerate(flat):
        keys = [(0, 0.0) if v != v else (1, -v if not low else v) for v in row.tolist()]
        best = min(keys)
        places = [c for c, key in enumerate(keys) if key == best]
        if x.dtype.kind == "f" and best == (1, 0.0):
            wanted = [c for c in places if bool(np.signbit(row[c])) is low]
            places = wanted or places
        out[r] = places[0]
    return out.reshape(x.shape[:-1])
