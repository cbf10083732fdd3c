"""Sums and maxima of windows, those of a row side by side: kernels of `common.kernels.arrays.windows`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.compiler.literals import literal
from common.kernels.arrays.convolution_text import indented
from common.kernels.arrays.copying import buffer_dtype
from common.kernels.arrays.windows import better, head_of_planes, limits, of_planes, one_by_one, together

__all__ = ["NEAR", "amax_source", "sum_source"]

NEAR = range(1, 9)
"""Columns of windows, and steps from one to the next, of which vectors of windows are made."""


def _by_rows(dtype: Any, size: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any]) -> bool:
    """Whether windows of a row go side by side: of floats, not adaptive, and their columns are `NEAR`, as is known."""
    return all(type(n) is int and n in NEAR for n in (size[2], stride[2])) and np.dtype(dtype).kind == "f"


def _side_by_side(name: str, step: int, size: int) -> str:
    """Loops over planes, of each of which a function with a name takes all windows."""
    function = f"{name}_of_windows_{step}_{size}"
    return f"""    wide()
    if d * h * od * oh == 1 and args[13] + args[14] == 0:
        {function}(x, low * w, out, low * ow, args[18], ow, args[15], w, 1, 0, high - low, 1, 0, 1, 1, high - low)
        return 0
    for plane in range(low, high):
        for a in range(od):
{indented(limits("a", "d", "od", 0), 12)}            deep = max(a1 - a0, 0)
            if a_by != 1:
                deep = (deep + a_by - 1) // a_by
            at = (plane * d + a0) * h * w
            q = (plane * od + a) * oh * ow
            {function}(x, at, out, q, args[18], ow, args[15], w, deep, a_by * h * w, oh, args[11], args[14], args[5],
                       max(args[17], 1), h)
    return 0
"""


def _alike(extent: int, count: int) -> tuple[int, int] | None:
    """The step between adaptive windows, and the size of each, where these are the same for all of them."""
    if count < 1:
        return None
    # window i is from floor(i extent / count) to ceil((i + 1) extent / count)
    step, rest = divmod(extent, count)
    return (step, step + rest) if count == 1 or rest <= 1 else None


def _adaptive(
    name: str, dtype: Any, size: Sequence[Any], sizes: Sequence[int] = (), counts: Sequence[int] = ()
) -> str:
    """Lines for adaptive windows that are all alike if images have certain sizes; none if they are not.

    Parameters
    ----------
    sizes, counts : d, h and w of an image, and how many windows they have, as they are likely to be.
    """
    found = [_alike(n, m) for n, m in zip(sizes, counts, strict=True)]
    if not found or any(type(n) is not int or n for n in size) or None in found or np.dtype(dtype).kind != "f":
        return ""
    (sd, kd), (sh, kh), (sw, kw) = (one for one in found if one is not None)
    if sw not in NEAR or kw not in NEAR:
        return ""
    function, now = f"{name}_of_windows_{sw}_{kw}", zip(("d", "h", "w", "od", "oh", "ow"), (*sizes, *counts))
    row, plane = f"1, {counts[2]}, 0, {sizes[2]}", sizes[1] * sizes[2]
    first = f"{{0}} * {sizes[0] * plane}", f"{{0}} * {counts[0] * counts[1] * counts[2]}"
    if sizes[0] == counts[0] == 1 and sh == kh:  # windows of lines that follow each other, from plane to plane
        x, out = (place.format("low") for place in first)
        lines = f"(high - low) * {counts[1]}, {sh}, 0, {kh}, 1, (high - low) * {sizes[1]}"
        calls = f"        {function}(x, {x}, out, {out}, {row}, 1, {plane}, {lines})\n"
    else:
        x, out = (place.format("plane") for place in first)
        lines = f"{counts[1]}, {sh}, 0, {kh}, 1, {sizes[1]}"
        calls = f"""        for plane in range(low, high):
            for a in range({counts[0]}):
                {function}(x, {x} + a * {sd * plane}, out, {out} + a * {counts[1] * counts[2]}, {row},
                           {kd}, {plane}, {lines})
"""
    return f"""    if args[4] == 0 and {" and ".join(f"{n} == {value}" for n, value in now)}:
        wide()
{calls}        return 0
"""


def sum_source(
    dtype: Any, size: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any], *likely: Sequence[int]
) -> str:
    """Return the kernel that adds up each window.

    Parameters
    ----------
    size, stride, dilation : of windows. Those of a row are added up side by side, if these are known numbers.
    likely : the sizes of an image and how many windows it has: so are adaptive ones, if that makes them alike.
    """
    head = head_of_planes("window_sum", "x", dtype, dtype) + _adaptive("sums", dtype, size, *likely)
    if _by_rows(dtype, size, stride, dilation):
        return head + _side_by_side("sums", stride[2], size[2])
    kind = buffer_dtype(dtype)
    body = f"total = {kind}(0)\n---\ntotal = total + x[p]\n---\nout[q + c] = total"
    added = together("args[6]", "out[q + c] = out[q + c] + x[PLACE]")
    zeros = f"for c in range(first, last):\n    out[q + c] = {kind}(0)\n"
    return head + one_by_one(body, zeros + added) + "    return 0\n"


def amax_source(
    dtype: Any, size: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any], *likely: Sequence[int]
) -> str:
    """Return the kernel that finds the maximum of each window; parameters as in `sum_source`."""
    head = head_of_planes("window_amax", "x", dtype, dtype) + of_planes(dtype, "x[plane * d * h * w + at]")
    head += _adaptive("maxima", dtype, size, *likely)
    if _by_rows(dtype, size, stride, dilation):
        return head + _side_by_side("maxima", stride[2], size[2])
    least = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
    first = f"best = {literal(least, np.dtype(dtype))}"
    body = f"{first}\n---\nif {better(dtype, 'x[p]', 'best')}:\n    best = x[p]\n---\nout[q + c] = best"
    return head + one_by_one(body) + "    return 0\n"
