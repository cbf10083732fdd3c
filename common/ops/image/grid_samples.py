"""Images at places of a grid as one op, whose gradients are kernels in the eager engine."""

from __future__ import annotations

from functools import cache, reduce
from itertools import product
from math import prod
from operator import add
from typing import Any

import numpy as np

from common.core.operators import as_operand
from common.core.spec import numel
from common.evaluate.immediate import Immediate
from common.evaluate.kernels import compiled
from common.evaluate.kernels import scratch as memory
from common.kernels.arrays import grid_samples as kernels
from common.ops._define import composite, on_arrays
from common.ops._samples import away_from_zero
from common.ops.image.interpolation import cubic_weights, whole, within
from common.ops.index.gather import gather_
from common.ops.math.arithmetic import abs
from common.ops.math.compare import clamp_max, clamp_min, eq, ge, le, logical_and, where
from common.ops.math.division import fmod
from common.ops.math.rounding import floor, round
from common.ops.shape.slices import select
from common.ops.shape.view import expand, reshape


def _unnormalised(g: Any, m: Any, align: bool) -> Any:
    """Places in [-1, 1] as those in a dimension of `m` elements."""
    return (g + 1) / 2 * (m - 1) if align else ((g + 1) * m - 1) / 2


def _padded(x: Any, m: Any, padding: str, align: bool) -> Any:
    """Places beyond the ends, brought inside or left."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, m - 1) if align else (-0.5, m)
        if span == 0:
            x = x * 0
        else:
            y, whole_turn = abs(x - low), as_operand(span)
            rest, flips = fmod(y, whole_turn), floor(y / whole_turn)
            x = where(eq(fmod(flips, 2), 0), rest, whole_turn - rest) + low
    return clamp_max(clamp_min(x, 0), as_operand(m - 1))


def _tap(place: Any, m: Any, inner: Any) -> tuple[Any, Any]:
    """How far in memory whole places of a dimension of `m` elements are from its first one; and whether inside."""
    return within(whole(place), m) * inner, logical_and(ge(place, 0), le(place, as_operand(m - 1)))


def interpolated(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    """What `grid_sample` gives, by ops."""
    sizes = x.shape[2:]
    n = len(sizes)
    where_to = numel(grid.shape[1:-1])
    flat = reshape(grid, (grid.shape[0], where_to, n))
    taps = []
    for d, m in enumerate(sizes):
        place = _unnormalised(select(flat, 2, n - 1 - d), m, align)
        if mode != "bicubic":
            place = _padded(place, m, padding, align)
        if mode == "nearest":
            nearest = round(place)  # constant between jumps: a gradient of 0, not none
            taps.append([(nearest, 1 - nearest * 0)])
            continue
        first = floor(place)
        t = place - first
        if mode == "bilinear":
            taps.append([(first, 1 - t), (first + 1, t)])
        else:
            at = [_padded(first + (k - 1), m, padding, align) for k in range(4)]
            taps.append(list(zip(at, cubic_weights(t), strict=True)))
    pixels, total = reshape(x, (*x.shape[:2], numel(sizes))), None
    shape = (x.shape[0], x.shape[1], where_to)
    parts = [[_tap(place, m, numel(sizes[d + 1 :])) for place, _ in taps[d]] for d, m in enumerate(sizes)]
    shares = product(*[[share for _, share in tap] for tap in taps])
    corners = [[*zip(*corner, strict=True)] for corner in product(*parts)]
    places = [(reduce(add, at), reduce(logical_and, inside)) for at, inside in corners]
    for (index, good), (weight, *others) in zip(places, shares, strict=True):
        for share in others:
            weight = weight * share
        part = gather_(pixels, expand(reshape(index, (x.shape[0], 1, where_to)), shape), dim=2)
        part = part * reshape(where(good, weight, 0), (x.shape[0], 1, where_to))
        total = part if total is None else total + part
    return reshape(total, (*x.shape[:2], *grid.shape[1:-1]))


def _sampled(x: Any, grid: Any, *, mode: str, padding: str, align: bool) -> Any:
    return interpolated(x, grid, mode, padding, align)


@cache
def _kernel(name: str, dtype: Any, mode: str, padding: str, align: bool, n: int) -> Any:
    source = kernels.spread_source if name == "grid_spread" else kernels.slopes_source
    return compiled(source(dtype, mode, padding, align, n), name)


def _spread(g: Any, x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    kernel = _kernel("grid_spread", x.dtype, mode, padding, align, len(x.shape) - 2)
    ints = (*x.shape, prod(grid.shape[1:-1]))
    return _run(kernel, (g, grid), x, kernels.scratch("grid_spread", x.dtype, mode, ints), *ints)


def _slopes(g: Any, x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    kernel = _kernel("grid_slopes", x.dtype, mode, padding, align, len(x.shape) - 2)
    ints = (*x.shape, prod(grid.shape[1:-1]))
    held = kernels.scratch("grid_slopes", x.dtype, mode, ints)
    return _run(kernel, (g, x, grid), grid, held, *ints, kernels.of_sums(x.shape[1], mode, len(x.shape) - 2))


def _run(kernel: Any, given: Any, like: Any, held: int, *ints: int) -> Immediate:
    out = np.empty(like.shape, like.dtype)
    kernel(*[np.ascontiguousarray(z.payload) for z in given], out, memory(held), *ints)
    return Immediate(out)


def _samples(rng: Any, dtype: Any) -> list[Any]:
    def one(mode: str, padding: str, align: bool) -> Any:
        x, grid = away_from_zero(rng, (2, 2, 3, 4), dtype), away_from_zero(rng, (2, 2, 3, 2), dtype)
        return (x, grid / 3), {"mode": mode, "padding": padding, "align": align}

    return [
        one("bilinear", "zeros", False), one("bilinear", "border", True), one("bilinear", "reflection", False),
        one("nearest", "zeros", True),
    ]  # fmt: skip


sampled_ = composite(
    "grid_sampled", _sampled, (_spread, _slopes), inputs=("x", "grid"), reduce="grid_sampled",
    samples=_samples,
    doc="x at places of a grid. The gradients are those of the ops; on arrays two kernels have their bits.",
)  # fmt: skip
on_arrays(
    sampled_, lambda saved, attrs: kernels.serves(attrs["padding"], attrs["align"], saved[0].shape, saved[1].shape)
)

__all__: list[str] = []
