"""Text that the kernels of convolutions share: their arguments, and which part of the work a thread does.

Args: n, c, o, groups, then d, h, w, and size, count, stride, padding and dilation of windows, three each; c and o are
channels of a group. x is (n, groups c, d, h, w), w (groups o, c, kd, kh, kw), g and the result of a convolution
(n, groups o, od, oh, ow).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["PARTS", "conv_args", "head", "indented", "is_flat", "padded", "turns"]

PARTS = 4
"""How many threads at most share a convolution: each has scratch of its own."""
_SHARED = 2**22
"""Multiplications from which threads share a convolution."""

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

_SHARE = f"""    if n * lay * groups * o * inner >= {_SHARED} and there_are_threads({{x}}) != 0:
        share_{{name}}(bufs, args, {{x}}, {_ARGS}, {PARTS})
        return 0
    part = 0
    step = 1
"""
_PART = f"""    part = args[{_ARGS}]
    step = {PARTS}
"""

def indented(text: str, depth: int) -> str:
    """Lines with so many blanks before each."""
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


def head(name: str, buffers: Sequence[str], kind: Any, part: bool) -> str:
    """The first lines of a kernel, or of a part: buffers, of which the last one is scratch, and sizes."""
    held = "".join(f"    {b} = buffer(bufs, {i}, {kind})\n" for i, b in enumerate((*buffers, "s")))
    return f"def {name}{'_part' if part else ''}(bufs, args):\n{held}{_SIZES}"


def turns(name: str, x: str, part: bool) -> str:
    """The part of the work to do: all of it, by threads where that pays, or that of a part."""
    return _PART if part else _SHARE.format(name=name, x=x)


def is_flat(steps: str) -> str:
    """Whether images are lines or planes, with windows of several places and the given `steps`."""
    return f"k > 1 and d * kd * sd == 1 and pd == 0 and {steps}"


def padded(to: str) -> str:
    """Copy `lines` rows of all channels of a group from row `top` on, with what is around the image, to s[to:].

    They have `wp` elements each.
    """
    return f"""above = min(max(-top, 0), lines)
below = max(min(h - top, lines), above)
for channel in range(c):
    place = ((image * groups + group) * c + channel) * plane + (top + above) * w - pw
    at = {to} + channel * lines * wp
    copy_windows(x, 0, s, at, 0, 0, wp, 1, above, 0, wp)
    copy_windows(x, place, s, at + above * wp, pw, pw + w, wp, 1, below - above, w, wp)
    copy_windows(x, 0, s, at + below * wp, 0, 0, wp, 1, lines - below, 0, wp)
"""
