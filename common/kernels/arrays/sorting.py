"""Kernels that put rows in order: positions of a stable sort, of the k first elements, and places in a sorted row.

All compare *keys*: integers whose order is that of the elements, with NaN above everything and both zeros equal
(`sort_key`). Descending order is that of the inverted keys, so equal elements keep their order either way, and a
stable order is unique: which algorithm finds it changes nothing.

=================  ==========================  =======================  ============================================
kernel             buffers                     args                     result
=================  ==========================  =======================  ============================================
``argsort``        x, out, scratch             rows, n, flip            out[r] = positions of row r in order
``top``            x, out, scratch             rows, n, flip, k         ascending positions of the k first in order
``searchsorted``   x, v, out                   rows, n, m, from_row     out[r, j] = elements of row r before v[r, j]
=================  ==========================  =======================  ============================================

`flip` is 0, or -1 for descending order. `from_row` is 0 where all rows of v are searched in one row of x, otherwise 1.
out is int64, scratch as large as `argsort_scratch` and `top_scratch` say.

Many short rows are sorted side by side, in the lanes of vectors: each pair of elements of a row is compared, and the
place of an element is how many are before it. A few short rows are sorted by insertion, others digit by digit from the
lowest (least significant digit radix sort, Knuth, The Art of Computer Programming 3, 5.2.5), 8 bits at a time; digits
that all elements share are passed over. A few first elements are held in order while the row goes by; many are found
from the highest digit down: counting finds the digit of the k-th, and only its bearers are looked at again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.primitives import Value, bits, constant, convert, dtype_of, is_float, lshr, select
from common.kernels.arrays.copying import buffer_dtype

__all__ = ["argsort_scratch", "argsort_source", "searchsorted_source", "sort_key", "top_scratch", "top_source"]

SHORT = 64
"""Below this size rows are compared by pairs or sorted by insertion: counting digits costs as much as 64 elements."""

ABREAST = 16
"""Rows that are sorted side by side; their keys and places take no more scratch than the counts of digits. Fewer rows
are compared as so many, of which the others go nowhere: a loop of this length is one vector."""


FEW = 16
"""Up to this many first elements are kept in order while the row goes by."""


def sort_key(x: Value) -> Value:
    """An int32, or int64 for elements of 8 bytes, in the order of x: NaN above all, -0 equal to +0."""
    if not is_float(x):
        return convert(x, np.dtype(np.int64 if dtype_of(x).itemsize == 8 else np.int32))
    pattern = bits(x + 0.0)  # -0 + 0 is +0
    key = pattern ^ lshr(pattern >> (8 * dtype_of(x).itemsize - 1), 1)  # negative: magnitudes in reverse
    return select(x == x, key, constant(np.iinfo(dtype_of(key)).max, key))


def _key_dtype(dtype: Any) -> np.dtype[Any]:
    return np.dtype(np.int64 if np.dtype(dtype).itemsize == 8 else np.int32)


def argsort_scratch(dtype: Any, n: Any) -> Any:
    """Bytes of scratch for rows of n: keys twice, positions, and 256 counts per digit."""
    size = _key_dtype(dtype).itemsize
    return 8 * n + 8 * 256 * size + 2 * size * n


def argsort_source(dtype: Any) -> str:
    """Return the kernel of a stable sort's positions."""
    key = _key_dtype(dtype)
    size = key.itemsize
    count = "\n".join(f"            counts[{256 * d} + ((k >> {8 * d}) & 255)] += 1" for d in range(size))
    start = "\n".join(_start(step) for step in range(4))
    return f"""def argsort(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    out = buffer(bufs, 1, int64)
    counts = buffer(bufs, 2, int64)
    keys = buffer(bufs, 2, {key})
    n = args[1]
    flip = to_{key}(args[2])
    other = {256 * size}
    first = (other + n) * {8 // size}
    rows = args[0]
    if n < {SHORT} and rows >= {ABREAST}:
        places = {ABREAST} * n
        for r in range(0, rows, {ABREAST}):
            base = r * n
            m = min({ABREAST}, rows - r)
            for j in range(n):
                for k in range(m):
                    keys[j * {ABREAST} + k] = to_{key}(sort_key(x[base + k * n + j]) ^ flip)
                    keys[places + j * {ABREAST} + k] = to_{key}(j)
            for j in range(1, n):
                for i in range(j):
                    for k in range({ABREAST}):
                        after = to_{key}(keys[i * {ABREAST} + k] > keys[j * {ABREAST} + k])
                        keys[places + i * {ABREAST} + k] = to_{key}(keys[places + i * {ABREAST} + k] + after)
                        keys[places + j * {ABREAST} + k] = to_{key}(keys[places + j * {ABREAST} + k] - after)
            for j in range(n):
                for k in range(m):
                    out[base + k * n + keys[places + j * {ABREAST} + k]] = j
        return 0
    for r in range(rows):
        base = r * n
        if n < {SHORT}:
            for i in range(n):
                k = sort_key(x[base + i]) ^ flip
                j = i
                while j > 0 and keys[first + j - 1] > k:
                    keys[first + j] = keys[first + j - 1]
                    out[base + j] = out[base + j - 1]
                    j -= 1
                keys[first + j] = to_{key}(k)
                out[base + j] = i
            continue
        for i in range(other):
            counts[i] = 0
        for i in range(n):
            k = to_{key}(sort_key(x[base + i]) ^ flip)
            keys[first + i] = k
            out[base + i] = i
{count}
        moved = 0
        for digit in range({size}):
            shift = to_{key}(8 * digit)
            source = first + moved * n
            if counts[256 * digit + ((keys[source] >> shift) & 255)] != n:
                total = 0
                sign = 128 if digit == {size - 1} else 0
                for d in range(64):
                    at = 256 * digit + ((4 * d) ^ sign)
{start}
                target = first + n - moved * n
                if moved == 0:
{_distribute("out[base + i]", "counts[other + to]")}
                else:
{_distribute("counts[other + i]", "out[base + to]")}
                moved = 1 - moved
        if moved == 1:
            for i in range(n):
                out[base + i] = counts[other + i]
    return 0
"""


def _start(step: int) -> str:
    """Where the bearers of one value of a digit begin, instead of how many there are."""
    return f"""                    held = counts[at + {step}]
                    counts[at + {step}] = total
                    total += held"""


def _distribute(read: str, write: str) -> str:
    """Elements to their places by one digit."""
    return f"""                    for i in range(n):
                        k = keys[source + i]
                        at = 256 * digit + ((k >> shift) & 255)
                        to = counts[at]
                        counts[at] = to + 1
                        keys[target + to] = k
                        {write} = {read}"""


def top_scratch(dtype: Any, n: Any) -> Any:
    """Bytes of scratch for rows of n: keys twice and 256 counts."""
    return 8 * 256 + 2 * _key_dtype(dtype).itemsize * n


def top_source(dtype: Any) -> str:
    """Return the kernel that finds the k first of each row; in the order of the row; few in their own, if asked."""
    key = _key_dtype(dtype)
    digit = "((keys[source + i] >> shift) & 255) ^ sign"
    return f"""def top(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    out = buffer(bufs, 1, int64)
    counts = buffer(bufs, 2, int64)
    keys = buffer(bufs, 2, {key})
    n = args[1]
    flip = to_{key}(args[2])
    first = {256 * 8 // key.itemsize}
    second = first + n
    rows = args[0]
    if args[3] < 1 or args[3] > n:
        rows = 0
    for r in range(rows):
        base = r * n
        for i in range(n):
            keys[first + i] = to_{key}(sort_key(x[base + i]) ^ flip)
        left = args[3]
        if left <= {FEW}:
            limit = keys[first]
            for block in range((n + 15) // 16):
                at = 16 * block
                end = min(16, n - at)
                below = 1 if at < left or end < 16 else 0
                if below == 0:
                    for i in range(16):
                        below |= 1 if keys[first + at + i] < limit else 0
                if below == 1:
                    for i in range(at, at + end):
                        k = keys[first + i]
                        if i < left or k < limit:
                            j = min(i, left - 1)
                            while j > 0 and keys[second + j - 1] > k:
                                keys[second + j] = keys[second + j - 1]
                                counts[j] = counts[j - 1]
                                j -= 1
                            keys[second + j] = k
                            counts[j] = i
                            limit = keys[second + left - 1]
            for i in range(left):
                place = counts[i]
                j = r * left + i
                while args[4] == 0 and j > r * left and out[j - 1] > place:
                    out[j] = out[j - 1]
                    j -= 1
                out[j] = place
            continue
        size = n
        source = first
        for step in range({key.itemsize}):
            shift = to_{key}({8 * key.itemsize - 8} - 8 * step)
            sign = 128 if step == 0 else 0
            for d in range(256):
                counts[d] = 0
            for i in range(size):
                counts[{digit}] += 1
            d = 0
            while counts[d] < left:
                left -= counts[d]
                d += 1
            kept = 0
            for i in range(size):
                if {digit} == d:
                    keys[second + kept] = keys[source + i]
                    kept += 1
            size = kept
            source = second
        last = keys[second]
        to = r * args[3]
        for i in range(n):
            k = keys[first + i]
            if k < last:
                out[to] = i
                to += 1
            elif k == last and left > 0:
                out[to] = i
                to += 1
                left -= 1
    return 0
"""


_TOGETHER = 8
"""Searches in one row that go on together: each step of one waits for its last one, those of others do not."""


def searchsorted_source(dtype: Any) -> str:
    """Return the kernel of binary search; rows that are not sorted give some place within them.

    The search has no branch: which half is next cannot be foretold, and a wrong guess costs more than the step. How
    large the halves are, follows from the row's length.
    """

    def search(count: int, right: bool, indent: str) -> str:
        lines = ["size = n", "while size > 0:", "    half = (size + 1) >> 1"]
        for k in range(count):
            found, wanted = f"x[low{k} + half - 1]", f"wanted{k}"
            before = f"{found} {'<=' if right else '<'} {wanted}"
            if np.dtype(dtype).kind == "f":  # nan comes last
                nan = f"({wanted} != {wanted})"
                before = f"({before}) | {nan}" if right else f"({before}) | ({nan} & ({found} == {found}))"
            lines.append(f"    low{k} = where({before}, low{k} + half, low{k})")
        return "".join(f"{indent}{line}\n" for line in [*lines, "    size -= half"])

    def searches(count: int) -> str:
        indent, each = 12 * " ", range(count)
        begin = "".join(f"{indent}wanted{k} = v[r * m + j + {k}]\n{indent}low{k} = base\n" for k in each)
        end = "".join(f"{indent}out[r * m + j + {k}] = low{k} - base\n" for k in each)
        both = [search(count, right, indent + "    ") for right in (False, True)]
        return f"{begin}{indent}if args[4] == 0:\n{both[0]}{indent}else:\n{both[1]}{end}"

    return f"""def searchsorted(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(dtype)})
    v = buffer(bufs, 1, {buffer_dtype(dtype)})
    out = buffer(bufs, 2, int64)
    n = args[1]
    m = args[2]
    for r in range(args[0]):
        base = r * args[3] * n
        for j in range(0, m - {_TOGETHER - 1}, {_TOGETHER}):
{searches(_TOGETHER)}        for j in range(m - m % {_TOGETHER}, m):
{searches(1)}    return 0
"""
