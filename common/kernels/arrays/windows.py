"""Kernels that lay the windows of images out as columns, and add columns up again.

================  ===========  =============  ===================================================================
kernel            buffers      args           result
================  ===========  =============  ===================================================================
``columns``       x, out       `column_args`  out[n, c, k, l] = x[n, c, place of k in window l]; 0 outside x
``from_columns``  g, out       `column_args`  out[n, c, place] = the sum of g[n, c, k, l] there, in the order of k
``window_sum``    x, out       `window_args`  out[p, l] = the sum of x[p, places of window l], in C order
``window_add``    g, out       `window_args`  out[p, place] = the sum of g[p, l] of its windows, in the order of l
``window_max``    x, out       `window_args`  out[p, l] = where in x[p] the maximum of window l is, int64
``window_amax``   x, out       `window_args`  out[p, l] = the maximum of window l; the least number if it is empty
================  ===========  =============  ===================================================================

Images are (n, c, d, h, w), contiguous, planes p are (d, h, w); windows l and places k in a window are in C order. The
maximum is the first one, or the last NaN. Windows have a size, a step from one to the next, a step between the
elements of one, and begin so far before the image (padding). Windows of size 0 are adaptive: window l of m is
[floor(l n / m), ceil((l + 1) n / m)). No kernel needs scratch or returns a status other than 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from common.core.numerics import LANES
from common.kernels.arrays.convolution_text import indented
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.shared_parts import WHOLE, in_parts

UNROLLED = 27
"""Elements of a window up to which the place of its maximum is found without loops."""

__all__ = [
    "UNROLLED", "add_source", "better", "column_args", "columns_source", "from_columns_source", "head_of_planes",
    "limits", "max_source", "of_planes", "one_by_one", "together", "window_args",
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
    """Return the args of the other kernels, whose planes threads share; `windows` as in `column_args`."""
    return (planes, *sizes, *(value for three in windows for value in three), WHOLE)


def head_of_planes(name: str, operands: str, dtype: Any, result: Any) -> str:
    """The first lines of a kernel of planes: buffers of operands and ``out``, sizes, and which planes it does."""
    in_vectors = f"od * oh * max(ow, {LANES}) * args[4] * args[5] * args[6]"  # a short row takes as long as a vector
    elements = f"args[0] * max(d * h * w, {in_vectors})"
    *_, x = names = operands.split()
    held = "".join(f"    {name} = buffer(bufs, {i}, {buffer_dtype(dtype)})\n" for i, name in enumerate(names))
    return f"""def {name}(bufs, args):
{held}    out = buffer(bufs, {len(names)}, {buffer_dtype(result)})
    d = args[1]
    h = args[2]
    w = args[3]
    od = args[7]
    oh = args[8]
    ow = args[9]
{in_parts(19, "args[0]", elements, x)}"""


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
    sh = args[12]
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


_LAID = """        for k in range(0, kd * kh * kw, kw):
            top = k // kw % kh * args[18] - args[15]
            for a in range(od):
                z = a * args[11] + k // (kh * kw) * args[17] - args[14]
                first = min((max(-top, 0) + sh - 1) // sh, oh)
                last = max(min((max(h - top, 0) + sh - 1) // sh, oh), first)
                if z < 0 or z >= d:
                    last = first
                p = base + (z * h + top) * w - args[16]
                q = start + k * args[22] + a * oh * ow
                lay_windows(x, p, out, q, -args[16], w, ow, sw, args[19], kw, first, last, oh, sh * w, args[22], 1, 0)
    return 0
"""
_COPIED = """                    for i in range(ow):
                        out[q + i] = zero
                    if inside:
                        for i in range(first, last):
                            out[q + i] = x[p + i * sw]
                    q += ow
    return 0
"""


def columns_source(dtype: Any) -> str:
    """Return the kernel that lays windows out as columns: by machine code for vectors of elements as wide as floats."""
    laid = np.dtype(dtype).itemsize > 2
    kind = f"float{8 * np.dtype(dtype).itemsize}" if laid else buffer_dtype(dtype)
    return f"""def columns(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    zero = {kind}(0)
{_HEAD}{_LAID if laid else _ROWS + _COPIED}"""


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


def limits(name: str, size: str, count: str, at: int) -> str:
    """Lines that set the first place of window `name` in the image, the end and the step."""
    kernel, stride, padding, dilation = (f"args[{4 + 3 * i + at}]" for i in (0, 2, 3, 4))
    return f"""{name}0 = {name} * {stride} - {padding}
{name}_by = max({dilation}, 1)
{name}1 = min({name}0 + ({kernel} - 1) * {name}_by + 1, {size})
if {name}0 < 0:
    {name}0 += (-{name}0 + {name}_by - 1) // {name}_by * {name}_by
if {kernel} == 0:
    {name}_by = 1
    {name}0 = {name} * {size} // {count}
    {name}1 = (({name} + 1) * {size} + {count} - 1) // {count}
"""


def one_by_one(body: str, whole: str = "") -> str:
    """Nested loops over planes, windows `q`, and the places `p` in one, with lines before and after.

    Parameters
    ----------
    body : the lines before the places of a window, for each of them, and after, with ``---`` between.
    whole : lines for the windows of a row that are not cut at its ends, from `first` to before `last`, which begin at
        column ``c * step - args[15]``; they are done between those before and behind. By default all are done one by
        one.
    """
    before, inner, after = body.split("---\n")

    def lines(text: str, depth: int) -> str:
        return "".join(" " * depth + line + "\n" for line in text.splitlines())

    return (
        lines("q = low * od * oh * ow\nwide()\nstep = args[12]\nfirst = ow\nlast = ow", 4)
        + lines("each = w // max(ow, 1)\nmore = w % max(ow, 1)", 4)
        + lines(_WHOLE if whole else "", 4)
        + lines("for plane in range(low, high):\n    base = plane * d * h * w\n    for a in range(od):", 4)
        + lines(limits("a", "d", "od", 0), 12) + lines("for b in range(oh):", 12)
        + lines(limits("b", "h", "oh", 1), 16) + lines("for side in range(2):", 16)
        + lines(f"if side == 1:\n{indented(whole, 4)}" if whole else "", 20)
        + lines("start = 0 if side == 0 else last\nend = first if side == 0 else ow\nreached = 0\nover = 0", 20)
        + lines("for c in range(start, end):", 20) + lines(_COLUMNS, 24) + lines(before, 24)
        + lines("for z in range(a0, a1, a_by):\n    for y in range(b0, b1, b_by):\n"
                "        row = base + (z * h + y) * w\n        for v in range(c0, c1, c_by):", 24)
        + lines("p = row + v", 36) + lines(inner, 36) + lines(after, 24) + lines("q += ow", 16)
    )  # fmt: skip


_COLUMNS = f"""if args[6] == 0:
    c_by = 1
    c0 = reached
    reached += each
    over += more
    if over >= ow:
        over -= ow
        reached += 1
    c1 = reached + (1 if over > 0 else 0)
else:
{indented(limits("c", "w", "ow", 2), 4)}"""
"""The columns of window `c`: adaptive ones follow each other, and are counted without divisions."""

_WHOLE = """room = w + args[15] - (args[6] - 1) * args[18] - 1
if args[6] > 0 and room >= 0:
    first = min((args[15] + step - 1) // step, ow)
    last = max(first, min(ow, room // step + 1))"""
"""The windows of a row that are not cut at its ends."""

_TOGETHER = """for z in range(a0, a1, a_by):
    for y in range(b0, b1, b_by):
        row = base + (z * h + y) * w - args[15]
        for k in range({order}):
            at = row + k * args[18]
            if step == 1:
                for c in range(first, last):
                    {one}
            elif step == 2:
                for c in range(first, last):
                    {two}
            else:
                for c in range(first, last):
                    {more}"""
"""An element of all windows of a row after the other: in the order of each window, or of each place if it goes back."""


def together(order: str, added: str) -> str:
    """Lines for the windows that are whole; `added` is what is done at a place."""
    one, two, more = (added.replace("PLACE", f"at + c{by}") for by in ("", " * 2", " * step"))
    return _TOGETHER.format(order=order, one=one, two=two, more=more)


def add_source(dtype: Any) -> str:
    """Return the kernel that adds one number per window to all places in it."""
    kind = buffer_dtype(dtype)
    fill = f"    for i in range(low * d * h * w, high * d * h * w):\n        out[i] = {kind}(0)\n"
    whole = together("args[6] - 1, -1, -1", "out[PLACE] = out[PLACE] + g[q + c]")
    body = "value = g[q + c]\n---\nout[p] = out[p] + value\n---\n"
    return head_of_planes("window_add", "g", dtype, dtype) + fill + one_by_one(body, whole) + "    return 0\n"


def max_source(
    dtype: Any, size: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any], padding: Sequence[Any]
) -> str:
    """Return the kernel that finds where the maximum of each window is.

    Parameters
    ----------
    size, stride, dilation, padding : of windows. Small windows are read without a loop, by these numbers.
    """
    first = "best = base + (min(a0, d - 1) * h + min(b0, h - 1)) * w + min(c0, w - 1)"
    body = f"{first}\n---\nif {better(dtype, 'x[p]', 'x[best]')}:\n    best = p\n---\nout[q + c] = best - base"
    head = head_of_planes("window_max", "x", dtype, np.int64) + of_planes(dtype, "at")
    if not _is_small(size, stride, dilation):
        return head + one_by_one(body) + "    return 0\n"
    places = _Places(size, stride, dilation, any(type(p) is not int or p for p in padding))
    whole = _compared(places.inside, prod(size), dtype)
    cut = [] if places.apart else _compared(places.clamped, prod(size), dtype)
    if cut and stride[2] > 1:  # vectors gather elements of neighbours anyway: those of the ends, too
        return head + _unrolled(body, places, cut, cut, [
            f"if known and (ow - 1) * {stride[2]} - args[15] < w:", "    first = 0", "    last = ow"])  # fmt: skip
    return head + _unrolled(body, places, whole, cut, [])


def of_planes(dtype: Any, result: str) -> str:
    """Lines for planes of floats that are one window each; `result` is that of the maximum at ``at``."""
    if np.dtype(dtype).kind != "f":
        return ""
    sizes = "args[4] == d and args[5] == h and args[6] == w and args[13] + args[14] + args[15] == 0"
    return f"""    if od * oh * ow == 1 and (args[4] + args[5] + args[6] == 0 or {sizes}):
        for plane in range(low, high):
            at = first_maximum(x, plane * d * h * w, d * h * w)
            out[plane] = {result}
        return 0
"""


def better(dtype: Any, new: str, old: str) -> str:
    """Whether an element takes the place of the maximum of those before it."""
    return f"{new} > {old} or {new} != {new}" if np.dtype(dtype).kind == "f" else f"{new} > {old}"


def _is_small(*numbers: Sequence[Any]) -> bool:
    """Whether windows of this size, stride and dilation are known and have so few elements that no loop is needed."""
    return all(type(k) is int for three in numbers for k in three) and 1 <= prod(numbers[0]) <= UNROLLED


def _compared(place: Callable[[int], str], count: int, dtype: Any) -> list[str]:
    """Lines that compare the elements of a window one after the other, and keep where the maximum is."""
    lines = [f"p0 = {place(0)}", "m0 = x[p0]", "at0 = p0 - base"]
    for i in range(1, count):
        lines += [f"p{i} = {place(i)}", f"v{i} = x[p{i}]", f"t{i} = {better(dtype, f'v{i}', f'm{i - 1}')}",
                  f"m{i} = v{i} if t{i} else m{i - 1}", f"at{i} = p{i} - base if t{i} else at{i - 1}"]  # fmt: skip
    return [*lines, f"out[q + c] = at{count - 1}"]


class _Places:
    """Where the elements of small windows are, as expressions.

    Attributes
    ----------
    apart : False if an element that is outside is replaced by the nearest inside, which is of the window too, and
        neither before nor behind another one: in padded windows whose elements are next to each other.
    rows : lines that set the rows ``r0, r1, ...`` of the windows of a row: where each begins, in column -padding.
    """

    def __init__(self, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int], padded: bool) -> None:
        self.size, self.stride, self.dilation = size, stride, dilation
        self.apart = not padded or any(d > 1 < k for d, k in zip(dilation, size, strict=True))
        self.columns = [v * dilation[2] for v in range(size[2])]
        steps = [(z * dilation[0], y * dilation[1]) for z in range(size[0]) for y in range(size[1])]
        each = [(f"z + {z}", f"y + {y}") for z, y in steps]
        if not self.apart:
            each = [(f"min(max({z}, 0), d - 1)", f"min(max({y}, 0), h - 1)") for z, y in each]
        self.rows = [f"r{i} = base + (({z}) * h + {y}) * w - args[15]" for i, (z, y) in enumerate(each)]

    def inside(self, i: int) -> str:
        """Element i of window `c` whose columns are inside."""
        row, column = divmod(i, len(self.columns))
        return f"r{row} + c * {self.stride[2]} + {self.columns[column]}"

    def clamped(self, i: int) -> str:
        """Element i of window `c`, or the nearest one in its row."""
        row, column = divmod(i, len(self.columns))
        return f"r{row} + min(max(c * {self.stride[2]} + {self.columns[column]}, args[15]), args[15] + w - 1)"


def _unrolled(
    body: str, places: _Places, whole: Sequence[str], cut: Sequence[str], ends: Sequence[str]
) -> str:
    """The rest of a kernel for windows of so few elements that all are handled without a loop.

    Parameters
    ----------
    body : lines for windows that the image's border cuts, as in `_windows`.
    whole : lines for window `c` of a row, whose elements are inside.
    cut : lines for one that begins before the end of its row, and is cut; none if they are as those beyond.
    ends : lines that may move `first` and `last`, between which windows are handled as whole ones.
    """
    (kd, kh, kw), (sd, sh, sw), (dd, dh, dw) = places.size, places.stride, places.dilation
    before, inner, after = (text.splitlines() for text in body.split("---\n"))
    known = "z < d and y < h"
    if not cut:
        known = f"z >= 0 and z + {(kd - 1) * dd} < d and y >= 0 and y + {(kh - 1) * dh} < h"

    def lines(text: Sequence[str], depth: int) -> str:
        return "".join(f"{'    ' * depth}{line}\n" for line in text)

    slow = [*limits("c", "w", "ow", 2).splitlines(), *before, "for z in range(a0, a1, a_by):",
            "    for y in range(b0, b1, b_by):", "        for v in range(c0, c1, c_by):",
            "            p = base + (z * h + y) * w + v",
            *(f"            {line}" for line in inner), *after]  # fmt: skip
    if cut:
        slow = [f"if known and c * {sw} - args[15] < w:", *(f"    {line}" for line in cut), "else:",
                *(f"    {line}" for line in slow)]  # fmt: skip
    return (
        lines(["wide()", f"left = min((args[15] + {sw - 1}) // {sw}, ow)", "right = left",
               f"room = w + args[15] - {(kw - 1) * dw + 1}", "if room >= 0:",
               f"    right = max(left, min(ow, room // {sw} + 1))", "q = low * od * oh * ow",
               "for plane in range(low, high):", "    base = plane * d * h * w", "    for a in range(od):"], 1)
        + lines([*limits("a", "d", "od", 0).splitlines(), "for b in range(oh):"], 3)
        + lines([*limits("b", "h", "oh", 1).splitlines(), f"z = a * {sd} - args[13]", f"y = b * {sh} - args[14]",
                 f"known = {known}", "first = left if known else ow", "last = right if known else ow", *places.rows,
                 *ends, "for c in range(first, last):"], 4)
        + lines(whole, 5)
        + lines(["for side in range(2):", "    start = 0 if side == 0 else last",
                 "    end = first if side == 0 else ow", "    for c in range(start, end):"], 4)
        + lines(slow, 6)
        + lines(["q += ow"], 4) + lines(["return 0"], 1)
    )  # fmt: skip
