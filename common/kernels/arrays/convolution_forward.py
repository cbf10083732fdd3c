"""The kernel ``conv`` of `common.kernels.arrays.convolution_blocks`: the product of the weights and windows.

A panel of windows is gathered from the images, in general. Those of planes and lines are multiplied where they lie in
copies of the image that have its padding, and the elements of windows side by side side by side, whatever their step.

Of many channels, rows of windows are multiplied where they lie, see `common.kernels.arrays.convolution_channels`.

Threads share strips of images, or swaths of windows; where there are few windows, rows of the weights too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_channels import by_channels, pack_channels, sizes_of_channels
from common.kernels.arrays.convolution_text import (
    COPIED,
    FEW,
    HERE,
    ROOM,
    SWATH,
    TOGETHER,
    WIDTH,
    gathered,
    head,
    indented,
    turns,
)

__all__ = ["forward_part", "forward_source"]

_DROPPED = 8
"""So many windows are dropped for each that is kept, times channels of the result, where that pays."""
_MANY, _MORE, _TALL = 192, 4096, 128
"""Windows from which on the weights are copied to panels, and how many if they have so many rows: fewer windows are
multiplied with the weights where these lie.
"""
_NARROW = 32
"""Windows that are multiplied at once at least: those of an image, or of a thread where rows can be shared instead."""


def forward_part(o: Any, inner: Any) -> Any:
    """Return the elements of scratch of a part: copies of images or a block of panels, and their results."""
    return COPIED + (o + 1) * SWATH + inner


def _stored(bias: bool, to: str, f: str, many: str) -> str:
    """Results of windows side by side, from the rows of a swath to those of the result."""
    if not bias:
        return f"""for r in range(0, tops, few):
    copy_windows(s, {f} + r * {SWATH}, out, {to} + r * lay, 0, {many}, {many}, 1, min(few, tops - r), {SWATH}, lay)
"""
    return f"""for r in range(tops):
    extra = b_[group * o + top_ + r]
    e = {to} + r * lay
    f = {f} + r * {SWATH}
    for j in range({many}):
        out[e + j] = s[f + j] + extra
"""


_STRIPS = f"""strips = (oh + rows - 1) // rows
strips = min(oh, (groups * slices * strips + step - 1) // step * step // (groups * slices))
rows = (oh + strips - 1) // strips
strips = (oh + rows - 1) // rows * ((ow + across - 1) // across)
together = 1
if strips == 1:
    copied = copies * (rows + reach) * (ow + more) + 31
    together = max(1, min(min({SWATH} // (oh * ow), room // copied), slices * groups // step))
high = (slices + together - 1) // together
"""
"""An image is computed in strips of at most `rows` rows, about equal, and so many that threads have equal parts; or in
parts of a row; of small images several meet the weights together.
"""

_PLACES = """line = (copies * lines * length + 15) // 16 * 16 + 16
for p in range(0, inner, {deep}):
    for i in range(flat):
        ky = i // kw * dh
        kx = i % kw * dw
        at = (ky % copies * lines + ky // copies) * length
        if apart:
            at = at + kx % sw * line + kx // sw
        else:
            at = at + i % kw * line
        for channel in range(p // flat, (min(inner, p + {deep}) - 1) // flat + 1):
            j = channel * flat + i
            if j >= p and j < p + {deep}:
                s[places + j] = to_{kind}(at + (channel - p // flat) * shifts * line)
"""


def _side_by_side(bias: bool, kind: Any) -> str:
    """Windows of an image, or a line, are multiplied where they lie in copies of it, one per column of a window.

    Of volumes, an image is a slice of the result, and a channel one line of planes that a window meets.

    In a copy the elements of windows side by side lie side by side, row by row without gaps. Where rows are whole
    vectors there is one copy per step, and rows have gaps: those of the next column lie one element further. So do rows
    of all steps follow each other. A block of places reads some channels only.
    """
    places = indented(_PLACES.format(deep=DEEP, kind=kind), 4)
    here = indented(HERE.format(rest="(whole - e)"), 20)
    return f"""flat = kh * kw
slices = n * od
copies = min(sh, (kh - 1) * dh + 1)
reach = (kh - 1) * dh // sh
apart = ow % 16 == 0
shifts = kw
more = 0
if apart:
    shifts = min(sw, (kw - 1) * dw + 1)
    more = (kw - 1) * dw // sw
few_ = min(c * kd, ({DEEP - 2} + flat) // flat + 1)
room = {COPIED} // (few_ * shifts) - 32
across = ow
rows = min(oh, room // (ow + more) // copies - reach)
if rows < 1:
    rows = 1
    across = (room // (copies * (1 + reach)) - more) // 16 * 16
whole = rows * across
fits = across > 0 and whole >= {_NARROW}
fits = fits and ((whole + 15) // 16 * 16 - whole) * o <= {_DROPPED} * whole
if fits and flat > 1:
{indented(_STRIPS, 4)}    places = y_
    lines = rows + reach
    length = across + more
{places}    for task in range((groups * high * strips - part + step - 1) // step):
        strip = (task * step + part) % strips
        image = (task * step + part) // strips % high * together
        group = (task * step + part) // strips // high
        first_row = strip // ((ow + across - 1) // across) * rows
        first_column = strip % ((ow + across - 1) // across) * across
        some = min(rows, oh - first_row)
        wide_ = min(across, ow - first_column)
        whole = some * wide_
        gap = length - wide_
        images = min(together, slices - image)
        for p in range(0, inner, {DEEP}):
            deep = min({DEEP}, inner - p)
            c0 = p // flat
            planes = (p + deep - 1) // flat - c0 + 1
            each = planes if kd == 1 else 1
            for i in range(images):
                for phase in range(copies):
                    top = first_row * sh - ph + phase
                    from_ = min((max(-top, 0) + sh - 1) // sh, lines)
                    until = max(min((max(h - top, 0) + sh - 1) // sh, lines), from_)
                    v = first_column * sw - pw
                    to = panel + i * planes * shifts * line + phase * lines * length
                    for channel in range(c0, c0 + planes, each):
                        z = (image + i) % od * sd - pd + channel % kd * dd
                        place = (((image + i) // od * groups + group) * c + channel // kd) * plane
                        place = place + (z * h + top) * w + v
                        last = until if z >= 0 and z < d else from_
                        lay_windows(x, place, s, to, v, w, length, sw, 1 if apart else dw, shifts, from_, last, lines,
                                    sh * w, line, each, plane)
                        to = to + shifts * line
            for i in range(images):
                to = ((image + i) // od * groups + group) * o * lay
                to = to + ((image + i) % od * oh + first_row) * ow + first_column
                e = 0
                while e < whole:
{here}                    f = panel + i * planes * shifts * line + e + e // wide_ * gap
                    v = e % wide_
                    if packed:
                        first = (group * inner + p) * tall
                        multiply_windows(s, first, 1, height, deep, o, s, f, s, places + p, deep, here, out, to + e,
                                         lay, p, wide_, v, gap)
                    else:
                        first = group * o * inner + p
                        multiply_windows(w_, first, inner, 1, inner, o, s, f, s, places + p, deep, here, out, to + e,
                                         lay, p, wide_, v, gap)
                    e = e + here
{_biased(bias)}    return 0
"""


def _biased(bias: bool) -> str:
    """Add to the results of a task what each channel has."""
    if not bias:
        return ""
    return """        for i in range(images):
            for r in range(o):
                extra = b_[group * o + r]
                to = (((image + i) // od * groups + group) * o + r) * lay
                to = to + ((image + i) % od * oh + first_row) * ow + first_column
                for j in range(whole):
                    out[to + j] = out[to + j] + extra
"""


_SHARES = f"""high = (n * lay + swath - 1) // swath
shares = 1
if step > 1:
    high = ((groups * high + step - 1) // step * step + groups - 1) // groups
    swath = min(swath, max({_NARROW}, ((n * lay + high - 1) // high + 15) // 16 * 16))
    high = (n * lay + swath - 1) // swath
    shares = min(tall // height, max(1, step // (groups * high)))
each = (tall // height + shares - 1) // shares * height
"""
"""Threads have swaths of about as many windows, and where those are few, each a share of the rows of the weights."""


def forward_source(dtype: Any, bias: bool = False, part: bool = False) -> str:
    """Return the kernel ``conv`` for float32 or float64; or of a part, whose number follows the sizes."""
    kind, name = np.dtype(dtype), "conv_bias" if bias else "conv"
    words = 8 // kind.itemsize
    packed = f"""{indented(FEW, 4)}    columns = panel_width(x)
    height = panel_height(x)
    tall = (o + height - 1) // height * height
    packed = n * lay >= ({_MANY} if o < {_TALL} else {_MORE})
{indented(sizes_of_channels(part), 4)}    flag = groups * (o + {WIDTH}) * inner + {ROOM * WIDTH}
    tables = (flag + {ROOM}) // {words}
    panel = (tables * {words} + {2 * words} * inner + 15) // 16 * 16
{indented("beside = s[flag] > 0" if part else pack_channels(kind), 4)}"""
    pack = f"""    if packed and not beside:
        for group in range(groups):
            for p in range(0, inner, {DEEP}):
                deep = min({DEEP}, inner - p)
                pack_left(w_, group * o * inner + p, inner, deep, o, s, (group * inner + p) * tall)
"""
    multiplied = f"here, s, y_ + e, {SWATH}, p)\n"
    return (
        head(name, ("x", "w_", *(["b_"] if bias else []), "out"), kind, part) + packed + ("" if part else pack)
        + turns(name, "x", part) + f"""    panel = panel + part * ({COPIED} + (o + 1) * {SWATH} + inner)
    y_ = panel + {COPIED + SWATH}
    swath = {TOGETHER} * columns
    top_ = 0
    tops = o
{indented(by_channels(bias, kind), 4)}{indented(_side_by_side(bias, kind), 4)}{indented(_SHARES, 4)}
    for task in range((groups * high * shares - part + step - 1) // step):
        top_ = (task * step + part) % shares * each
        tops = min(each, o - top_)
        q = (task * step + part) // shares % high * swath
        group = (task * step + part) // (shares * high)
        some = min(swath, n * lay - q)
        for p in range(0, inner, {DEEP}):
            deep = min({DEEP}, inner - p)
"""
        + gathered(12, "deep", "p", "some", "panel + t // columns * columns * deep + t % columns", "columns",
                    "columns - t % columns")
        + f"""            for e in range(0, some, columns):
                here = min(columns, some - e)
                at = panel + e * deep
                if packed:
                    first = (group * inner + p) * tall + top_ * deep
                    multiply_panel(s, first, 1, height, deep, tops, s, at, deep, {multiplied}                else:
                    first = (group * o + top_) * inner + p
                    multiply_panel(w_, first, inner, 1, inner, tops, s, at, deep, {multiplied}        t = 0
        while t < some:
            many = min(lay - (q + t) % lay, some - t)
            to = (q + t) // lay * groups * o * lay + (group * o + top_) * lay + (q + t) % lay
"""
        + indented(_stored(bias, "to", "y_ + t", "many"), 12)
        + "            t = t + many\n    return 0\n"
    )  # fmt: skip
