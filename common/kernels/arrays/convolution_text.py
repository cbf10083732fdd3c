"""Text that the kernels of convolutions share: their arguments, and which part of the work a thread does.

Args: n, c, o, groups, then d, h, w, and size, count, stride, padding and dilation of windows, three each; c and o are
channels of a group. x is (n, groups c, d, h, w), w (groups o, c, kd, kh, kw), g and the result of a convolution
(n, groups o, od, oh, ow).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "AT", "COPIED", "FEW", "HEIGHT", "HERE", "PARTS", "PLACES", "ROOM", "SWATH", "TOGETHER", "WIDTH", "conv_args",
    "gathered", "head", "indented", "is_flat", "padded", "shared", "turns",
]  # fmt: skip

PARTS = 4
"""How many threads at most share a convolution: each has scratch of its own."""
_SHARED = 2**22
"""Multiplications from which threads share a convolution."""
WIDTH, ROOM = 48, 16
"""Columns of a panel at most, and how many rows more are written at the end of one."""
HEIGHT = 8
"""Rows of a panel of the left operand at most."""
HERE = """here = min(columns, {rest})
if {rest} > columns and {rest} * 2 < columns * 3:
    here = min(columns, ({rest} // 2 + 15) // 16 * 16)
"""
"""Columns of the next panel: the last two have about as many, where one of them would have few."""
TOGETHER = 4
"""Panels that meet a block of the left operand one after the other."""
SWATH = TOGETHER * WIDTH
COPIED = 512 * SWATH
"""Elements of images that are copied at a time; some more are read behind them."""
FEW = """few = 32
if plane % 512 == 0:
    few = 8
"""
"""Channels whose rows are moved together; where planes share a set of the first-level cache it holds fewer."""

def conv_args(
    n: Any, c: Any, o: Any, groups: Any, sizes: Sequence[Any], windows: Sequence[Sequence[Any]]
) -> tuple[Any, ...]:
    """Return the args of all kernels.

    Parameters
    ----------
    n, groups : images and groups.
    c, o : channels of a group.
    sizes : d, h, w.
    windows : size, count, stride, padding and dilation, three each.
    """
    return (n, c, o, groups, *sizes, *(value for three in windows for value in three))


_ARGS = 22
_NAMES = (
    *("n", "c", "o", "groups", "d", "h", "w", "kd", "kh", "kw", "od", "oh", "ow"),
    *("sd", "sh", "sw", "pd", "ph", "pw", "dd", "dh", "dw"),
)
_SIZES = "".join(f"    {name} = args[{i}]\n" for i, name in enumerate(_NAMES)) + """    k = kd * kh * kw
    inner = c * k
    if k == 1 and sd * sh * sw == 1 and pd + ph + pw == 0 and d == od and h == oh and w == ow:
        w = d * h * w
        ow = w
        d = 1
        h = 1
        od = 1
        oh = 1
    plane = d * h * w
    lay = od * oh * ow
    wide()
"""

_SHARE = f"""    if {{which}}n * lay * groups * o * inner >= {_SHARED} and there_are_threads({{x}}) != 0:
        share_{{name}}(bufs, args, {{x}}, {_ARGS}, {PARTS})
        return 0
"""
_ALL = """    part = 0
    step = 1
"""
_PART = f"""    part = args[{_ARGS}]
    step = {PARTS}
"""

def indented(text: str, depth: int) -> str:
    """Lines with so many blanks before each."""
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


def head(name: str, buffers: Sequence[str], kind: Any, part: bool) -> str:
    """The first lines of a kernel, or of a part: buffers, the last one scratch, which is words too, and sizes."""
    held = "".join(f"    {b} = buffer(bufs, {i}, {kind})\n" for i, b in enumerate((*buffers, "s")))
    held += f"    steps = buffer(bufs, {len(buffers)}, int64)\n"
    return f"def {name}{'_part' if part else ''}(bufs, args):\n{held}{_SIZES}"


def shared(name: str, x: str, which: str = "") -> str:
    """Leave all of the work to threads, where that pays; or under a condition too."""
    return _SHARE.format(name=name, x=x, which=which and f"{which} and ")


def turns(name: str, x: str, part: bool) -> str:
    """The part of the work to do: all of it, by threads where that pays, or that of a part."""
    return _PART if part else shared(name, x) + _ALL


def is_flat(steps: str) -> str:
    """Whether images are lines or planes, with windows of several places and the given `steps`."""
    return f"k > 1 and d * kd * sd == 1 and pd == 0 and {steps}"


def padded(to: str) -> str:
    """Copy `lines` rows of all channels of a group from row `top` on, with what is around the image, to s[to:].

    They have `wp` elements each.
    """
    return f"""above = min(max(-top, 0), lines)
below = max(min(h - top, lines), above)
place = (image * groups + group) * c * plane + top * w - pw
lay_windows(x, place, s, {to}, -pw, w, wp, 1, 1, 1, above, below, lines, w, lines * wp, c, plane)
"""


AT = """ox = {at} % ow
oy = {at} // ow % oh
oz = {at} // (ow * oh) % od
image = {at} // lay
"""
"""Of a window: where it is among those of its image, and its image."""

NEXT = """ox = ox + many
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

PLACES = """i = 0
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


def gathered(depth: int, rows: str, p: str, count: str, line: str, step: str, bound: str = "") -> str:
    """Copy rows of windows: so many `rows` from number `p` on, of `count` windows from number `q` on."""
    copied = f"""c0 = max(cb, low + (1 if i < low_rest else 0))
c1 = min(cb + few, high_ + (1 if i < high_rest else 0))
if c1 > c0:
    to = {line} + (c0 * k + i - {p}) * {step}
    copy_windows(x, place + c0 * plane, s, to, from_, until, many, sw, c1 - c0, plane, k * {step})
"""
    places = PLACES.format(first="ox", channel="0", body=indented(copied, 12))
    return indented(f"""low = {p} // k
low_rest = {p} % k
high_ = ({p} + {rows}) // k
high_rest = ({p} + {rows}) % k
{AT.format(at="q")}t = 0
while t < {count}:
    many = min(ow - ox, {f"min({bound}, {count} - t)" if bound else f"{count} - t"})
    for cb in range(low, high_ + 1, few):
{indented(places, 8)}    t = t + many
{indented(NEXT, 4)}""", depth)
