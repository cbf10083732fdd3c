"""The kernel ``runs``: the first one of each run of equal neighbours, by one pass.

Buffers: x, values, first, number, lengths, count; args: n. Per run ``values`` gets its first element, ``first`` its
place, ``lengths`` how many elements it has; ``number`` gets the run of each element, ``count[0]`` how many runs there
are. A nan equals nothing. All but x and values are int64; what is not wanted may have no elements, the others have n.
Status: always 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from common.kernels.arrays.copying import buffer_dtype

__all__ = ["runs_source"]


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
