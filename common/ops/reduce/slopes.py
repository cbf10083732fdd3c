"""Derivatives of functions that are known at points: `gradient`."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.dtypes import bool_, default_float, refuse, uint8
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, normalize_dim
from common.ops.index.written_values import of_dtype
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import reshape


def gradient(x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """The derivatives of a function along dimensions, from its values at points: central differences inside, of
    second order also where points are not equally far apart; one-sided ones at the ends.

    Parameters
    ----------
    x : (...) the values; ints become float32.
    spacing : distance of neighbours, 1 by default; or one for each dimension; or for each a tensor of coordinates.
    dim : the dimensions; all by default.
    edge_order : 1 or 2, of the differences at the ends.

    Returns
    -------
    tensors : of the shape of `x`, one for each dimension.

    Raises
    ------
    ArgumentError : another order, or not one spacing for each dimension, or a dimension named twice.
    ShapeError : fewer than `edge_order` + 1 points, or not one coordinate for each.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.gradient(tw.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    if x.dtype in (bool_, uint8):  # differences of them would wrap
        refuse("gradient", x)
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = [normalize_dim(d, x.ndim, "gradient") for d in dims]
    if len(set(axes)) != len(axes):
        twice = next(d for d in axes if axes.count(d) > 1)
        raise ArgumentError(f"torch.gradient : dim {twice} appears multiple times in the list of dims")
    order = integer(edge_order, "gradient", "edge_order")
    if order not in (1, 2):
        raise ArgumentError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {order}")
    x = x if x.dtype.kind == "f" else of_dtype(x, default_float())
    for axis in axes:
        if x.shape[axis] < order + 1:
            raise ShapeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1, got {list(x.shape)}"
            )
    several = isinstance(spacing, (tuple, list))
    steps = list(spacing) if several else [1.0 if spacing is None else spacing] * len(axes)
    if len(steps) != len(axes):
        raise ArgumentError(f"torch.gradient expected spacing to be one number, or {len(axes)}, got {len(steps)}")
    return tuple(_along(x, axis, step, order) for axis, step in zip(axes, steps, strict=True))


def _along(x: Any, axis: int, step: Any, order: int) -> Any:
    n = x.shape[axis]

    def part(start: Any, size: Any) -> Any:
        return narrow(x, axis, start, size)

    if isinstance(step, np.ndarray) or getattr(step, "ndim", 0) == 1:
        return _between(x, axis, step, order, part)
    inside = (part(2, n - 2) - part(0, n - 2)) / (2 * step)
    if order == 1:
        first, last = (part(1, 1) - part(0, 1)) / step, (part(n - 1, 1) - part(n - 2, 1)) / step
    else:
        first = (part(0, 1) * -1.5 + part(1, 1) * 2 - part(2, 1) * 0.5) / step
        last = (part(n - 3, 1) * 0.5 - part(n - 2, 1) * 2 + part(n - 1, 1) * 1.5) / step
    return cat([first, inside, last], axis)


def _between(x: Any, axis: int, places: Any, order: int, part: Any) -> Any:
    """The derivative at given coordinates: that of the parabola through three neighbours."""
    from common.tensor.create import operand

    places, n = operand(places), x.shape[axis]
    if places.ndim != 1 or places.shape[0] != n:
        raise ShapeError(
            f"torch.gradient expected one coordinate for each of {n} points of dimension {axis}, got "
            f"{list(places.shape)}"
        )
    places = of_dtype(places, x.dtype)
    shape = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    widths = narrow(places, 0, 1, n - 1) - narrow(places, 0, 0, n - 1)

    def width(start: Any, size: Any) -> Any:
        return reshape(narrow(widths, 0, start, size), shape)

    def through(start: Any, size: Any, at: int) -> Any:
        """The slope, at one of them, of the parabola through points start, start + 1, start + 2."""
        a, b = width(start, size), width(start + 1, size)
        low, high = (part(start + i + 1, size) - part(start + i, size) for i in (0, 1))
        low, high = low / a, high / b
        if at == 1:
            return (low * b + high * a) / (a + b)
        return low - (high - low) * a / (a + b) if at == 0 else high + (high - low) * b / (a + b)

    if order == 1:
        first = (part(1, 1) - part(0, 1)) / width(0, 1)
        last = (part(n - 1, 1) - part(n - 2, 1)) / width(n - 2, 1)
    else:
        first, last = through(0, 1, 0), through(n - 3, 1, 2)
    return cat([first, through(0, n - 2, 1), last], axis) if n > 2 else cat([first, last], axis)


__all__ = ["gradient"]
