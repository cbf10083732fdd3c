"""Kernels of random orders: draws of `rand` in float64, cut and joined with their places, and put in order.

================  ==========================  ==================  ======================================
kernel            buffers                     args                result
================  ==========================  ==================  ======================================
``random_keys``   seed, offset, scratch       n, digits, places   scratch = keys of n draws
``random_order``  seed, offset, out, scratch  n, digits, places   out = the positions of a stable sort
================  ==========================  ==================  ======================================

`places` are the bits of a place, `digits` those by which keys are put into buckets. Seed and offset are those of
`common.kernels.arrays.philox`.
"""

from __future__ import annotations

__all__ = ["random_keys_source", "random_order_scratch", "random_order_source"]

_NEAR = 1024
"""Numbers whose neighbours are exchanged while they are in the cache."""


def random_order_scratch(n: int, digits: int) -> int:
    """Bytes of scratch for n numbers: their keys, of whole vectors, and an end per bucket."""
    return 8 * (n + 63) + (4 << digits)


def random_keys_source() -> str:
    """Return ``random_keys(seed, offset, scratch; n, digits, places)``: n draws as keys of `random_order_source`.

    A number of `rand` in float64 is cut to as many bits as its place, of so many bits, leaves in an int64.
    """
    return """def random_keys(bufs, args):
    wide()
    seed = buffer(bufs, 0, int64)
    offset = buffer(bufs, 1, int64)
    keys = buffer(bufs, 2, int64)
    places = args[2]
    scale = to_float64(1 << (63 - places))
    if args[0] > 0:
        key = seed[0]
        first = offset[0]
        for i in range((args[0] + 63) // 64 * 64):
            keys[i] = (to_int64(uniform_float64(key, first + i) * scale) << places) | i
    return 0
"""


def random_order_source() -> str:
    """Return ``random_order(seed, offset, out, scratch; n, digits, places)``: positions of a stable sort of n draws.

    Keys, which `random_keys_source` makes, are put into buckets by their first binary digits (Knuth, The Art of
    Computer Programming 3, 5.2.1, exercise 38): a few in each, as they are spread evenly. Neighbours are exchanged for
    three rounds, without branches, and what is still not in order is inserted. Numbers that are cut to equal ones are
    compared whole.
    """
    return f"""def random_order(bufs, args):
    seed = buffer(bufs, 0, int64)
    offset = buffer(bufs, 1, int64)
    out = buffer(bufs, 2, int64)
    keys = buffer(bufs, 3, int64)
    ends = buffer(bufs, 3, int32)
    n = args[0]
    head = 2 * ((n + 63) // 64 * 64)
    buckets = 1 << args[1]
    down = 63 - args[1]
    places = args[2]
    mask = (1 << places) - 1
    if n < 1:
        return 0
    key = seed[0]
    first = offset[0]
    for b in range(buckets):
        ends[head + b] = to_int32(0)
    for i in range(n):
        at = head + (keys[i] >> down)
        ends[at] = to_int32(ends[at] + 1)
    total = to_int64(0)
    for b in range(buckets):
        count = ends[head + b]
        ends[head + b] = to_int32(total)
        total += count
    for i in range(n):
        k = keys[i]
        at = head + (k >> down)
        to = ends[at]
        ends[at] = to_int32(to + 1)
        out[to] = k
    for start in range(0, n, {_NEAR}):
        stop = min({_NEAR}, n - start)
        for turn in range(3):
            for p in range(stop >> 1):
                a = out[start + 2 * p]
                b = out[start + 2 * p + 1]
                out[start + 2 * p] = min(a, b)
                out[start + 2 * p + 1] = max(a, b)
            for p in range((stop - 1) >> 1):
                a = out[start + 2 * p + 1]
                b = out[start + 2 * p + 2]
                out[start + 2 * p + 1] = min(a, b)
                out[start + 2 * p + 2] = max(a, b)
    for start in range(1, n, 64):
        stop = min(start + 64, n)
        wrong = 0
        for i in range(start, stop):
            wrong |= 1 if out[i] < out[i - 1] else 0
        if wrong != 0:
            for i in range(start, stop):
                k = out[i]
                j = i
                while j > 0 and out[j - 1] > k:
                    out[j] = out[j - 1]
                    j -= 1
                out[j] = k
    same = 0
    for i in range(1, n):
        same |= 1 if out[i] >> places == out[i - 1] >> places else 0
    if same != 0:
        for i in range(1, n):
            k = out[i]
            u = uniform_float64(key, first + (k & mask))
            j = i
            before = i - 1
            while before >= 0 and out[before] >> places == k >> places:
                above = uniform_float64(key, first + (out[before] & mask)) > u
                out[j] = where(above, out[before], out[j])
                j = where(above, before, j)
                before = where(above, before - 1, -1)
            out[j] = k
    for i in range(n):
        out[i] = out[i] & mask
    return 0
"""
