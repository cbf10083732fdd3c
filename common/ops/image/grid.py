"""affine_grid and grid_sample: images at places that are computed."""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import add
from typing import Any

from common.core.dispatch import called
from common.core.dtypes import int64, refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer, integers
from common.core.operators import as_operand
from common.core.spec import numel
from common.ops.image.interpolation import cubic_weights, number, whole, within
from common.ops.index.advanced_keys import along
from common.ops.index.gather import gather_
from common.ops.linalg.matmul import matmul
from common.ops.math.arithmetic import abs
from common.ops.math.cast import to
from common.ops.math.compare import clamp_max, clamp_min, ge, le, logical_and, where
from common.ops.math.division import fmod
from common.ops.math.rounding import floor, round
from common.ops.shape.cat import stack
from common.ops.shape.slices import select
from common.ops.shape.view import expand, reshape, transpose


def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    """Places for `grid_sample`: those of a grid over [-1, 1], mapped by an affine map per item.

    Parameters
    ----------
    theta : (batch, 2, 3) or (batch, 3, 4)
    size : (batch, channels, height, width), or with depth before height.
    align_corners : whether -1 and 1 are the centres of the outermost elements, instead of their outer edges.

    Returns
    -------
    tensor : (batch, height, width, 2), or (batch, depth, height, width, 3): x, y, z.

    Raises
    ------
    ShapeError : `theta` does not fit `size`.
    ArgumentError : another number of sizes, or one below 1.
    DTypeError : `theta` is not floating point.
    """
    sizes = integers(size, "affine_grid", "size")
    n = len(sizes) - 2
    if theta.dtype.kind != "f":
        raise DTypeError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if n not in (2, 3) or any(m < 1 for m in sizes):
        raise ArgumentError(f"affine_grid only supports 4D and 5D sizes of positive numbers. Got size {list(sizes)}.")
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (n, n + 1) or theta.shape[0] != sizes[0]:
        raise ShapeError(
            f"Expected a batch of {n}D affine matrices of shape {sizes[0]}x{n}x{n + 1} for size {list(sizes)}. Got "
            f"{list(theta.shape)}."
        )
    axes = []
    for d, m in enumerate(sizes[2:]):
        at = to(along(m, 0), dtype=theta.dtype, x_dtype=int64)
        if align_corners:
            line = at * 2 / number(m - 1, theta.dtype) - 1 if m > 1 else at
        else:
            line = (at * 2 + 1) / number(m, theta.dtype) - 1
        axes.append(expand(reshape(line, (m, *(1,) * (n - 1 - d))), sizes[2:]))
    base = stack([*reversed(axes), axes[0] * 0 + 1], -1)
    rows = expand(reshape(base, (1, numel(sizes[2:]), n + 1)), (sizes[0], numel(sizes[2:]), n + 1))
    places = reshape(matmul(rows, transpose(theta, 1, 2)), (sizes[0], *sizes[2:], n))
    return called(places, "AffineGridGeneratorBackward0")


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
            y = abs(x - low)
            rest, flips = fmod(y, as_operand(span)), floor(y / span)
            x = where(fmod(flips, 2) == 0, rest, span - rest) + low
    return clamp_max(clamp_min(x, 0), as_operand(m - 1))


def _tap(place: Any, m: Any, inner: Any) -> tuple[Any, Any]:
    """How far in memory whole places of a dimension of `m` elements are from its first one; and whether inside."""
    return within(whole(place), m) * inner, logical_and(ge(place, 0), le(place, as_operand(m - 1)))


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Any:
    """Images at given places, by interpolation.

    Parameters
    ----------
    x : (batch, channels, height, width), or with depth before height.
    grid : (batch, height', width', 2), or (batch, depth', height', width', 3): places x, y, z in [-1, 1].
    mode : "bilinear", "nearest" or, for two dimensions, "bicubic".
    padding_mode : what lies outside: "zeros", "border" or "reflection".
    align_corners : whether -1 and 1 are the centres of the outermost elements, instead of their outer edges.

    Returns
    -------
    tensor : (batch, channels, height', width'), or with depth'.

    Raises
    ------
    ShapeError : sizes that do not fit, or an image without elements.
    ArgumentError : another mode.
    DTypeError : the dtypes differ.

    References
    ----------
    Jaderberg and others, Spatial transformer networks, 2015.
    """
    n = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(f"grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            f"grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: {padding_mode!r}"
        )
    if x.dtype != grid.dtype:
        raise DTypeError(
            f"grid_sample(): expected input and grid to have same dtype, but got {x.dtype} and {grid.dtype}"
        )
    refuse("grid_sample", x)
    if n not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != n or grid.shape[0] != x.shape[0]:
        raise ShapeError(
            "grid_sample(): expected 4D or 5D input and a grid of the same number of dimensions and batch, whose last "
            f"size is the number of spatial ones, but got input of size {list(x.shape)} and grid of {list(grid.shape)}"
        )
    if any(m == 0 for m in x.shape[2:]):
        raise ShapeError(f"grid_sample(): expected input to have non-empty spatial dimensions, got {list(x.shape)}")
    if mode == "bicubic" and n == 3:
        raise ArgumentError("grid_sample(): bicubic interpolation only supports 4D input")
    align, sizes = bool(align_corners), x.shape[2:]
    where_to = numel(grid.shape[1:-1])
    flat = reshape(grid, (grid.shape[0], where_to, n))
    taps = []
    for d, m in enumerate(sizes):
        place = _unnormalised(select(flat, 2, n - 1 - d), m, align)
        if mode != "bicubic":
            place = _padded(place, m, padding_mode, align)
        if mode == "nearest":
            nearest = round(place)  # constant between jumps: a gradient of 0, not none
            taps.append([(nearest, 1 - nearest * 0)])
            continue
        first = floor(place)
        t = place - first
        if mode == "bilinear":
            taps.append([(first, 1 - t), (first + 1, t)])
        else:
            at = [_padded(first + (k - 1), m, padding_mode, align) for k in range(4)]
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
    return called(reshape(total, (*x.shape[:2], *grid.shape[1:-1])), f"GridSampler{n}DBackward0")


def grid_sampler(x: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """`nn.functional.grid_sample` with PyTorch's numbers of modes.

    Parameters
    ----------
    x, grid, align_corners : see `nn.functional.grid_sample`.
    interpolation_mode : 0 bilinear, 1 nearest, 2 bicubic.
    padding_mode : 0 zeros, 1 border, 2 reflection.

    Raises
    ------
    ArgumentError : another number.
    ShapeError, DTypeError : see `nn.functional.grid_sample`.
    """
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    for name, given in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if integer(given, "grid_sampler", name) not in (0, 1, 2):
            raise ArgumentError(f"grid_sampler(): {name} must be 0, 1 or 2, got {given}")
    return grid_sample(x, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)


def grid_sampler_2d(x: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """`grid_sampler` for images of two dimensions.

    Parameters
    ----------
    x, grid, interpolation_mode, padding_mode, align_corners : see `grid_sampler`.
    """
    return grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(x: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """`grid_sampler` for images of three dimensions.

    Parameters
    ----------
    x, grid, interpolation_mode, padding_mode, align_corners : see `grid_sampler`.
    """
    return grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners)


__all__ = ["affine_grid", "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"]
