"""Kernels of compositions that would write and read an array per op: gated halves, cross products, reflected borders.

The eager engine runs them; traces have the ops, whose bits these are. An operand is seen as ``(outer, size, inner)``,
size that of the dimension in question.

====================  =============  =============================  ==============================================
kernel                buffers        args                           result
====================  =============  =============================  ==============================================
``gated``             x, out         outer, half of size * inner    first half times sigmoid of the second
``gated_slopes``      g, x, out      the same                       its gradient
``crossed``           a, b, out      outer, inner                   cross products of 3 components
``reflected``         x, out         outer, (size, l, whole) x 3    x with l reflected elements before it, and others
                                                                    after it, in three dimensions
``replicated``        x, out         the same                       the same with the first and last elements
``unreflected``       g, out         outer, size, inner, l, r       the sum of what each element of x has become
``kronecker``         a, b, out      m, n, p, q                     the blocks a[i, j] b of (m, n) and (p, q)
``shuffled``          x, out         images, r, h, w                (r, r, h, w) of each as (h r, w r)
``unshuffled``        x, out         images, r, h, w                and back
``rolled``            x, out         outer, size * inner, turned    x turned by so many places
``others``            x, out, held   outer, size                    per element of a row the product of those before
                                                                    it times that of those after it
====================  =============  =============================  ==============================================

Scratch of `size` elements, which the last one alone uses, ends each list. Status: always 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["SOURCES"]


def _head(name: str, dtype: Any, operands: str) -> str:
    lines = [f"    {x} = buffer(bufs, {i}, {dtype})" for i, x in enumerate((*operands.split(), "out"))]
    return "\n".join([f"def {name}(bufs, args):", *lines, "    wide()"])


def _gated(dtype: Any) -> str:
    return f"""{_head("gated", dtype, "x")}
    width = args[1]
    for o in range(args[0]):
        p = 2 * o * width
        for i in range(width):
            out[o * width + i] = x[p + i] * sigmoid(x[p + width + i])
    return 0
"""


def _gated_slopes(dtype: Any) -> str:
    return f"""{_head("gated_slopes", dtype, "g x")}
    width = args[1]
    for o in range(args[0]):
        p = 2 * o * width
        for i in range(width):
            v = g[o * width + i]
            s = sigmoid(x[p + width + i])
            out[p + i] = v * s + {dtype}(0)
            out[p + width + i] = v * x[p + i] * (({dtype}(1) - s) * s) + {dtype}(0)
    return 0
"""


def _crossed(dtype: Any) -> str:
    return f"""{_head("crossed", dtype, "a b")}
    inner = args[1]
    for o in range(args[0]):
        p = 3 * o * inner
        q = p + inner
        r = q + inner
        for i in range(inner):
            out[p + i] = a[q + i] * b[r + i] - a[r + i] * b[q + i]
            out[q + i] = a[r + i] * b[p + i] - a[p + i] * b[r + i]
            out[r + i] = a[p + i] * b[q + i] - a[q + i] * b[p + i]
    return 0
"""


def _bordered(name: str, place: Callable[[str, str], str], before: str, after: str, dtype: Any) -> str:
    """A kernel of borders.

    Parameters
    ----------
    place : the element that stands at a place before, among or after n elements.
    before, after : that of a row ``x[p : p + n]`` at place k of l before it, and at place k behind it.
    """
    return f"""{_head(name, dtype, "x")}
    outer = args[1]
    rows = args[4]
    n = args[7]
    l = args[8]
    whole = args[9]
    for o in range(args[0]):
        for d in range(args[3]):
            i = d - args[2]
            i = {place("i", "outer")}
            for h in range(args[6]):
                j = h - args[5]
                j = {place("j", "rows")}
                p = ((o * outer + i) * rows + j) * n
                q = ((o * args[3] + d) * args[6] + h) * whole
                for k in range(n):
                    out[q + l + k] = x[p + k]
                for k in range(l):
                    out[q + k] = x[{before}]
                for k in range(whole - n - l):
                    out[q + l + n + k] = x[{after}]
    return 0
"""


def _mirrored(i: str, n: str) -> str:
    return f"-{i} if {i} < 0 else {i} if {i} < {n} else 2 * {n} - 2 - {i}"


def _nearest(i: str, n: str) -> str:
    return f"min(max({i}, 0), {n} - 1)"


def _unreflected(dtype: Any) -> str:
    return f"""{_head("unreflected", dtype, "g")}
    size = args[1]
    inner = args[2]
    l = args[3]
    whole = size + l + args[4]
    for o in range(args[0]):
        p = o * size * inner
        q = o * whole * inner
        for i in range(size * inner):
            out[p + i] = g[q + l * inner + i] + {dtype}(0)
        for j in range(args[4]):
            for i in range(inner):
                e = p + (size - 2 - j) * inner + i
                out[e] = out[e] + g[q + (l + size + j) * inner + i]
        for j in range(l):
            for i in range(inner):
                e = p + (l - j) * inner + i
                out[e] = out[e] + g[q + j * inner + i]
    return 0
"""


def _kronecker(dtype: Any) -> str:
    return f"""{_head("kronecker", dtype, "a b")}
    n = args[1]
    q = args[3]
    for i in range(args[0]):
        for k in range(args[2]):
            for j in range(n):
                v = a[i * n + j]
                to = ((i * args[2] + k) * n + j) * q
                for l in range(q):
                    out[to + l] = v * b[k * q + l]
    return 0
"""


def _shuffled(dtype: Any, back: bool = False) -> str:
    apart, joined = "(((o * r + a) * r + b) * h + i) * w + j", "((o * h + i) * r + a) * w * r + j * r + b"
    to, source = (apart, joined) if back else (joined, apart)
    return f"""{_head("unshuffled" if back else "shuffled", dtype, "x")}
    r = args[1]
    h = args[2]
    w = args[3]
    for o in range(args[0]):
        for i in range(h):
            for a in range(r):
                for b in range(r):
                    for j in range(w):
                        out[{to}] = x[{source}]
    return 0
"""


def _rolled(dtype: Any) -> str:
    return f"""{_head("rolled", dtype, "x")}
    width = args[1]
    by = args[2]
    for o in range(args[0]):
        q = o * width
        p = q + width - by
        for i in range(by):
            out[q + i] = x[p + i]
        for i in range(width - by):
            out[q + by + i] = x[q + i]
    return 0
"""


def _others(dtype: Any) -> str:
    return f"""{_head("others", dtype, "x")}
    held = buffer(bufs, 2, {dtype})
    n = args[1]
    for o in range(args[0]):
        p = o * n
        before = float64(1)
        after = float64(1)
        for i in range(n):
            j = n - 1 - i
            out[p + i] = to_{dtype}(before)
            held[j] = to_{dtype}(after)
            before = before * to_float64(x[p + i])
            after = after * to_float64(x[p + j])
        for i in range(n):
            out[p + i] = out[p + i] * held[i]
    return 0
"""


SOURCES: dict[str, Callable[[Any], str]] = {
    "kronecker": _kronecker,
    "gated": _gated, "gated_slopes": _gated_slopes, "crossed": _crossed,
    "reflected": partial(_bordered, "reflected", _mirrored, "p + l - k", "p + n - 2 - k"),
    "replicated": partial(_bordered, "replicated", _nearest, "p", "p + n - 1"),
    "unreflected": _unreflected, "others": _others, "rolled": _rolled, "shuffled": _shuffled,
    "unshuffled": partial(_shuffled, back=True),
}  # fmt: skip
"""The sources by their names, given the dtype."""
