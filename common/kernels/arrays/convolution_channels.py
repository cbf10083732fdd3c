"""A way of ``conv`` and ``conv_input``: rows of elements, where they lie in images, times panels of weights.

Lanes are channels of the result, so little is multiplied of what lies outside an image: no row above or below it, and
no column next to it. Sums of a window lie side by side, and are turned when all are there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.numerics import DEEP
from common.kernels.arrays.convolution_text import COPIED, HERE, PARTS, SWATH, WIDTH, indented, is_flat

__all__ = [
    "TURN_CHANNELS", "by_channels", "input_by_channels", "pack_channels", "scratch_of_channels", "sizes_of_channels",
    "sizes_of_input",
]  # fmt: skip

_FEWEST, _PLANES = 32, 16
"""Channels of the result, and of an image, from which on it pays."""
_MOST = 768
"""Windows of an image up to which it pays: more have few next to the edge, and sums that leave the caches."""
_UNUSED = 16
"""One lane of so many may be left unused."""


def scratch_of_channels(o: Any, inner: Any, dtype: Any) -> Any:
    """Return the elements of scratch of the weights of a group, in panels, and of a table of places."""
    return (o + WIDTH) * inner + inner * (16 // np.dtype(dtype).itemsize)


def _enough(x: str, lanes: str, planes: str, part: bool) -> str:
    """Whether there are many channels, few unused lanes, and images for all threads: `beside`; and how sums lie."""
    threads = "" if part else f"""if there_are_threads({x}) != 0:
    beside = beside and (n * groups % {PARTS} == 0 or n * groups >= {4 * PARTS})
"""
    return f"""beside = {is_flat("sh * sw == 1")}
{threads}beside = beside and {lanes} >= {_FEWEST} and {planes} >= {_PLANES} and lay <= {_MOST}
beside = beside and (({lanes} + 15) // 16 * 16 - {lanes}) * {_UNUSED} <= {lanes}
pitch = ({lanes} + 15) // 16 * 16 + 16
"""


_TASKS = """together = max(1, min(min(most, n), n * groups // step))
parts = (n + together - 1) // together
together = (n + parts - 1) // parts
for task in range((groups * parts - part + step - 1) // step):
    group = (task * step + part) // parts
    image = (task * step + part) % parts * together
    images = min(together, n - image)
"""


def _turned(lanes: str, size: str, depth: int) -> str:
    """Sums of the images of a task, turned and written to the result."""
    return indented(f"""for i in range(images):
    for r in range(0, {lanes}, 16):
        to = (((image + i) * groups + group) * {lanes} + r) * {size}
        turn_rows(out, to, s, panel + i * {size} * pitch + r, {size}, pitch, min(16, {lanes} - r), {size})
""", depth)


def sizes_of_channels(part: bool) -> str:
    """Sizes, and whether convolutions of these sizes go this way: `beside`."""
    return f"""{_enough("x", "o", "c", part)}beside = beside and ow % height == 0
beside = beside and ph + pw > 0 and ph <= 1 and pw <= 1
most = ({COPIED} + (o + 1) * {SWATH}) // (lay * pitch)
beside = beside and most > 0
total = (o + columns - 1) // columns * columns
"""


def pack_channels(kind: Any) -> str:
    """Weights in panels, unless one is not finite, which products with zeros show; and the table of places."""
    return f"""if beside:
    for group in range(groups):
        e = 0
        j = 0
        while e < o and beside:
            first = (group * o + e) * inner
{indented(HERE.format(rest="(o - e)"), 12)}            beside = row_max(w_, first, here * inner) < {kind}(1e999)
            beside = beside and row_min(w_, first, here * inner) > {kind}(-1e999)
            for p in range(0, inner, {DEEP}):
                deep = min({DEEP}, inner - p)
                to = (group * inner + p) * total + j * columns * deep
                pack_right_turned(w_, first + p, inner, deep, here, s, to)
            j = j + 1
            e = e + here
if beside:
    j = tables
    for channel in range(c):
        for ky in range(kh):
            for kx in range(kw):
                mark = (1 if kx * dw < pw else 0) + (2 if kx * dw + ow > w + pw else 0)
                mark = mark + (4 if ky * dh < ph else 0) + (8 if ky * dh + oh > h + ph else 0)
                steps[j] = (channel * plane + ky * dh * w + kx * dw) * 64 + mark
                steps[j + 1] = ((channel * kh + ky) * kw + kx) * columns
                j = j + 2
s[flag] = to_{kind}(beside)
"""


def by_channels(bias: bool, kind: Any) -> str:
    """Images one after the other, a few of which meet a block of the weights before the next one."""
    words = 8 // np.dtype(kind).itemsize
    return f"""if beside:
{indented(_TASKS, 4)}        for p in range(0, inner, {DEEP}):
            deep = min({DEEP}, inner - p)
            e = 0
            f = (group * inner + p) * total - p * columns
            while e < o:
{indented(HERE.format(rest="(o - e)"), 16)}                for i in range(images):
                    for v in range(0, ow, height):
                        y = 0
                        while y < oh:
                            rows = 1 if ph > 0 and (y == 0 or y == oh - 1) else oh - 2 * ph
                            ends = (1 if v == 0 else 0) + (2 if v + height == ow else 0)
                            if ph > 0:
                                ends = ends + (4 if y == 0 else 0) + (8 if y == oh - 1 else 0)
                            place = ((image + i) * groups + group) * c * plane + (y - ph) * w + v - pw
                            multiply_places(x, place, 1, w, rows * height, s, f, s, (tables + 2 * p) * {words}, deep,
                                            ends, ends, here, s, panel + (i * lay + y * ow + v) * pitch + e, pitch,
                                            ow * pitch, p)
                            y = y + rows
                e = e + here
                f = f + columns * deep
{_turned("o", "lay", 8)}{_BIASED if bias else ""}    return 0
"""


_BIASED = """                for j in range(min(16, o - r)):
                    extra = b_[group * o + r + j]
                    for e in range(to + j * lay, to + (j + 1) * lay):
                        out[e] = out[e] + extra
"""


def sizes_of_input(part: bool) -> str:
    """The same of the gradient with respect to x, which adds up one place of all windows after the other."""
    return f"""{_enough("g", "c", "o", part)}beside = beside and o <= {DEEP} and w % height == 0
beside = beside and (kw - 1) * dw <= pw + 1
most = {COPIED} // (plane * pitch)
beside = beside and most > 0
"""


TURN_CHANNELS = """for r in range(groups * o):
    turn_rows(s, r * pitch, w_, r * inner, groups * o * pitch, k, k, c)
for r in range(o):
    steps[tables + 2 * r] = r * lay * 64 + 3
    steps[tables + 2 * r + 1] = r * pitch
"""
"""Weights of a place side by side, and the table of places, which are channels."""


def input_by_channels(kind: Any) -> str:
    """Images one after the other, a few of which meet the weights of a place before the next one."""
    return f"""if beside:
{indented(_TASKS, 4)}        for e in range(panel, panel + images * plane * pitch):
            s[e] = {kind}(0)
        for i in range(k):
            ky = i // kw * dh - ph
            kx = i % kw * dw - pw
            y = max(ky, 0)
            rows = max(min(h, oh + ky) - y, 0)
            e = 0
            while e < c:
{indented(HERE.format(rest="(c - e)"), 16)}                for j in range(images):
                    for v in range(0, w, height):
                        ends = (1 if v < kx else 0) + (2 if v + height - kx > ow else 0)
                        place = ((image + j) * groups + group) * o * lay + (y - ky) * ow + v - kx
                        multiply_places(g, place, 1, ow, rows * height, s, (i * groups + group) * o * pitch + e, s,
                                        tables * {8 // np.dtype(kind).itemsize}, o, ends, 0, here, s,
                                        panel + (j * plane + y * w + v) * pitch + e, pitch, w * pitch, 1)
                e = e + here
{_turned("c", "plane", 8)}    return 0
"""
