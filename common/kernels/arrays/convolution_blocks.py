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
How ``conv`` finds windows is said in `common.kernels.arrays.convolution_forward`.
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
    FEW,
    HEIGHT,
    PARTS,
    PLACES,
    ROOM,
    SWATH,
    TOGETHER,
    WIDTH,
    gathered,
    head,
    indented,
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
        "conv": ((o + HEIGHT) * inner, forward_part(o)),
        "conv_bias": ((o + HEIGHT) * inner, forward_part(o)),
        "conv_input": ((inner + HEIGHT) * o, (o + _CHANNELS * (places + _ROWS)) * SWATH),
        "conv_weight": (0, o * _LINE + _TURNED * WIDTH * _LINE + (DEEP + ROOM) * WIDTH),
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


def input_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_input`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    panels = f"""{indented(FEW, 4)}    columns = panel_width(g)
    height = panel_height(g)
    tall = (inner + height - 1) // height * height
    low = 0
    high = c
    by_channels = c > {_CHANNELS} * min(n, {PARTS - 1}) and (n < {PARTS} or inner > n * lay)
"""
    pack = f"""for group in range(groups):
    for p in range(0, o, {DEEP}):
        deep = min({DEEP}, o - p)
        for r in range(low * k, high * k, {_PACKED}):
            first = (group * o + p) * tall + r * deep
            there = min({_PACKED}, high * k - r)
            pack_left_turned(w_, (group * o + p) * inner + r, inner, deep, there, s, first)
"""
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
        + ("" if part else shared("conv_input", "g", "by_channels") + indented(pack, 4))
        + turns("conv_input", "g", part) + "    begin = 0\n    end = n\n" + (indented(own, 4) if part else "")
        + f"""    channels = {_CHANNELS} * max(1, {_ROWS} // k)
    panel = groups * o * tall + {ROOM * HEIGHT}
    panel = panel + part * (o + {_CHANNELS} * (k + {_ROWS})) * {SWATH}
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


def weight_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``conv_weight`` for float32 or float64; or of a part, as of ``conv``."""
    kind = np.dtype(dtype)
    return (
        head("conv_weight", ("g", "x", "out"), kind, part) + turns("conv_weight", "g", part)
        + f"""{indented(FEW, 4)}    columns = panel_width(g)
    rows_ = part * (o * {_LINE} + {_TURNED * WIDTH * _LINE + (DEEP + ROOM) * WIDTH})
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
