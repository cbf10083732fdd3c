"""affine_grid and grid_sample: images at places that are computed."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import called
from common.core.dtypes import int64, refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer, integers
from common.core.mode import current_trace, tangents_around
from common.core.spec import numel
from common.kernels.arrays import grid_samples
from common.ops.image.interpolation import number
from common.ops.index.advanced_keys import along
from common.ops.linalg.matmul import matmul
from common.ops.math.cast import to
from common.ops.shape.cat import stack
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
    from common.ops.image.grid_samples import interpolated, sampled_

    align = bool(align_corners)
    plain = current_trace() is None and tangents_around() is None
    if mode != "bicubic" and plain and grid_samples.serves(padding_mode, align, x.shape, grid.shape):
        y = sampled_(x, grid, mode=mode, padding=padding_mode, align=align)
    else:
        y = interpolated(x, grid, mode, padding_mode, align)
    return called(y, f"GridSampler{n}DBackward0")


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
