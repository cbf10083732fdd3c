"""Convolutions and their gradients as one kernel each, without the windows of an image as columns in memory.

==================  ============================  ==========================================================
kernel              buffers                       result
==================  ============================  ==========================================================
``conv``            x, w, (b,) out, scratch       out = w times the windows of x, plus b per channel
``conv_input``      g, w, out, scratch            out = w^T times g, added up where the windows are
``conv_weight``     g, x, out, scratch            out = g times the windows of x, transposed
==================  ============================  ==========================================================

- x (n, groups c, d, h, w), w (groups o, c, kd, kh, kw), b (groups o), g and out of ``conv`` (n, groups o, od, oh, ow);
- args: `common.kernels.arrays.convolution_text`; status 0.

A panel of windows is copied from the image to where a product wants it (`common.kernels.arrays.gemm_code`), and is
multiplied with all rows of the other operand at once: the columns of a panel are windows of one image after the other.
Windows a step apart that few channels of the result read are multiplied where they lie in a copy with its padding.
Every element is what a product of whole matrices gives, bit by bit, where that has two rows and two columns: the inner
size is taken in blocks of `DEEP`, which are added in order, and columns do not depend on each other. The gradient with
respect to x is added up from the last panel to the first: at any place windows that lie later come with places that lie
earlier in them, so that all are added in the order of those. Source of the idea: Dukhan, The indirect convolution
algorithm, 2019; Chetlur and others, cuDNN: efficient primitives for deep learning, 2014.

Threads share the panels of ``conv``, the images of ``conv_input``, and the columns of ``conv_weight``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_text import PARTS, head, indented, is_flat, padded, turns

__all__ = ["forward_source", "input_source", "scratch_of_panels", "weight_source"]

_WIDTH, _ROOM = 48, 16
"""Columns of a panel at most, and how many rows more are written at the end of one."""
_HEIGHT = 8
"""Rows of a panel of the left operand at most."""
_TOGETHER = 4
"""Panels that meet a block of the left operand one after the other."""
_SWATH = _TOGETHER * _WIDTH
_CHANNELS, _ROWS = 8, 32
"""The gradient of x is computed for a multiple of so many channels at once, and with so many windows' rows each."""
_FEW = """few = 32
if plane % 512 == 0:
    few = 8
"""
"""Channels whose rows are moved together; where planes share a set of the first-level cache it holds fewer."""
_COPIED = DEEP * _SWATH - 2 * _WIDTH
"""Elements of images that are copied with their padding at a time; some more are read behind them."""
_DROPPED = 8
"""So many windows are dropped for each that is kept, times channels of the result, where that pays."""
_TURNED = 4
"""Panels of windows that are gathered before they are transposed."""
_LINE = DEEP + 16
"""Elements from one gathered row to the next: not a power of 2, whose multiples share a few sets of every cache."""


def scratch_of_panels(kernel: str, o: Any, groups: Any, inner: Any, places: Any, dtype: Any) -> Any:
    """Return the bytes of scratch of a kernel: the weights in panels, and for each thread a few panels.

    Parameters
    ----------
    o, inner : rows of the weights of a group, and the length of one.
    places : of a window.
    """
    weights, part = {
        "conv": ((o + _HEIGHT) * inner, (DEEP + o) * _SWATH),
        "conv_bias": ((o + _HEIGHT) * inner, (DEEP + o) * _SWATH),
        "conv_input": ((inner + _HEIGHT) * o, (o + _CHANNELS * (places + _ROWS)) * _SWATH),
        "conv_weight": (0, o * _LINE + _TURNED * _WIDTH * _LINE + (DEEP + _ROOM) * _WIDTH),
    }[kernel]
    return (groups * weights + _ROOM * _HEIGHT + PARTS * part) * np.dtype(dtype).itemsize


_AT = """ox = {at} % ow
oy = {at} // ow % oh
oz = {at} // (ow * oh) % od
image = {at} // lay
"""
"""Of a window: where it is among those of its image, and its image."""

_NEXT = """ox = ox + many
if ox == ow:
    ox = 0
    oy = oy + 1
    if oy == oh:
        oy = 0
        oz = oz + 1
        if oz == od:
            oz = 0
            image = image + 1
"""

_BEFORE = """ox = ox - many
if ox < 0:
    ox = ow - 1
    oy = oy - 1
    if oy < 0:
        oy = oh - 1
        oz = oz - 1
        if oz < 0:
            oz = od - 1
            image = image - 1
"""

_PLACES = """i = 0
for kz in range(kd):
    z = oz * sd - pd + kz * dd
    for ky in range(kh):
        y = oy * sh - ph + ky * dh
        inside = z >= 0 and z < d and y >= 0 and y < h
        for kx in range(kw):
            v = {first} * sw - pw + kx * dw
            from_ = 0
            if v < 0:
                from_ = (sw - 1 - v) // sw
            until = many
            if v + (many - 1) * sw >= w:
                until = (max(w - v, 0) + sw - 1) // sw
            if not inside or until < from_:
                from_ = 0
                until = 0
            place = ((image * groups + group) * c + {channel}) * plane + (z * h + y) * w + v
{body}            i = i + 1
"""
"""Places `i` in windows: where each is for the first of `many` in a row, and for which of them it is in the image."""


def _gathered(depth: int, rows: str, p: str, count: str, line: str, step: str, bound: str = "") -> str:
    """Copy rows of windows: so many `rows` from number `p` on, of `count` windows from number `q` on."""
    copied = f"""c0 = max(cb, low + (1 if i < low_rest else 0))
c1 = min(cb + few, high_ + (1 if i < high_rest else 0))
if c1 > c0:
    to = {line} + (c0 * k + i - {p}) * {step}
    copy_windows(x, place + c0 * plane, s, to, from_, until, many, sw, c1 - c0, plane, k * {step})
"""
    places = _PLACES.format(first="ox", channel="0", body=indented(copied, 12))
    return indented(f"""low = {p} // k
low_rest = {p} % k
high_ = ({p} + {rows}) // k
high_rest = ({p} + {rows}) % k
{_AT.format(at="q")}t = 0
while t < {count}:
    many = min(ow - ox, {f"min({bound}, {count} - t)" if bound else f"{count} - t"})
    for cb in range(low, high_ + 1, few):
{indented(places, 8)}    t = t + many
{indented(_NEXT, 4)}""", depth)


def _stored(bias: bool, to: str, f: str, many: str) -> str:
    """Results of windows side by side, from the rows of a swath to those of the result."""
    if not bias:
        return f"""for r in range(0, o, few):
    copy_windows(s, {f} + r * {_SWATH}, out, {to} + r * lay, 0, {many}, {many}, 1, min(few, o - r), {_SWATH}, lay)
"""
    return f"""for r in range(o):
    extra = b_[group * o + r]
    e = {to} + r * lay
    f = {f} + r * {_SWATH}
    for j in range({many}):
        out[e + j] = s[f + j] + extra
"""


def _where_they_lie(bias: bool) -> str:
    """Windows of an image, or a line, that are a step apart are multiplied where they lie in a copy with its padding.

    The copy is of a few rows of all channels of a group. Each element of a row begins a window; the last ones reach
    over its end and are dropped, so that it pays where they are few, or the results of each.
    """
    return f"""wp = w + 2 * pw
reach = (kh - 1) * dh
rows = min(oh, {_COPIED} // (c * wp) - reach)
if {is_flat("sh * sw == 1")} and rows > 0 and (wp - ow) * o <= {_DROPPED} * ow:
    strips = (oh + rows - 1) // rows
    for task in range((groups * n * strips - part + step - 1) // step):
        first_row = (task * step + part) % strips * rows
        image = (task * step + part) // strips % n
        group = (task * step + part) // strips // n
        some = min(rows, oh - first_row)
        lines = some + reach
        top = first_row - ph
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
                    multiply_windows(s, first, 1, height, deep, o, s, at + e, deep, here, s, y_ + e, {_SWATH}, p,
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


def forward_source(dtype: Any, bias: bool = False, part: bool = False) -> str:
    """Return the kernel ``conv`` for float32 or float64; or of a part, whose number follows the sizes."""
    kind, name = np.dtype(dtype), "conv_bias" if bias else "conv"
    packed = f"""{indented(_FEW, 4)}    columns = panel_width(x)
    height = panel_height(x)
    tall = (o + height - 1) // height * height
"""
    pack = f"""    for group in range(groups):
        for p in range(0, inner, {DEEP}):
            deep = min({DEEP}, inner - p)
            pack_left(w_, group * o * inner + p, inner, deep, o, s, (group * inner + p) * tall)
"""
    return (
        head(name, ("x", "w_", *(["b_"] if bias else []), "out"), kind, part) + packed + ("" if part else pack)
        + turns(name, "x", part) + f"""    panel = groups * inner * tall + {_ROOM * _HEIGHT}
    panel = panel + part * ({DEEP} + o) * {_SWATH}
    y_ = panel + {DEEP * _SWATH}
    swath = {_TOGETHER} * columns
{indented(_where_they_lie(bias), 4)}    high = (n * lay + swath - 1) // swath
    for task in range((groups * high - part + step - 1) // step):
        group = (task * step + part) // high
        q = (task * step + part) % high * swath
        some = min(swath, n * lay - q)
        for p in range(0, inner, {DEEP}):
            deep = min({DEEP}, inner - p)
"""
        + _gathered(12, "deep", "p", "some", "panel + t // columns * columns * deep + t % columns", "columns",
                    "columns - t % columns")
        + f"""            first = (group * inner + p) * tall
            for e in range(0, some, columns):
                here = min(columns, some - e)
                at = panel + e * deep
                multiply_panel(s, first, 1, height, deep, o, s, at, deep, here, s, y_ + e, {_SWATH}, p)
        t = 0
        while t < some:
            many = min(lay - (q + t) % lay, some - t)
            to = (q + t) // lay * groups * o * lay + group * o * lay + (q + t) % lay
"""
        + indented(_stored(bias, "to", "y_ + t", "many"), 12)
        + "            t = t + many\n    return 0\n"
    )  # fmt: skip


_ADDED = f"""if until > from_:
    line = y_ + ((cb - b) * k + i) * {_SWATH} + t
    add_windows(s, line, out, place, from_, until, sw, lines, k * {_SWATH}, plane)
"""


def input_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_input`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    panels = f"""{indented(_FEW, 4)}    columns = panel_width(g)
    height = panel_height(g)
    tall = (inner + height - 1) // height * height
"""
    pack = f"""    for group in range(groups):
        for p in range(0, o, {DEEP}):
            deep = min({DEEP}, o - p)
            pack_left_turned(w_, (group * o + p) * inner, inner, deep, inner, s, (group * o + p) * tall)
"""
    places = _PLACES.format(first="(ox - many + 1)", channel="cb", body=indented(_ADDED, 12))
    zeros = f"for j in range(begin * groups * c * plane, end * groups * c * plane):\n    out[j] = {kind}(0)\n"
    return (
        head("conv_input", ("g", "w_", "out"), kind, part) + panels + ("" if part else pack)
        + turns("conv_input", "g", part) + f"""    channels = {_CHANNELS} * max(1, {_ROWS} // k)
    panel = groups * o * tall + {_ROOM * _HEIGHT}
    panel = panel + part * (o + {_CHANNELS} * (k + {_ROWS})) * {_SWATH}
    y_ = panel + o * {_SWATH}
    begin = n * part // step
    end = n * (part + 1) // step
{indented(zeros, 4)}    swath = {_TOGETHER} * columns
    high = ((end - begin) * lay + swath - 1) // swath
    for task in range(groups * high):
        group = task // high
        q = begin * lay + (high - 1 - task % high) * swath
        some = min(swath, end * lay - q)
        t = 0
        while t < some:
            many = min(lay - (q + t) % lay, min(columns - t % columns, some - t))
            place = ((q + t) // lay * groups + group) * o * lay + (q + t) % lay
            to = panel + t // columns * columns * o + t % columns
            copy_windows(g, place, s, to, 0, many, many, 1, o, lay, columns)
            t = t + many
        for b in range(0, c, channels):
            rows = min(channels, c - b) * k
            for p in range(0, o, {DEEP}):
                deep = min({DEEP}, o - p)
                first = (group * o + p) * tall + b * k * deep
                for e in range(0, some, columns):
                    here = min(columns, some - e)
                    at = panel + e * o + p * columns
                    multiply_panel(s, first, 1, height, deep, rows, s, at, deep, here, s, y_ + e, {_SWATH}, p)
{indented(_AT.format(at="(q + some - 1)"), 12)}            t = some
            while t > 0:
                many = min(ox + 1, t)
                t = t - many
                for cb in range(b, b + rows // k, few):
                    lines = min(few, b + rows // k - cb)
{indented(places, 20)}{indented(_BEFORE, 16)}    return 0
"""
    )  # fmt: skip


def weight_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_weight`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    return (
        head("conv_weight", ("g", "x", "out"), kind, part) + turns("conv_weight", "g", part)
        + f"""{indented(_FEW, 4)}    columns = panel_width(g)
    rows_ = part * (o * {_LINE} + {_TURNED * _WIDTH * _LINE + (DEEP + _ROOM) * _WIDTH})
    windows = rows_ + o * {_LINE}
    panel = windows + {_TURNED * _WIDTH * _LINE}
    turns = (inner + {_TURNED} * columns - 1) // ({_TURNED} * columns)
    for group in range(groups):
        for q in range(0, n * lay, {DEEP}):
            deep = min({DEEP}, n * lay - q)
            t = 0
            while t < deep:
                many = min(lay - (q + t) % lay, deep - t)
                place = ((q + t) // lay * groups + group) * o * lay + (q + t) % lay
                copy_windows(g, place, s, rows_ + t, 0, many, many, 1, o, lay, {_LINE})
                t = t + many
            for turn in range((turns - part + step - 1) // step):
                r = (turn * step + part) * {_TURNED} * columns
                lines = min({_TURNED} * columns, inner - r)
"""
        + _gathered(16, "lines", "r", "deep", "windows + t", str(_LINE))
        + f"""                for e in range(0, lines, columns):
                    some = min(columns, lines - e)
                    pack_right_turned(s, windows + e * {_LINE}, {_LINE}, deep, some, s, panel)
                    place = group * o * inner + r + e
                    multiply_panel(s, rows_, {_LINE}, 1, {_LINE}, o, s, panel, deep, some, out, place, inner, q)
    return 0
"""
    )
