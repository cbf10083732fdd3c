"""Convolutions whose groups have one row of weights, such as depthwise ones, and their gradients, as one kernel each.

======================  ==========================  ====================================================
kernel                  buffers                     result
======================  ==========================  ====================================================
``conv_row``            x, w, (b,) out, scratch     out = w times the windows of x, plus b per channel
``conv_input_row``      g, w, out, scratch          out = w^T times g, added up where the windows are
``conv_weight_row``     g, x, out, scratch          out = g times the windows of x, transposed
======================  ==========================  ====================================================

Shapes and args are those of `common.kernels.arrays.convolution_blocks`; status 0. A product with one row has `LANES`
chains per element (`common.kernels.arrays.gemm`): of ``conv_row`` each is a row of a block of windows, whose elements
are computed together, or where windows have few places, a register; of ``conv_weight_row`` the chains of an element
are the lanes of a vector. To each of them +0.0 is added, which is done once, at the end: what it changes is -0.0.

Threads share images, or groups or elements of the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import LANES
from common.kernels.arrays.convolution_text import PARTS, head, indented, is_flat, padded, turns

__all__ = ["BLOCK", "input_row_source", "row_source", "scratch_of_rows", "weight_row_source"]

BLOCK = 512
"""Windows that are computed together: rows of them, or a part of a row."""
_COPIED = LANES * BLOCK
"""Elements of images that are copied with their padding at a time; what is read behind them is no result's."""
_FEWER = (LANES + 1) * BLOCK - 4 * LANES**2
"""As many beside the chains of all places."""


def scratch_of_rows(dtype: Any) -> int:
    """Return the bytes of scratch of each kernel."""
    return PARTS * (LANES + 1) * BLOCK * np.dtype(dtype).itemsize


_BLOCKS = f"""for oz in range(od):
    for first_row in range(0, oh, max(1, {BLOCK} // ow)):
        high = min(max(1, {BLOCK} // ow), oh - first_row)
        for ox in range(0, ow, {BLOCK}):
            wide_ = min({BLOCK}, ow - ox)
            at = (oz * oh + first_row) * ow + ox
"""
"""Blocks of windows of an image: rows, or a part of one."""

_PLACE = """kx = j % kw
ky = j // kw % kh
kz = j // (kh * kw) % kd
channel = (image * groups + group) * c + j // k
"""
"""Where place `j` of windows is in each."""

_INSIDE = """z = oz * sd - pd + kz * dd
y = first_row * sh - ph + ky * dh
v = ox * sw - pw + kx * dw
from_ = 0
if v < 0:
    from_ = (sw - 1 - v) // sw
until = wide_
if v + (wide_ - 1) * sw >= w:
    until = (max(w - v, 0) + sw - 1) // sw
top = 0
if y < 0:
    top = min((sh - 1 - y) // sh, high)
bottom = high
if y + (high - 1) * sh >= h:
    bottom = (max(h - y, 0) + sh - 1) // sh
if z < 0 or z >= d or bottom < top or until < from_:
    top = high
    bottom = high
place = (channel * d + z) * h * w + y * w + v
"""
"""Where it is for the first window of a block, and which rows and columns of the block have it in the image."""


def _rows_of(call: str, to: str) -> str:
    """A call for the rows of a block that have a place in the image, and for those before and after."""
    return f"""middle = place + top * sh * w
if top > 0:
    {call}, {to}, 0, 0, wide_, sw, top, 0, ow)
if bottom > top:
    {call.replace("place", "middle")}, {to} + top * ow, from_, until, wide_, sw, bottom - top, sh * w, ow)
if high > bottom:
    {call}, {to} + bottom * ow, 0, 0, wide_, sw, high - bottom, 0, ow)
"""


def _few_places(bias: bool) -> str:
    """Windows of up to 64 places, in a plane or line: all chains of a vector of them are in registers.

    Rows of the image are copied with what is around them.
    """
    more = "for t in range(some * ow):\n    out[to + t] = out[to + t] + extra\n" if bias else ""
    return f"""wp = w + 2 * pw
reach = (kh - 1) * dh + 1
rows = min(oh, ({_COPIED} // (c * wp) - reach) // sh + 1)
if {is_flat(f"sw <= 2 and inner <= {4 * LANES}")} and {_COPIED} // (c * wp) >= reach:
    for task in range((n * groups - part + step - 1) // step):
        image = (task * step + part) // groups
        group = (task * step + part) % groups
{"        extra = b_[group]" if bias else ""}
        for first_row in range(0, oh, rows):
            some = min(rows, oh - first_row)
            lines = (some - 1) * sh + reach
            top = first_row * sh - ph
{indented(padded("a"), 12)}            to = (image * groups + group) * lay + first_row * ow
            dy = dh * wp - (kw - 1) * dw
            dz = (lines - reach + 1) * wp - (kw - 1) * dw
            sum_windows(s, a, w_, group * inner, out, to, inner, kw, kh, dw, dy, dz, sw, ow, some, sh * wp, ow)
{indented(more, 12)}    return 0
"""


def row_source(dtype: Any, bias: bool = False, part: bool = False) -> str:
    """Return the kernel ``conv_row`` for float32 or float64; or of a part, whose number follows the sizes."""
    kind, name = np.dtype(dtype), "conv_bias_row" if bias else "conv_row"
    fused = _rows_of("fuse_windows(x, place, w_, group * inner + j, s", "to")
    end = "s[a + t] + extra" if bias else "s[a + t]"
    body = f"""for t in range(min({LANES}, inner) * size):
    s[a + t] = zero
j = 0
for channel in range((image * groups + group) * c, (image * groups + group + 1) * c):
    for kz in range(kd):
        for ky in range(kh):
            for kx in range(kw):
                to = a + j % {LANES} * size
{indented(_INSIDE + fused, 16)}                j = j + 1
there = min({LANES}, inner)
half = {LANES // 2}
while half > 0:
    if there > half:
        for t in range((there - half) * size):
            s[a + t] = s[a + t] + s[a + half * size + t]
        there = half
    half = half // 2
for t in range(size):
    s[a + t] = s[a + t] + zero
to = (image * groups + group) * lay + at
for t in range(size):
    out[to + t] = {end}
"""
    return (
        head(name, ("x", "w_", *(["b_"] if bias else []), "out"), kind, part) + turns(name, "x", part)
        + f"    zero = {kind}(0)\n    a = part * {(LANES + 1) * BLOCK}\n" + indented(_few_places(bias), 4)
        + """    for task in range((n * groups - part + step - 1) // step):
        image = (task * step + part) // groups
        group = (task * step + part) % groups
"""
        + ("        extra = b_[group]\n" if bias else "") + indented(_BLOCKS, 8)
        + indented("size = high * wide_\n" + body, 20) + "    return 0\n"
    )  # fmt: skip


_FROM_AROUND = f"""above = (kh - 1) * dh
before = (kw - 1) * dw
wp = w + before
rows = min(h, {_COPIED} // wp - above)
finite = True
for j in range(groups * inner):
    if w_[j] * zero != zero:
        finite = False
if finite and {is_flat("sh * sw == 1")} and rows > 0:
    a = part * {(LANES + 1) * BLOCK}
    for task in range((n * groups - part + step - 1) // step):
        image = (task * step + part) // groups
        group = (task * step + part) % groups
        for first_row in range(0, h, rows):
            some = min(rows, h - first_row)
            lines = some + above
            top = first_row + ph - above
            begin = min(max(-top, 0), lines)
            end = max(min(oh - top, lines), begin)
            e = (image * groups + group) * lay + top * ow + pw - before
            lay_windows(g, e, s, a, pw - before, ow, wp, 1, 1, 1, begin, end, lines, ow, 0, 1, 0)
            from_ = a + above * wp + before
            dy = before - dh * wp
            for channel in range(c):
                to = ((image * groups + group) * c + channel) * plane + first_row * w
                b = group * inner + channel * k
                add_places(s, from_, w_, b, out, to, k, kw, kh, -dw, dy, 0, w, some, wp, w)
    return 0
"""
"""With windows one step apart an element is a sum over what lies around it in g, in a copy with zeros beside that.

Zero times a number is nothing where all weights are finite: a sum from `+0.0` on never is `-0.0`.
"""


def input_row_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_input_row`` for float32 or float64; or of a part, as of ``conv_row``."""
    kind = np.dtype(dtype)
    return (
        head("conv_input_row", ("g", "w_", "out"), kind, part) + turns("conv_input_row", "g", part)
        + f"    zero = {kind}(0)\n" + indented(_FROM_AROUND, 4) + f"""    first_row = 0
    high = oh
    ox = 0
    wide_ = ow
    for task in range((n * groups - part + step - 1) // step):
        image = (task * step + part) // groups
        group = (task * step + part) % groups
        for t in range((image * groups + group) * c * plane, (image * groups + group + 1) * c * plane):
            out[t] = {kind}(0)
        for j in range(inner):
{indented(_PLACE, 12)}            for oz in range(od):
{indented(_INSIDE, 16)}                to = place + top * sh * w
                e = (image * groups + group) * lay + (oz * oh + top) * ow
                b = group * inner + j
                add_products(g, e, w_, b, out, to, from_, until, sw, bottom - top, ow, sh * w)
    return 0
"""
    )  # fmt: skip


_AT_ONCE = f"""wp = w + 2 * pw
reach = (kh - 1) * dh + 1
rows = min(oh, ({_FEWER} // (c * wp) - reach) // sh + 1)
if {is_flat(f"sw <= 2 and inner <= {4 * LANES}")} and {_FEWER} // (c * wp) >= reach:
    chains = a + {_FEWER}
    for task in range((groups - part + step - 1) // step):
        group = task * step + part
        for t in range(inner * {LANES}):
            s[chains + t] = zero
        for image in range(n):
            for first_row in range(0, oh, rows):
                some = min(rows, oh - first_row)
                lines = (some - 1) * sh + reach
                top = first_row * sh - ph
{indented(padded("a"), 16)}                e = (image * groups + group) * lay + first_row * ow
                dy = dh * wp - (kw - 1) * dw
                dz = (lines - reach + 1) * wp - (kw - 1) * dw
                start = (image * lay + first_row * ow) % {LANES}
                fuse_places(g, e, s, a, s, chains, inner, kw, kh, dw, dy, dz, sw, ow, some, sh * wp, start)
        for j in range(inner):
            out[group * inner + j] = fold_lanes(s, chains + j * {LANES}) + zero
    return 0
"""
"""Of windows of up to 64 places in planes or lines the chains of all places go along together."""


def weight_row_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_weight_row`` for float32 or float64; or of a part, as of ``conv_row``."""
    kind = np.dtype(dtype)
    gathered = _rows_of("copy_windows(x, place, s", "a") + f"""e0 = (image * groups + group) * lay + at
fuse_lanes(g, e0, s, a, s, e, (image * lay + at) % {LANES}, high * wide_)
"""
    return (
        head("conv_weight_row", ("g", "x", "out"), kind, part) + turns("conv_weight_row", "g", part)
        + f"""    zero = {kind}(0)
    a = part * {(LANES + 1) * BLOCK}
{indented(_AT_ONCE, 4)}    e = a + {BLOCK}
    for task in range((groups * inner - part + step - 1) // step):
        group = (task * step + part) // inner
        j = (task * step + part) % inner
        for t in range({LANES}):
            s[e + t] = zero
        for image in range(n):
{indented(_PLACE, 12)}{indented(_BLOCKS, 12)}{indented(_INSIDE + gathered, 24)}        total = fold_lanes(s, e)
        out[group * inner + j] = total + zero
    return 0
"""
    )  # fmt: skip
