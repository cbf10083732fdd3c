"""Products of matrices of integers: sums wrap, so that any order gives the same bits, and loops go along rows.

A row of the result takes four rows of the right operand at a time; a right operand that is stored by columns is copied
first. One row times columns that are stored is added up in `_LANES` sums. See `common.kernels.arrays.gemm`, whose
arguments these kernels have; a column is a row of the transposed product.

Kernel ``integer_products``: buffers a, b, out, and scratch where the right operand is stored by columns; status 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from common.core.op import NativeCall

_LANES = 32


def call(dtype: Any, batch: Any, sizes: tuple[Any, Any, Any], turned: tuple[bool, bool], apart: Any) -> NativeCall:
    """Return the call of products of `sizes` m, n and k, of which operands are stored transposed, and lie `apart`."""
    m, n, k = sizes
    if type(n) is int and n == 1 and not (type(m) is int and m == 1):  # out^T = b^T a^T
        swapped = call(dtype, batch, (n, m, k), (not turned[1], not turned[0]), apart[::-1])
        return swapped._replace(buffers=(1, 0, 2))
    row = type(m) is int and m == 1
    by_columns = turned[1] or (type(n) is int and n == 1)  # one column is one row
    kept = (_LANES if row else n * k + 1) * np.dtype(dtype).itemsize if by_columns else 0
    ints = (batch, m, n, k, int(turned[0]), *apart)
    return NativeCall(source(np.dtype(dtype), by_columns, row), "integer_products", ints, scratch=kept)


@cache
def source(dtype: Any, by_columns: bool, row: bool) -> str:
    """Return the kernel for a right operand stored `by_columns` or by rows, and of one `row` or of any number."""
    head = _HEAD.replace("    m = args", _KEPT + "    m = args") if by_columns else _HEAD
    body = _COLUMNS_OF_ROWS if by_columns and row else (_COPY if by_columns else "") + _ROWS_OF_ROWS
    right, start = ("kept", "0") if by_columns else ("b", "second")
    return (head + body + "    return 0\n").format(kind=np.dtype(dtype).name, right=right, start=start)


_HEAD = """def integer_products(bufs, args):
    a = buffer(bufs, 0, {kind})
    b = buffer(bufs, 1, {kind})
    out = buffer(bufs, 2, {kind})
    m = args[1]
    n = args[2]
    k = args[3]
    down = 1 if args[4] else k
    along = m if args[4] else 1
    wide()
    for s in range(args[0]):
        first = s * args[5]
        second = s * args[6]
"""

_KEPT = "    kept = buffer(bufs, 3, {kind})\n"

_COPY = """        for p in range(k):
            for j in range(n):
                kept[p * n + j] = b[second + j * k + p]
"""

_ROWS_OF_ROWS = """        for i in range(m):
            x = first + i * down
            z = (s * m + i) * n
            for j in range(n):
                out[z + j] = {kind}(0)
            for p in range(0, k, 4):
                p1 = min(p + 1, k - 1)
                p2 = min(p + 2, k - 1)
                p3 = min(p + 3, k - 1)
                x0 = a[x + p * along]
                x1 = a[x + p1 * along] if p + 1 < k else {kind}(0)
                x2 = a[x + p2 * along] if p + 2 < k else {kind}(0)
                x3 = a[x + p3 * along] if p + 3 < k else {kind}(0)
                y0 = {start} + p * n
                y1 = {start} + p1 * n
                y2 = {start} + p2 * n
                y3 = {start} + p3 * n
                for j in range(n):
                    t0 = add(out[z + j], mul(x0, {right}[y0 + j]))
                    t1 = add(t0, mul(x1, {right}[y1 + j]))
                    t2 = add(t1, mul(x2, {right}[y2 + j]))
                    out[z + j] = add(t2, mul(x3, {right}[y3 + j]))
"""

_COLUMNS_OF_ROWS = f"""        for j in range(n):
            y = second + j * k
            for c in range({_LANES}):
                kept[c] = {{kind}}(0)
            whole = k // {_LANES} * {_LANES}
            for p in range(0, whole, {_LANES}):
                for c in range({_LANES}):
                    kept[c] = add(kept[c], mul(a[first + p + c], b[y + p + c]))
            for c in range(k - whole):
                kept[c] = add(kept[c], mul(a[first + whole + c], b[y + whole + c]))
            total = kept[0]
            for c in range(1, {_LANES}):
                total = add(total, kept[c])
            out[s * n + j] = total
"""
