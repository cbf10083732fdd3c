"""The kernel ``conv_weight`` of `common.kernels.arrays.convolution_blocks`: the product of g and windows, transposed.

Columns of windows are gathered, and become rows. Windows of many channels are multiplied where they lie in copies of
images, with panels of g, and the sums are turned in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_text import (
    COPIED,
    FEW,
    HERE,
    ROOM,
    WIDTH,
    gathered,
    head,
    indented,
    is_flat,
    turns,
)

__all__ = ["scratch_of_weights", "weight_source"]

_FEWEST = 24
"""Channels of the result from which on lanes are channels: fewer are not long enough."""
_TURNED = 4
"""Panels of windows that are gathered before they are transposed."""
_LONG, _SHORT, _SMALL = 512, 64, 2**18
"""Windows of all images from which on it pays to transpose the gradient of the weights in the end, of many weights and
of fewer, and how many those are: a second-level cache holds them.
"""
_LINE = DEEP + 16
"""Elements from one gathered row to the next: not a power of 2, whose multiples share a few sets of every cache."""


def scratch_of_weights(o: Any, inner: Any) -> tuple[Any, Any]:
    """Return the elements of scratch: of the sums of a group, and of a part."""
    return (o + 2 * ROOM) * inner, COPIED + (2 * (o + WIDTH) + 1) * _LINE + _TURNED * WIDTH * _LINE


_WINDOWS = """for v in range((q + t) % lay, (q + t) % lay + many):
    oy = v // ow
    ox = v % ow
    j = places + 2 * (t + v - (q + t) % lay)
    at = (oy - (begin if (q + t) // lay == first else 0)) * length + ox
    at = at + ((q + t) // lay - first) * shifts * few_ * line
    steps[j] = (at * 64 + (4 if oy * sh < ph else 0) + (8 if oy * sh + (kh - 1) * dh >= h + ph else 0)
                + (16 if ox * sw < pw else 0) + (32 if ox * sw + (kw - 1) * dw >= w + pw else 0))
    steps[j + 1] = (t + v - (q + t) % lay) * columns
"""
"""The table of windows of a block: for which the first or the last row, or column, of places is outside the image."""


def _sizes(kind: Any, part: bool) -> str:
    """Whether windows are multiplied where they lie; and whether all of g is finite, so that zeros are left out."""
    finite = f"""if fits:
    finite = ph + pw > 0
    if finite:
        finite = row_max(g, 0, n * groups * o * lay) < {kind}(1e999)
        finite = finite and row_min(g, 0, n * groups * o * lay) > {kind}(-1e999)
    s[flag] = to_{kind}(finite)
"""
    return f"""pitch = (o + 15) // 16 * 16 + 16
copies = min(sh, (kh - 1) * dh + 1)
reach = (kh - 1) * dh // sh
shifts = min(sw, (kw - 1) * dw + 1)
length = ow + (kw - 1) * dw // sw
rows = min(oh, {DEEP - 2} // ow + 2)
lines = rows + reach
line = (copies * lines * length + 15) // 16 * 16 + 16
most = min(n, ({DEEP - 2} + lay) // lay + 1)
few_ = {COPIED - 16 * WIDTH} // (most * shifts * line) // 8 * 8
fits = c >= 8 and o >= {_FEWEST} and n * lay >= ({_SHORT} if o * inner <= {_SMALL} else {_LONG}) and few_ > 0
fits = fits and {is_flat("sw > 0")}
flag = groups * inner * pitch
{"" if part else finite}"""


def _side_by_side(kind: Any) -> str:
    """Windows of many channels are multiplied where they lie: the sums of a place of a channel lie side by side.

    Windows in which a place is outside the image are left out.
    """
    words, windows = 8 // kind.itemsize, indented(_WINDOWS, 16)
    return f"""if fits:
    copied = flag + {ROOM} + part * ({COPIED} + (o + {WIDTH}) * {2 * _LINE} + {_TURNED * WIDTH * _LINE})
    turned = copied + {COPIED}
    straight = turned + (o + {WIDTH}) * {_LINE}
    places = (straight + (o + {WIDTH}) * {_LINE} + {ROOM}) // {words}
    units = (c + 7) // 8
    low = units * part // step * 8
    high = min(c, units * (part + 1) // step * 8)
    for group in range(groups):
        for q in range(0, n * lay, {DEEP}):
            deep = min({DEEP}, n * lay - q)
            first = q // lay
            images = (q + deep - 1) // lay - first + 1
            begin = q % lay // ow
            t = 0
            while t < deep:
                many = min(lay - (q + t) % lay, deep - t)
                at = ((q + t) // lay * groups + group) * o * lay + (q + t) % lay
                if images > 1:
                    copy_windows(g, at, s, straight + t, 0, many, many, 1, o, lay, {_LINE})
{windows}                t = t + many
            e = 0
            f = turned
            while e < o:
{indented(HERE.format(rest="(o - e)"), 16)}                if images > 1:
                    pack_right_turned(s, straight + e * {_LINE}, {_LINE}, deep, here, s, f)
                else:
                    at = ((first * groups + group) * o + e) * lay + q % lay
                    pack_right_turned(g, at, lay, deep, here, s, f)
                f = f + {_LINE} * columns
                e = e + here
            for c0 in range(low, high, few_):
                planes = min(few_, high - c0)
                for i in range(images):
                    for phase in range(copies):
                        top = (begin if i == 0 else 0) * sh - ph + phase
                        t = min(lay, q + deep - (first + i) * lay) - 1
                        t = t // ow - (begin if i == 0 else 0) + 1 + reach
                        from_ = min((max(-top, 0) + sh - 1) // sh, t)
                        until = max(min((max(h - top, 0) + sh - 1) // sh, t), from_)
                        at = (((first + i) * groups + group) * c + c0) * plane + top * w - pw
                        to = copied + i * shifts * few_ * line + phase * lines * length
                        lay_windows(x, at, s, to, -pw, w, length, sw, 1, shifts, from_, until, t, sh * w, line,
                                    planes, plane)
                e = 0
                f = turned
                while e < o:
{indented(HERE.format(rest="(o - e)"), 20)}                    for i in range(k):
                        ky = i // kw * dh
                        kx = i % kw * dw
                        at = copied + kx % sw * line + kx // sw + (ky % sh * lines + ky // sh) * length
                        to = ((group * c + c0) * k + i) * pitch + e
                        ends = 0
                        if s[flag] > 0:
                            ends = ((4 if ky == 0 else 0) + (8 if i // kw == kh - 1 else 0)
                                    + (16 if kx == 0 else 0) + (32 if i % kw == kw - 1 else 0))
                        multiply_places(s, at, shifts * line, height * shifts * line, planes, s, f, s, places * {words},
                                        deep, ends, ends, here, s, to, k * pitch, height * k * pitch, q)
                    f = f + {_LINE} * columns
                    e = e + here
        turn_rows(out, group * o * inner + low * k, s, (group * inner + low * k) * pitch, inner, pitch, o,
                  (high - low) * k)
    return 0
"""


def weight_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_weight`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    return (
        head("conv_weight", ("g", "x", "out"), kind, part) + indented(FEW, 4)
        + "    columns = panel_width(g)\n    height = panel_height(g)\n"
        + indented(_sizes(kind, part), 4) + turns("conv_weight", "g", part) + indented(_side_by_side(kind), 4)
        + f"""    rows_ = part * (o * {_LINE} + {_TURNED * WIDTH * _LINE + (DEEP + ROOM) * WIDTH})
    windows = rows_ + o * {_LINE}
    panel = windows + {_TURNED * WIDTH * _LINE}
    units = (inner + {ROOM - 1}) // {ROOM}
    begin = units * part // step * {ROOM}
    end = min(inner, units * (part + 1) // step * {ROOM})
    for group in range(groups):
        for q in range(0, n * lay, {DEEP}):
            deep = min({DEEP}, n * lay - q)
            t = 0
            while t < deep:
                many = min(lay - (q + t) % lay, deep - t)
                place = ((q + t) // lay * groups + group) * o * lay + (q + t) % lay
                copy_windows(g, place, s, rows_ + t, 0, many, many, 1, o, lay, {_LINE})
                t = t + many
            for r in range(begin, end, {_TURNED} * columns):
                lines = min({_TURNED} * columns, end - r)
"""
        + gathered(16, "lines", "r", "deep", "windows + t", str(_LINE))
        + f"""                for e in range(0, lines, columns):
                    some = min(columns, lines - e)
                    pack_right_turned(s, windows + e * {_LINE}, {_LINE}, deep, some, s, panel)
                    place = group * o * inner + r + e
                    multiply_panel(s, rows_, {_LINE}, 1, {_LINE}, o, s, panel, deep, some, out, place, inner, q)
    return 0
"""
    )  # fmt: skip
