"""The kernels of `tril` and `triu`, and of indices of such elements: one pass over rows, each cut at its diagonal."""

from __future__ import annotations

from typing import Any

from common.kernels.arrays.copying import bits_of


def triangle_source(dtype: Any, lower: bool) -> str:
    """Return the kernel that copies one side of a diagonal and writes zeros on the other.

    Buffers x, out: matrices of `rows` x `columns`, contiguous. Args: number of all rows, rows, columns, diagonal.
    Row r keeps columns ``c <= r + diagonal`` (lower) or ``c >= r + diagonal``.
    """
    kind = bits_of(dtype)
    kept, cleared = ("range(cut)", "range(cut, columns)") if lower else ("range(cut, columns)", "range(cut)")
    return f"""def triangle(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    rows = args[1]
    columns = args[2]
    zero = {kind}(0)
    for i in range(args[0]):
        cut = min(max(i % rows + args[3] + {int(lower)}, 0), columns)
        start = i * columns
        for j in {kept}:
            out[start + j] = x[start + j]
        for j in {cleared}:
            out[start + j] = zero
    return 0
"""


def triangle_indices_source(lower: bool) -> str:
    """Return the kernel that writes where the elements stand that a triangle of a matrix keeps.

    Buffer out: rows and then columns of `count` elements, int64. Args: the first row and the end of those that have
    any, columns, diagonal, count.
    """
    first, stop = ("0", "cut") if lower else ("cut", "columns")
    return f"""def triangle_indices(bufs, args):
    out = buffer(bufs, 0, int64)
    columns = args[2]
    count = args[4]
    at = 0
    for i in range(args[0], args[1]):
        cut = min(max(i + args[3] + {int(lower)}, 0), columns)
        width = {stop} - {first}
        for j in range(width):
            out[at + j] = i
            out[count + at + j] = {first} + j
        at += width
    return 0
"""
