"""The kernel ``conv`` of `common.kernels.arrays.convolution_blocks`: the product of the weights and windows.

A panel of windows is gathered from the images, in general. Windows a step apart that few channels of the result read
are multiplied where they lie in a copy with its padding. Those of few channels that are several steps apart are
gathered from a copy that has the elements of each step side by side.

Threads share strips of images, or swaths of windows; where there are few windows, rows of the weights too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_text import (
    FEW,
    HEIGHT,
    ROOM,
    SWATH,
    TOGETHER,
    WIDTH,
    gathered,
    head,
    indented,
    is_flat,
    padded,
    turns,
)

__all__ = ["forward_part", "forward_source"]

_COPIED = DEEP * SWATH - 2 * WIDTH
"""Elements of images that are copied with their padding at a time; some more are read behind them."""
_SPREAD = 64 * SWATH
"""Elements of images that are copied apart by their steps, and places of windows there."""
_DROPPED = 8
"""So many windows are dropped for each that is kept, times channels of the result, where that pays."""
_MANY, _MORE, _TALL = 192, 4096, 128
"""Windows from which on the weights are copied to panels, and how many if they have so many rows: fewer windows are
multiplied with the weights where these lie.
"""
_NARROW = 32
"""Windows that a thread multiplies at least, where the rows of the weights can be shared instead."""


def forward_part(o: Any) -> Any:
    """Return the elements of scratch of a part: a block of panels, their results, and images apart by their steps."""
    return (DEEP + o) * SWATH + _SPREAD


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


_STRIPS = """strips = (oh + rows - 1) // rows
strips = min(oh, (groups * n * strips + step - 1) // step * step // (groups * n))
rows = (oh + strips - 1) // strips
strips = (oh + rows - 1) // rows
"""
"""An image is computed in strips of at most `rows` rows, about equal, and so many that threads have equal parts."""

_STRIP = """first_row = (task * step + part) % strips * rows
image = (task * step + part) // strips % n
group = (task * step + part) // strips // n
some = min(rows, oh - first_row)
top = first_row * sh - ph
"""


def _where_they_lie(bias: bool) -> str:
    """Windows of an image, or a line, that are a step apart are multiplied where they lie in a copy with its padding.

    The copy is of a few rows of all channels of a group. Each element of a row begins a window; the last ones reach
    over its end and are dropped, so that it pays where they are few, or the results of each.
    """
    return f"""wp = w + 2 * pw
reach = (kh - 1) * dh
rows = min(oh, {_COPIED} // (c * wp) - reach)
if packed and near and {is_flat("sh * sw == 1")} and rows > 0:
{indented(_STRIPS, 4)}    for task in range((groups * n * strips - part + step - 1) // step):
{indented(_STRIP, 8)}        lines = some + reach
{indented(padded("panel"), 8)}        for q in range(0, some * wp, swath):
            there = min(swath, some * wp - q)
            for p in range(0, inner, {DEEP}):
                deep = min({DEEP}, inner - p)
                first = (group * inner + p) * tall
                kx = p % kw
                ky = p // kw % kh
                at = panel + q + (p // k * lines + ky * dh) * wp + kx * dw
                dy = dh * wp - (kw - 1) * dw
                dz = some * wp - (kw - 1) * dw
                for e in range(0, there, columns):
                    here = min(columns, there - e)
                    multiply_windows(s, first, 1, height, deep, o, s, at + e, deep, here, s, y_ + e, {SWATH}, p,
                                     kw, kh, dw, dy, dz, kx, ky)
            t = 0
            while t < there:
                ox = (q + t) % wp
                many = min(wp - ox, there - t)
                if ox < ow:
                    valid = min(ow - ox, many)
                    to = (image * groups + group) * o * lay + (first_row + (q + t) // wp) * ow + ox
{indented(_stored(bias, "to", "y_ + t", "valid"), 20)}                t = t + many
    return 0
"""


def _apart_by_steps(bias: bool, kind: Any) -> str:
    """Windows of few channels of an image, or a line, several steps apart: rows of them from a copy, step by step.

    Of a row of the image the copy has every `sw`-th element, then their neighbours, and so on. So those that windows
    side by side have at one place lie side by side. All places of a row of windows are copied by one call.
    """
    return f"""wide_ = (w + 2 * pw + sw - 1) // sw
line = sw * wide_
reach = (kh - 1) * dh + 1
most = ({_SPREAD - 2 * WIDTH} - inner) // (c * line)
rows = min(oh, (most - reach) // sh + 1)
fits = packed and most >= reach and rows * ow >= columns
if fits and {is_flat("sw > 1")}:
{indented(_STRIPS, 4)}    lines = (rows - 1) * sh + reach
    places = y_ + o * {SWATH}
    i = places
    for channel in range(c):
        for ky in range(kh):
            for kx in range(kw):
                s[i] = to_{kind}((channel * lines + ky * dh) * line + kx * dw % sw * wide_ + kx * dw // sw)
                i = i + 1
    for task in range((groups * n * strips - part + step - 1) // step):
{indented(_STRIP, 8)}        above = min(max(-top, 0), lines)
        below = max(min(h - top, lines), above)
        for phase in range(sw):
            v = phase - pw
            from_ = 0
            if v < 0:
                from_ = (sw - 1 - v) // sw
            until = max(from_, (w - v + sw - 1) // sw)
            for channel in range(c):
                place = ((image * groups + group) * c + channel) * plane + (top + above) * w + v
                at = i + channel * lines * line + phase * wide_
                copy_windows(x, 0, s, at, 0, 0, wide_, sw, above, 0, line)
                copy_windows(x, place, s, at + above * line, from_, until, wide_, sw, below - above, w, line)
                copy_windows(x, 0, s, at + below * line, 0, 0, wide_, sw, lines - below, 0, line)
        for q in range(0, some * ow, swath):
            there = min(swath, some * ow - q)
            for p in range(0, inner, {DEEP}):
                deep = min({DEEP}, inner - p)
                t = 0
                while t < there:
                    ox = (q + t) % ow
                    many = min(ow - ox, min(columns - t % columns, there - t))
                    at = i + (q + t) // ow * sh * line + ox
                    to = panel + t // columns * columns * deep + t % columns
                    copy_places(s, at, s, places + p, s, to, deep, many, columns)
                    t = t + many
                first = (group * inner + p) * tall
                for e in range(0, there, columns):
                    here = min(columns, there - e)
                    multiply_panel(s, first, 1, height, deep, o, s, panel + e * deep, deep, here, s, y_ + e, {SWATH}, p)
            to = (image * groups + group) * o * lay + first_row * ow + q
{indented(_stored(bias, "to", "y_", "there"), 12)}    return 0
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
    packed = f"""{indented(FEW, 4)}    columns = panel_width(x)
    height = panel_height(x)
    tall = (o + height - 1) // height * height
    near = k > 1 and (w + 2 * pw - ow) * o <= {_DROPPED} * ow
    packed = n * lay >= ({_MANY} if near or o < {_TALL} else {_MORE})
"""
    pack = f"""    if packed:
        for group in range(groups):
            for p in range(0, inner, {DEEP}):
                deep = min({DEEP}, inner - p)
                pack_left(w_, group * o * inner + p, inner, deep, o, s, (group * inner + p) * tall)
"""
    multiplied = f"here, s, y_ + e, {SWATH}, p)\n"
    return (
        head(name, ("x", "w_", *(["b_"] if bias else []), "out"), kind, part) + packed + ("" if part else pack)
        + turns(name, "x", part) + f"""    panel = groups * inner * tall + {ROOM * HEIGHT}
    panel = panel + part * (({DEEP} + o) * {SWATH} + {_SPREAD})
    y_ = panel + {DEEP * SWATH}
    swath = {TOGETHER} * columns
    top_ = 0
    tops = o
{indented(_where_they_lie(bias), 4)}{indented(_apart_by_steps(bias, kind), 4)}{indented(_SHARES, 4)}
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
