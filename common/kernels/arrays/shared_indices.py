"""Kernels that read and add at indices which several rows share: gather and scatter with an expanded index.

Arrays are (groups, many, extent or count, inner), indices (groups, count): each serves `many` rows, and all elements of
a row. Additions to one element happen in ascending C order of the index, as in `common.kernels.arrays.indexing`; a
wrong index is found before anything is written, and the status is 1.

==================  =============  ===================================  =======================================
kernel              buffers        args                                 result
==================  =============  ===================================  =======================================
``shared_gather``   x, index, out  groups, many, extent, inner, count   out[g, k, i, c] = x[g, k, index[g, i], c]
``shared_scatter``  x, index, out  groups, many, extent, inner, count   out[g, k, index[g, i], c] += x[g, k, i, c]
==================  =============  ===================================  =======================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.kernels.arrays.copying import bits_of

__all__ = ["gather_source", "scatter_source"]


def gather_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that reads."""
    return _source("shared_gather", bits_of(dtype), index_dtype, "out[i] = x[at]")


def scatter_source(dtype: Any, index_dtype: Any) -> str:
    """Return the kernel that adds to zeros."""
    kind = np.dtype(dtype)
    total = "out[at] + x[i]" if kind.kind == "f" else f"to_{kind}(out[at] + x[i])"
    zeros = f"""    for i in range(args[0] * many * extent * inner):
        out[i] = {kind}(0)
"""
    return _source("shared_scatter", str(kind), index_dtype, f"out[at] = {total}", zeros)


def _source(name: str, kind: str, index_dtype: Any, statement: str, first: str = "") -> str:
    return f"""def {name}(bufs, args):
    x = buffer(bufs, 0, {kind})
    index = buffer(bufs, 1, {np.dtype(index_dtype)})
    out = buffer(bufs, 2, {kind})
    many = args[1]
    extent = args[2]
    inner = args[3]
    count = args[4]
    signs = 0
    for i in range(args[0] * count):
        a = to_int64(index[i])
        signs |= a | (extent - 1 - a)
    if signs < 0:
        return 1
{first}    for g in range(args[0]):
        for k in range(many):
            p = (g * many + k) * count
            q = (g * many + k) * extent
            if inner == 1:
                for j in range(count):
                    i = p + j
                    at = q + to_int64(index[g * count + j])
                    {statement}
            else:
                for j in range(count):
                    b = (q + to_int64(index[g * count + j])) * inner
                    for c in range(inner):
                        i = (p + j) * inner + c
                        at = b + c
                        {statement}
    return 0
"""
