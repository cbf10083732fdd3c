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
How ``conv`` finds windows is said in `common.kernels.arrays.convolution_forward`; of many channels, gradients find
them as it does. That of x then adds up one place of all windows after the other, and that of w is computed transposed.
Every element is what a product of whole matrices gives, bit by bit, where that has two rows and two columns: the inner
size is taken in blocks of `DEEP`, which are added in order, and columns do not depend on each other. The gradient with
respect to x is added up from the last panel to the first: at any place windows that lie later come with places that lie
earlier in them, so that all are added in the order of those. Source of the idea: Dukhan, The indirect convolution
algorithm, 2019; Chetlur and others, cuDNN: efficient primitives for deep learning, 2014.

Threads share the windows of ``conv``, the images of ``conv_input`` or, of few images or windows, their channels, and
the columns of ``conv_weight``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_channels import (
    TURN_CHANNELS,
    input_by_channels,
    scratch_of_channels,
    sizes_of_input,
)
from common.kernels.arrays.convolution_forward import forward_part
from common.kernels.arrays.convolution_text import (
    AT,
    COPIED,
    FEW,
    HEIGHT,
    HERE,
    PARTS,
    PLACES,
    ROOM,
    SWATH,
    TOGETHER,
    WIDTH,
    head,
    indented,
    is_flat,
    shared,
    turns,
)
from common.kernels.arrays.convolution_weights import scratch_of_weights

__all__ = ["input_source", "scratch_of_panels"]

_CHANNELS, _ROWS = 8, 32
"""The gradient of x is computed for a multiple of so many channels at once, and with so many windows' rows each."""
_PACKED = 64
"""Rows of weights, or columns that become rows, that are copied at a time: panels of more would share few sets."""
_FEWEST, _MOST = 24, 128
"""Channels of the result for which products of one place of a window are added one by one: fewer are not long enough,
and of more the sums of all places at once take as long.
"""


def scratch_of_panels(kernel: str, o: Any, groups: Any, inner: Any, places: Any, dtype: Any) -> Any:
    """Return the bytes of scratch of a kernel: the weights in panels, and for each thread a few panels.

    Parameters
    ----------
    o, inner : rows of the weights of a group, and the length of one.
    places : of a window.
    """
    weights, part = {
        "conv": (scratch_of_channels(o, inner, dtype), forward_part(o, inner)),
        "conv_bias": (scratch_of_channels(o, inner, dtype), forward_part(o, inner)),
        "conv_input": (
            (inner + 2 * ROOM * places + 2 * HEIGHT) * o, (o + _CHANNELS * (places + _ROWS)) * SWATH + COPIED + o
        ),
        "conv_weight": scratch_of_weights(o, inner),
    }[kernel]
    return ((groups * weights + 2 * ROOM * WIDTH + PARTS * part) * np.dtype(dtype).itemsize + 7) // 8 * 8


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

_ADDED = f"""if until > from_:
    line = y_ + ((cb - b) * k + i) * {SWATH} + t
    add_windows(s, line, out, place, from_, until, sw, lines, k * {SWATH}, plane)
"""


_NEAR = f"""near = {{flat}} and not beside
near = near and o >= {_FEWEST} and o <= {_MOST} and c >= 8 and w % 16 == 0
near = near and ((kh - 1) * dh + 1) * (w + (kw - 1) * dw) <= {COPIED} // o - 32
if near:
    near = row_max(w_, 0, groups * o * inner) < {{kind}}(1e999)
    near = near and row_min(w_, 0, groups * o * inner) > {{kind}}(-1e999)
s[flag] = to_{{kind}}(2 if beside else 1 if near else 0)
"""
"""Whether places outside are multiplied too, which a weight that is not finite would show."""

_TURNED_WEIGHTS = f"""if near:
    for r in range(groups * o):
        turn_rows(s, r * c, w_, r * inner, groups * o * c, k, k, c)
elif beside:
{indented(TURN_CHANNELS, 4)}else:
"""


def _input_side_by_side(kind: Any) -> str:
    """Sums of a place of windows that are one step apart, of many channels, are added to the result at once.

    What they read of g lies in copies as that of `common.kernels.arrays.convolution_forward`, with zeros around it.
    """
    return f"""panel = (flag + {2 * ROOM * HEIGHT} + 15) // 16 * 16
panel = panel + part * ((o + {_CHANNELS} * (k + {_ROWS})) * {SWATH} + {COPIED} + o)
if near:
    reach = (kh - 1) * dh
    gap = (kw - 1) * dw
    length = w + gap
    rows = min(h, ({COPIED} // o - 32) // length - reach)
    strips = (h + rows - 1) // rows
    strips = min(h, (groups * n * strips + step - 1) // step * step // (groups * n))
    rows = (h + strips - 1) // strips
    strips = (h + rows - 1) // rows
    lines = rows + reach
    line = (lines * length + 15) // 16 * 16 + 16
    places = panel + {COPIED}
    for r in range(o):
        s[places + r] = to_{kind}(r * line)
    for task in range((groups * n * strips - part + step - 1) // step):
        first_row = (task * step + part) % strips * rows
        image = (task * step + part) // strips % n
        group = (task * step + part) // strips // n
        some = min(rows, h - first_row)
        whole = some * w
        top = first_row + ph - reach
        from_ = min(max(-top, 0), lines)
        until = max(min(oh - top, lines), from_)
        at = (image * groups + group) * o * lay + top * ow + pw - gap
        lay_windows(g, at, s, panel, pw - gap, ow, length, 1, 1, 1, from_, until, lines, ow, line, o, lay)
        place = (image * groups + group) * c * plane + first_row * w
        for r in range(c):
            for e in range(place + r * plane, place + r * plane + whole):
                out[e] = {kind}(0)
        for i in range(k):
            ky = i // kw
            kx = i % kw
            move = (kw - 1 - kx) * dw + (kh - 1 - ky) * dh * length
            first = (i * groups + group) * o * c
            e = 0
            while e < whole:
{indented(HERE.format(rest="(whole - e)"), 16)}                y = first_row + ph - ky * dh
                if y + (e + here - 1) // w >= 0 and y + e // w < oh:
                    at = panel + move + e + e // w * gap
                    multiply_windows(s, first, 1, c, 1, c, s, at, s, places, o, here, out, place + e, plane, 1,
                                     w, e % w, gap)
                e = e + here
    return 0
"""


def input_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_input`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    flat = is_flat("sh * sw == 1")
    near = indented("near = s[flag] == 1\nbeside = s[flag] > 1" if part else _NEAR.format(flat=flat, kind=kind), 4)
    panels = f"""{indented(FEW, 4)}    columns = panel_width(g)
    height = panel_height(g)
    tall = (inner + height - 1) // height * height
    low = 0
    high = c
{indented(sizes_of_input(part), 4)}    flag = groups * o * (inner + {2 * ROOM} * k + {2 * HEIGHT})
    tables = (flag - groups * o * 4) // {8 // kind.itemsize}
{near}    by_channels = not near and not beside and (n < {PARTS} or inner > n * lay)
    by_channels = by_channels and c > {_CHANNELS} * min(n, {PARTS - 1})
"""
    pack = f"""for group in range(groups):
    for p in range(0, o, {DEEP}):
        deep = min({DEEP}, o - p)
        for r in range(low * k, high * k, {_PACKED}):
            first = (group * o + p) * tall + r * deep
            there = min({_PACKED}, high * k - r)
            pack_left_turned(w_, (group * o + p) * inner + r, inner, deep, there, s, first)
"""
    packed = indented(_TURNED_WEIGHTS + indented(pack, 4), 4)
    own = f"""if by_channels:
    units = (c + {_CHANNELS - 1}) // {_CHANNELS}
    low = units * part // step * {_CHANNELS}
    high = min(c, units * (part + 1) // step * {_CHANNELS})
{indented(pack, 4)}else:
    begin = n * part // step
    end = n * (part + 1) // step
"""
    places = PLACES.format(first="(ox - many + 1)", channel="cb", body=indented(_ADDED, 12))
    return (
        head("conv_input", ("g", "w_", "out"), kind, part) + panels
        + ("" if part else shared("conv_input", "g", "by_channels") + packed)
        + turns("conv_input", "g", part) + indented(_input_side_by_side(kind) + input_by_channels(kind), 4)
        + "    begin = 0\n    end = n\n"
        + (indented(own, 4) if part else "") + f"""    channels = {_CHANNELS} * max(1, {_ROWS} // k)
    y_ = panel + o * {SWATH}
    for j in range(begin * groups, end * groups):
        for e in range((j * c + low) * plane, (j * c + high) * plane):
            out[e] = {kind}(0)
    swath = {TOGETHER} * columns
    swaths = ((end - begin) * lay + swath - 1) // swath
    for task in range(groups * swaths):
        group = task // swaths
        q = begin * lay + (swaths - 1 - task % swaths) * swath
        some = min(swath, end * lay - q)
        t = 0
        while t < some:
            many = min(lay - (q + t) % lay, min(columns - t % columns, some - t))
            place = ((q + t) // lay * groups + group) * o * lay + (q + t) % lay
            to = panel + t // columns * columns * o + t % columns
            copy_windows(g, place, s, to, 0, many, many, 1, o, lay, columns)
            t = t + many
        for b in range(low, high, channels):
            rows = min(channels, high - b) * k
            for p in range(0, o, {DEEP}):
                deep = min({DEEP}, o - p)
                first = (group * o + p) * tall + b * k * deep
                for e in range(0, some, columns):
                    here = min(columns, some - e)
                    at = panel + e * o + p * columns
                    multiply_panel(s, first, 1, height, deep, rows, s, at, deep, here, s, y_ + e, {SWATH}, p)
{indented(AT.format(at="(q + some - 1)"), 12)}            t = some
            while t > 0:
                many = min(ox + 1, t)
                t = t - many
                for cb in range(b, b + rows // k, few):
                    lines = min(few, b + rows // k - cb)
{indented(places, 20)}{indented(_BEFORE, 16)}    return 0
"""
    )  # fmt: skip
