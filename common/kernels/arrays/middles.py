"""Kernels that find where the median, or the most frequent element, of each row stands.

==========  ===============  =======  ==================================================================================
kernel      buffers          args     result
==========  ===============  =======  ==================================================================================
``middle``  x, out, scratch  rows, n  out[r] = where element ``(n - 1) // 2`` of row r in order stands, or its first nan
``among``   x, out, scratch  rows, n  the same of the elements of the row that are not nan
``mode``    x, out, scratch  rows, n  out[r] = where the most frequent element of row r, of several the smallest, stands
                                      last; each nan is an element of its own; n <= `SHORT`
==========  ===============  =======  ==================================================================================

The order is that of `common.kernels.arrays.sorting`: of equal elements the earlier one is first. Nothing is sorted: the
key of the median is found by halves of what it may be, each of which counts the keys of a row by vectors, until one key
is left. Of a long row only those are
counted whose leading bits are the median's, which one count of leading bits has found. Short rows lie side by side in
the lanes of vectors: the median is where as many are before as there should be. out is int64; scratch:
`scratch` elements of 8 bytes. Status: always 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.kernels.arrays.copying import buffer_dtype

__all__ = ["SHORT", "middle_source", "mode_source", "scratch"]

_LONG = 1 << 16
"""Elements from which on leading bits are counted first."""
_BITS = 11
SHORT, _ABREAST = 64, 16
"""Elements up to which rows are side by side, and how many of them."""
_AT_ONCE = 4
"""Elements whose counts are added at once."""


def scratch(n: Any) -> Any:
    """Elements of scratch: keys, their places, and how many have which leading bits."""
    return 2 * n + (1 << _BITS)


def _counted(order: str, start: str, stop: str, key: str, counts: str = "before", indent: int = 16) -> str:
    """Lines that count which elements of rows side by side stand so to one of them, several at a time: each sum waits
    for the one before.
    """

    def holds(j: str) -> str:
        return f"to_{key}(keys[{_ABREAST} * ({j}) + l] {order} keys[{_ABREAST} * i + l])"

    several = " + ".join(holds(f"j + {k}") for k in range(_AT_ONCE))
    text = f"""whole = {stop} - ({stop} - ({start})) % {_AT_ONCE}
for j in range({start}, whole, {_AT_ONCE}):
    for l in range({_ABREAST}):
        keys[{counts} + l] = to_{key}(keys[{counts} + l] + {several})
for j in range(whole, {stop}):
    for l in range({_ABREAST}):
        keys[{counts} + l] = to_{key}(keys[{counts} + l] + {holds("j")})"""
    return "\n".join(" " * indent + line for line in text.splitlines())


def middle_source(dtype: Any, skip: bool) -> str:
    """Return the kernel, "among" with `skip`."""
    wide = np.dtype(dtype).itemsize == 8
    key, size = ("int64", 64) if wide else ("int32", 32)
    half = 1 << (_BITS - 1)
    # sums of the ends of the range would overflow in int64
    between = "(low >> 1) + (high >> 1) + (low & high & 1)"
    return f"""def {"among" if skip else "middle"}(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(np.dtype(dtype))})
    out = buffer(bufs, 1, int64)
    keys = buffer(bufs, 2, {key})
    held = buffer(bufs, 2, int64)
    n = args[1]
    counts = 2 * n
    wide()
    if n <= {SHORT}:
        before = {_ABREAST} * n
        goal = before + {_ABREAST}
        place = goal + {_ABREAST}
        for first in range(0, args[0], {_ABREAST}):
            rows = min({_ABREAST}, args[0] - first)
            for l in range({_ABREAST}):
                keys[place + l] = to_{key}(0)
            for l in range(rows):
                p = (first + l) * n
                nans = 0
                for j in range(n):
                    keys[{_ABREAST} * j + l] = sort_key(x[p + j])
                    nans += to_int64(x[p + j] != x[p + j])
                chosen = (n - {"nans" if skip else "0"} - 1) >> 1
                keys[goal + l] = to_{key}({"max(chosen, 0)" if skip else "n - nans if nans > 0 else chosen"})
            for i in range(n):
                for l in range({_ABREAST}):
                    keys[before + l] = to_{key}(0)
{_counted("<=", "0", "i", key)}
{_counted("<", "i + 1", "n", key)}
                for l in range({_ABREAST}):
                    keys[place + l] = where(keys[before + l] == keys[goal + l], to_{key}(i), keys[place + l])
            for l in range(rows):
                out[first + l] = to_int64(keys[place + l])
        return 0
    for r in range(args[0]):
        p = r * n
        counted = to_int32(0)
        for j in range(n):
            counted += to_int32(x[p + j] != x[p + j])
        nans = to_int64(counted)
        chosen = (n - {"nans" if skip else "0"} - 1) >> 1
        if chosen < 0:
            chosen = 0
        if {"n < 0" if skip else "nans > 0"}:
            j = 0
            while x[p + j] == x[p + j]:
                j += 1
            out[r] = j
        else:
            count = n
            if n < {_LONG}:
                for j in range(n):
                    keys[j] = sort_key(x[p + j])
            else:
                for j in range({1 << _BITS}):
                    held[counts + j] = 0
                for j in range(n):
                    held[counts + (to_int64(sort_key(x[p + j])) >> {size - _BITS}) + {half}] += 1
                digit = 0
                while held[counts + digit] <= chosen:
                    chosen -= held[counts + digit]
                    digit += 1
                digit -= {half}
                count = 0
                for j in range(n):
                    k = sort_key(x[p + j])
                    keys[count] = k
                    held[n + count] = j
                    count += to_int64((to_int64(k) >> {size - _BITS}) == digit)
            low = to_int64(row_min(keys, 0, count))
            high = to_int64(row_max(keys, 0, count))
            under = 0
            upto = count
            while low < high and upto - under > 1:
                half = {between}
                pivot = to_{key}(half)
                below = to_int32(0)
                for j in range(count):
                    below += to_int32(keys[j] <= pivot)
                if to_int64(below) > chosen:
                    high = half
                    upto = to_int64(below)
                else:
                    low = half + 1
                    under = to_int64(below)
            j = 0
            if upto - under == 1:
                while keys[j] < to_{key}(low) or keys[j] > to_{key}(high):
                    j += 1
            else:
                chosen -= under
                while keys[j] != to_{key}(low) or chosen > 0:
                    chosen -= to_int64(keys[j] == to_{key}(low))
                    j += 1
            out[r] = j if n < {_LONG} else held[n + j]
    return 0
"""


def mode_source(dtype: Any) -> str:
    """Return the kernel of modes of short rows."""
    wide = np.dtype(dtype).itemsize == 8
    key, most = ("int64", (1 << 63) - 1) if wide else ("int32", (1 << 31) - 1)
    nan = f"(own == to_{key}({most}))"
    return f"""def mode(bufs, args):
    x = buffer(bufs, 0, {buffer_dtype(np.dtype(dtype))})
    out = buffer(bufs, 1, int64)
    keys = buffer(bufs, 2, {key})
    n = args[1]
    counts = {_ABREAST} * n
    best = counts + {_ABREAST}
    least = best + {_ABREAST}
    place = least + {_ABREAST}
    wide()
    for first in range(0, args[0], {_ABREAST}):
        rows = min({_ABREAST}, args[0] - first)
        for l in range({_ABREAST}):
            keys[best + l] = to_{key}(0)
            keys[least + l] = to_{key}(0)
            keys[place + l] = to_{key}(0)
        for l in range(rows):
            for j in range(n):
                keys[{_ABREAST} * j + l] = sort_key(x[(first + l) * n + j])
        for i in range(n):
            for l in range({_ABREAST}):
                keys[counts + l] = to_{key}(0)
{_counted("==", "0", "n", key, "counts", 12)}
            for l in range({_ABREAST}):
                own = keys[{_ABREAST} * i + l]
                count = where({nan}, to_{key}(1), keys[counts + l])
                same = (count == keys[best + l]) & (own == keys[least + l]) & (own != to_{key}({most}))
                fewer = (count == keys[best + l]) & (own < keys[least + l])
                better = (count > keys[best + l]) | fewer
                keys[best + l] = where(better, count, keys[best + l])
                keys[least + l] = where(better, own, keys[least + l])
                keys[place + l] = where(better | same, to_{key}(i), keys[place + l])
        for l in range(rows):
            out[first + l] = to_int64(keys[place + l])
    return 0
"""
