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
    gathered,
    head,
    indented,
    is_flat,
    shared,
    turns,
)

__all__ = ["input_source", "scratch_of_panels", "weight_source"]

_CHANNELS, _ROWS = 8, 32
"""The gradient of x is computed for a multiple of so many channels at once, and with so many windows' rows each."""
_PACKED = 64
"""Rows of weights, or columns that become rows, that are copied at a time: panels of more would share few sets."""
_TURNED = 4
"""Panels of windows that are gathered before they are transposed."""
_LONG = 1024
"""Windows of all images from which on it pays to transpose the gradient of the weights in the end."""
_FEWEST, _MOST = 24, 128
"""Channels of the result for which products of one place of a window are added one by one: fewer are not long enough,
and of more the sums of all places at once take as long.
"""
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
        "conv": ((o + HEIGHT) * inner, forward_part(o, inner)),
        "conv_bias": ((o + HEIGHT) * inner, forward_part(o, inner)),
        "conv_input": ((inner + HEIGHT) * o, (o + _CHANNELS * (places + _ROWS)) * SWATH + COPIED + o),
        "conv_weight": ((o + 2 * ROOM) * inner, COPIED + (2 * (o + WIDTH) + 1) * _LINE + _TURNED * WIDTH * _LINE),
    }[kernel]
    return (groups * weights + ROOM * HEIGHT + PARTS * part) * np.dtype(dtype).itemsize


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


_NEAR = f"""near = {{flat}}
near = near and o >= {_FEWEST} and o <= {_MOST} and c >= 8 and w % 16 == 0
near = near and ((kh - 1) * dh + 1) * (w + (kw - 1) * dw) <= {COPIED} // o - 32
if near:
    near = row_max(w_, 0, groups * o * inner) < {{kind}}(1e999)
    near = near and row_min(w_, 0, groups * o * inner) > {{kind}}(-1e999)
s[flag] = to_{{kind}}(near)
"""
"""Whether places outside are multiplied too, which a weight that is not finite would show."""

_TURNED_WEIGHTS = """if near:
    for r in range(groups * o):
        turn_rows(s, r * c, w_, r * inner, groups * o * c, k, k, c)
else:
"""


def _input_side_by_side(kind: Any) -> str:
    """Sums of a place of windows that are one step apart, of many channels, are added to the result at once.

    What they read of g lies in copies as that of `common.kernels.arrays.convolution_forward`, with zeros around it.
    """
    return f"""panel = flag + {ROOM * HEIGHT} + part * ((o + {_CHANNELS} * (k + {_ROWS})) * {SWATH} + {COPIED} + o)
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
    near = indented("near = s[flag] > 0" if part else _NEAR.format(flat=flat, kind=kind), 4)
    panels = f"""{indented(FEW, 4)}    columns = panel_width(g)
    height = panel_height(g)
    tall = (inner + height - 1) // height * height
    low = 0
    high = c
    flag = groups * o * (inner + {HEIGHT})
{near}    by_channels = not near and c > {_CHANNELS} * min(n, {PARTS - 1}) and (n < {PARTS} or inner > n * lay)
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
        + turns("conv_input", "g", part) + indented(_input_side_by_side(kind), 4) + "    begin = 0\n    end = n\n"
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


def _weight_side_by_side(kind: Any) -> str:
    """Of many channels, their windows where they lie in copies of images are multiplied with g, transposed in panels.

    The sums are transposed: those of a place of a channel lie side by side.
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
fits = c >= 8 and o >= {_FEWEST} and n * lay >= {_LONG} and few_ > 0
if fits and {is_flat("sw > 0")}:
    copied = groups * inner * pitch + part * ({COPIED} + (o + {WIDTH}) * {2 * _LINE} + {_LINE})
    turned = copied + {COPIED}
    straight = turned + (o + {WIDTH}) * {_LINE}
    places = straight + (o + {WIDTH}) * {_LINE}
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
                i = (q + t) // lay - first
                for j in range((q + t) % lay, (q + t) % lay + many):
                    at = i * shifts * few_ * line + (j // ow - (begin if i == 0 else 0)) * length + j % ow
                    s[places + t + j - (q + t) % lay] = to_{kind}(at)
                t = t + many
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
                        multiply_places(s, at, shifts * line, 0, shifts * line, planes, s, f, s, places, deep, here,
                                        s, to, k * pitch, q)
                    f = f + {_LINE} * columns
                    e = e + here
        turn_rows(out, group * o * inner + low * k, s, (group * inner + low * k) * pitch, inner, pitch, o,
                  (high - low) * k)
    return 0
"""


def weight_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_weight`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    near = indented(_weight_side_by_side(kind), 4)
    return (
        head("conv_weight", ("g", "x", "out"), kind, part) + turns("conv_weight", "g", part)
        + f"""{indented(FEW, 4)}    columns = panel_width(g)
{near}    rows_ = part * (o * {_LINE} + {_TURNED * WIDTH * _LINE + (DEEP + ROOM) * WIDTH})
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
    )
