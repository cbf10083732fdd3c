"""The kernel ``window_put``: numbers per window put where the maximum of the window is, zeros elsewhere.

Windows do not overlap and lie in the image, so that each element is of one at most: a row of windows is compared, and
written, without indices in memory. Buffers: v, x, out, and scratch that is not used; args are those of
`common.kernels.arrays.windows`. Status: always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from common.kernels.arrays.windows import UNROLLED, head_of_planes

__all__ = ["WIDTHS", "put_source", "serves"]

WIDTHS = (2, 3, 4)
"""Columns of windows, which follow each other without a gap."""


def serves(
    sizes: Sequence[int],
    size: Sequence[int],
    count: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> bool:
    """Whether there is a kernel for such windows of images of `sizes`: they have no gaps, and no edges beyond them."""
    fits = all((m - 1) * s + k <= n and s >= k for n, k, m, s in zip(sizes, size, count, stride, strict=True))
    plain = not any(padding) and all(d == 1 for d in dilation)
    return fits and plain and size[2] in WIDTHS and stride[2] == size[2] and prod(size) <= UNROLLED


def put_source(dtype: Any, width: int) -> str:
    """Return the kernel for windows of `width` columns."""
    return f"""{head_of_planes("window_put", "v x", dtype, dtype)}    wide()
    if od * args[10] != d or args[4] != args[10] or oh * args[11] != h or args[5] != args[11] or ow * {width} != w:
        for i in range(low * d * h * w, high * d * h * w):
            out[i] = {dtype}(0)
    for plane in range(low, high):
        for a in range(od):
            at = (plane * d + a * args[10]) * h * w
            q = (plane * od + a) * oh * ow
            put_at_maxima_{width}(v, q, x, at, out, at, {width}, ow, oh, args[11] * w, args[4], h * w, args[5], w)
    return 0
"""
