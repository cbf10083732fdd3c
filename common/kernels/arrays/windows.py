"""Kernels that lay the windows of images out as columns, and add columns up again.

================  ===========  =============  ===================================================================
kernel            buffers      args           result
================  ===========  =============  ===================================================================
``columns``       x, out       `column_args`  out[n, c, k, l] = x[n, c, place of k in window l]; 0 outside x
``from_columns``  g, out       `column_args`  out[n, c, place] = the sum of g[n, c, k, l] there, in the order of k
``window_sum``    x, out       `window_args`  out[p, l] = the sum of x[p, places of window l], in C order
``window_add``    g, out       `window_args`  out[p, place] = the sum of g[p, l] of its windows, in the order of l
``window_max``    x, out       `window_args`  out[p, l] = where in x[p] the maximum of window l is, int64
================  ===========  =============  ===================================================================

Images are (n, c, d, h, w), contiguous, planes p are (d, h, w); windows l and places k in a window are in C order. The
maximum is the first one, or the last NaN. Windows have a size, a step from one to the next, a step between the
elements of one, and begin so far before the image (padding). Windows of size 0 are adaptive: window l of m is
[floor(l n / m), ceil((l + 1) n / m)). No kernel needs scratch or returns a status other than 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.kernels.arrays.copying import buffer_dtype

__all__ = [
    "add_source", "column_args", "columns_source", "from_columns_source", "max_source", "sum_source", "window_args",
]  # fmt: skip


def column_args(
    n: Any, c: Any, sizes: Sequence[Any], windows: Sequence[Sequence[Any]], steps: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the args of ``columns`` and ``from_columns``.

    Parameters
    ----------
    n, c : images and channels.
    sizes : d, h, w.
    windows : size, count, stride, padding and dilation, three each.
    steps : elements from one n, c and k to the next among the columns.
    """
    return (n, c, *sizes, *(value for three in windows for value in three), *steps)


def window_args(planes: Any, sizes: Sequence[Any], windows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return the args of the other kernels; `windows` as in `column_args`."""
    return (planes, *sizes, *(value for three in windows for value in three))


_HEAD = """    n_count = args[0]
    c_count = args[1]
    d = args[2]
    h = args[3]
    w = args[4]
    kd = args[5]
    kh = args[6]
    kw = args[7]
    od = args[8]
    oh = args[9]
    ow = args[10]
    sw = args[13]
    wide()
    for image in range(n_count * c_count):
        base = image * d * h * w
        start = image // c_count * args[20] + image % c_count * args[21]
"""
_ROWS = """        for k in range(kd * kh * kw):
            q = start + k * args[22]
            across = k % kw * args[19] - args[16]
            first = min(max((sw - 1 - across) // sw, 0), ow)
            if across >= 0:
                first = 0
            last = first
            if w > across:
                last = min(max((w - across + sw - 1) // sw, first), ow)
            for a in range(od):
                z = a * args[11] + k // (kh * kw) * args[17] - args[14]
                for b in range(oh):
                    y = b * args[12] + k // kw % kh * args[18] - args[15]
                    inside = z >= 0 and z < d and y >= 0 and y < h
                    p = base + (z * h + y) * w + across
"""


def columns_source(dtype: Any) -> str:
    """Return the kernel that lays windows out as columns."""
    kind = buffer_dtype(dtype)
    return f"""def columns(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    zero = {kind}(0)
{_HEAD}{_ROWS}                    if inside:
                        for i in range(first):
                            out[q + i] = zero
                        if sw == 1:
                            for i in range(first, last):
                                out[q + i] = x[p + i]
                        else:
                            for i in range(first, last):
                                out[q + i] = x[p + i * sw]
                        for i in range(last, ow):
                            out[q + i] = zero
                    else:
                        for i in range(ow):
                            out[q + i] = zero
                    q += ow
    return 0
"""


def from_columns_source(dtype: Any) -> str:
    """Return the kernel that adds columns to the places where they come from."""
    kind = buffer_dtype(dtype)
    return f"""def from_columns(bufs, args):
    g = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    zero = {kind}(0)
{_HEAD}        for i in range(d * h * w):
            out[base + i] = zero
{_ROWS}                    if inside:
                        if sw == 1:
                            for i in range(first, last):
                                out[p + i] = out[p + i] + g[q + i]
                        else:
                            for i in range(first, last):
                                out[p + i * sw] = out[p + i * sw] + g[q + i]
                    q += ow
    return 0
"""


def _limits(name: str, size: str, count: str, at: int) -> list[str]:
    """Lines that set the first place of window `name` in the image, the end and the step."""
    kernel, stride, padding, dilation = (f"args[{4 + 3 * i + at}]" for i in (0, 2, 3, 4))
    return [
        f"{name}0 = {name} * {stride} - {padding}",
        f"{name}_by = max({dilation}, 1)",
        f"{name}1 = min({name}0 + ({kernel} - 1) * {name}_by + 1, {size})",
        f"if {name}0 < 0:",
        f"    {name}0 += (-{name}0 + {name}_by - 1) // {name}_by * {name}_by",
        f"if {kernel} == 0:",
        f"    {name}_by = 1",
        f"    {name}0 = {name} * {size} // {count}",
        f"    {name}1 = (({name} + 1) * {size} + {count} - 1) // {count}",
    ]


def _windows(body: str, indent: int = 20) -> str:
    """Nested loops over planes, windows `q`, and the places `p` in one, with lines before and after."""
    before, inner, after = body.split("---\n")

    def lines(text: str, depth: int) -> str:
        return "".join(" " * depth + line + "\n" for line in text.splitlines())

    return (
        lines("d = args[1]\nh = args[2]\nw = args[3]\nod = args[7]\noh = args[8]\now = args[9]\nq = 0\nwide()\n"
              "for plane in range(args[0]):\n    base = plane * d * h * w\n    for a in range(od):", 4)
        + lines("\n".join(_limits("a", "d", "od", 0)), 12) + lines("for b in range(oh):", 12)
        + lines("\n".join(_limits("b", "h", "oh", 1)), 16) + lines("for c in range(ow):", 16)
        + lines("\n".join(_limits("c", "w", "ow", 2)), indent) + lines(before, indent)
        + lines("for z in range(a0, a1, a_by):\n    for y in range(b0, b1, b_by):\n"
                "        row = base + (z * h + y) * w\n        for v in range(c0, c1, c_by):", indent)
        + lines("p = row + v", indent + 12) + lines(inner, indent + 12) + lines(after, indent) + lines("q += 1", indent)
    )  # fmt: skip


def sum_source(dtype: Any) -> str:
    """Return the kernel that adds up each window."""
    kind = buffer_dtype(dtype)
    body = f"total = {kind}(0)\n---\ntotal = total + x[p]\n---\nout[q] = total"
    return f"def window_sum(bufs, args):\n    x = buffer(bufs, 0, {kind})\n    out = buffer(bufs, 1, {kind})\n" + (
        _windows(body) + "    return 0\n"
    )


def add_source(dtype: Any) -> str:
    """Return the kernel that adds one number per window to all places in it."""
    kind = buffer_dtype(dtype)
    fill = f"    for i in range(args[0] * args[1] * args[2] * args[3]):\n        out[i] = {kind}(0)\n"
    body = "value = g[q]\n---\nout[p] = out[p] + value\n---\n"
    return f"def window_add(bufs, args):\n    g = buffer(bufs, 0, {kind})\n    out = buffer(bufs, 1, {kind})\n" + (
        fill + _windows(body) + "    return 0\n"
    )


def max_source(dtype: Any) -> str:
    """Return the kernel that finds the maximum of each window."""
    kind = buffer_dtype(dtype)
    better = "x[p] > x[best]" if np.dtype(dtype).kind != "f" else "x[p] > x[best] or x[p] != x[p]"
    first = "best = base + (min(a0, d - 1) * h + min(b0, h - 1)) * w + min(c0, w - 1)"
    body = f"{first}\n---\nif {better}:\n    best = p\n---\nout[q] = best - base"
    return f"def window_max(bufs, args):\n    x = buffer(bufs, 0, {kind})\n    out = buffer(bufs, 1, int64)\n" + (
        _windows(body) + "    return 0\n"
    )
