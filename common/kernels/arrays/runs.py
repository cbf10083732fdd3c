"""Kernels of runs of equal neighbours, by one pass each: finding them, and writing their numbers.

``runs``. Buffers: x, values, first, number, lengths, count; args: n. Per run ``values`` gets its first element,
``first`` its place, ``lengths`` how many elements it has; ``number`` gets the run of each element, ``count[0]`` how
many runs there are. A nan equals nothing. What is not wanted may have no elements, the others have n.

``all_lengths``. Buffers: lengths, found; args: n. The sum of n lengths, at most `MOST`, and the least of them.

``places``. Buffers: lengths, out; args: n. Per run as often its number as its length says: so long is `out`.

All but x and values are int64. Status: always 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from common.kernels.arrays.copying import buffer_dtype

__all__ = ["LENGTHS", "MOST", "PLACES", "runs_source"]

MOST = 1 << 40
"""Larger sums are told as this one."""

LENGTHS = f"""def all_lengths(bufs, args):
    lengths = buffer(bufs, 0, int64)
    found = buffer(bufs, 1, int64)
    total = 0
    least = {MOST}
    for i in range(args[0]):
        length = lengths[i]
        total = total + length if length < {MOST} - total else {MOST}
        least = min(least, length)
    found[0] = total
    found[1] = least
    return 0
"""

PLACES = """def places(bufs, args):
    lengths = buffer(bufs, 0, int64)
    out = buffer(bufs, 1, int64)
    p = 0
    for i in range(args[0]):
        for c in range(lengths[i]):
            out[p + c] = i
        p += lengths[i]
    return 0
"""


@cache
def runs_source(dtype: Any, numbered: bool, measured: bool) -> str:
    """Return the kernel; an element that begins no run is written where the next run will be.

    Parameters
    ----------
    numbered, measured : whether numbers and lengths are wanted.
    """
    kinds = [buffer_dtype(dtype)] * 2 + ["int64"] * 4
    names = zip(("x", "values", "first", "number", "lengths", "count"), kinds, strict=True)
    buffers = "\n".join(f"    {name} = buffer(bufs, {i}, {kind})" for i, (name, kind) in enumerate(names))
    number = "\n        number[i] = found - 1" * numbered
    lengths = "\n    for c in range(found):\n        lengths[c] = (first[c + 1] if c + 1 < found else n) - first[c]"
    return f"""def runs(bufs, args):
{buffers}
    n = args[0]
    found = 0
    for i in range(n):
        values[found] = x[i]
        first[found] = i
        found += 1 if x[i] != x[max(i - 1, 0)] or i == 0 else 0{number}{lengths * measured}
    count[0] = found
    return 0
"""
