"""The recursion over all alignments of a target to frames, and its gradient, as one kernel each.

===================  =====================================================================
kernel               buffers
===================  =====================================================================
``alignments``       emitted, skips, frames, first, last, kept, sums
``alignments_back``  cotangent of last, skips, frames, kept, sums, cotangent of emitted, z
===================  =====================================================================

- emitted (steps, batch, count): logarithms of the states' probabilities in each frame; skips (batch, count), bools:
  whether a state is reached from two states before; frames (batch,): how many count; first and last (batch, count);
- kept (steps + 1, batch, count + 2): each row is two of `never` and then what is reached before a frame; sums (steps,
  batch, count): what the logarithms of the sums are. Without `keep` both have room for two frames, which take turns;
- z: scratch of ``2 (count + 2)`` elements. The cotangent of last becomes that of first;
- args: ``steps, batch, count``, of the first kernel also ``keep``. Status: always 0.

Every element is what the ops of `common.nn.ctc` give, frame by frame, bit by bit. A sum of three takes the first and
the third before the second, as the lanes of `common.core.numerics` do.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

__all__ = ["backward_source", "forward_source"]


@cache
def forward_source(dtype: Any, never: float) -> str:
    """Return the kernel ``alignments`` for float32 or float64."""
    kind = np.dtype(dtype)
    largest = repr(float(np.finfo(kind).max))
    return f"""def alignments(bufs, args):
    x = buffer(bufs, 0, {kind})
    skips = buffer(bufs, 1, bool_)
    frames = buffer(bufs, 2, int64)
    first = buffer(bufs, 3, {kind})
    last = buffer(bufs, 4, {kind})
    kept = buffer(bufs, 5, {kind})
    sums = buffer(bufs, 6, {kind})
    steps = args[0]
    batch = args[1]
    n = args[2]
    keep = args[3]
    never = {kind}({never!r})
    zero = {kind}(0)
    wide()
    for r in range(batch):
        for j in range(n):
            kept[r * (n + 2) + 2 + j] = first[r * n + j]
    for t in range(steps):
        here = t if keep != 0 else t & 1
        there = t + 1 if keep != 0 else (t + 1) & 1
        for r in range(batch):
            p = (here * batch + r) * (n + 2)
            q = (there * batch + r) * (n + 2) + 2
            s = (t * keep * batch + r) * n
            e = (t * batch + r) * n
            o = r * n
            counts = t < frames[r]
            kept[p] = never
            kept[p + 1] = never
            for j in range(n):
                a = kept[p + 2 + j]
                b = kept[p + 1 + j]
                c = where(skips[o + j], kept[p + j], never)
                top = maximum(maximum(a, b), c)
                top = where(gt(abs(top), {kind}({largest})), zero, top)
                y = log((exp(a - top) + exp(c - top)) + exp(b - top)) + top
                sums[s + j] = y
                kept[q + j] = where(counts, y + x[e + j], a)
    end = steps if keep != 0 else steps & 1
    for r in range(batch):
        for j in range(n):
            last[r * n + j] = kept[(end * batch + r) * (n + 2) + 2 + j]
    return 0
"""


@cache
def backward_source(dtype: Any, never: float) -> str:
    """Return the kernel ``alignments_back`` for float32 or float64."""
    kind = np.dtype(dtype)
    return f"""def alignments_back(bufs, args):
    g = buffer(bufs, 0, {kind})
    skips = buffer(bufs, 1, bool_)
    frames = buffer(bufs, 2, int64)
    kept = buffer(bufs, 3, {kind})
    sums = buffer(bufs, 4, {kind})
    dx = buffer(bufs, 5, {kind})
    z = buffer(bufs, 6, {kind})
    steps = args[0]
    batch = args[1]
    n = args[2]
    never = {kind}({never!r})
    zero = {kind}(0)
    m = n + 2
    wide()
    for j in range(2 * m):
        z[j] = zero
    for i in range(steps):
        t = steps - 1 - i
        for r in range(batch):
            p = (t * batch + r) * m
            e = (t * batch + r) * n
            o = r * n
            counts = t < frames[r]
            for j in range(n):
                v = g[o + j]
                w = where(counts, v, zero)
                y = sums[e + j]
                dx[e + j] = w
                g[o + j] = where(counts, zero, v) + w * exp(kept[p + 2 + j] - y)
                z[j] = w * exp(kept[p + 1 + j] - y)
                z[m + j] = where(skips[o + j], w * exp(where(skips[o + j], kept[p + j], never) - y), zero)
            for j in range(n):
                g[o + j] = (g[o + j] + z[m + j + 2]) + z[j + 1]
    return 0
"""
