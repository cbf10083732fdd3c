"""Windows along a dimension, as views: `Tensor.unfold`."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.int_arguments import integer, normalize_dim
from common.core.op import Op
from common.evaluate.specialise import remembered
from common.ops._define import view
from common.ops._samples import join, one
from common.ops.index.advanced_keys import along
from common.ops.index.coordinates import index_put_zeros
from common.ops.shape.slices import narrow
from common.ops.shape.view import permute_, reshape
from common.tensor.base import TensorBase


def _strided(offset: Any, shape: Any, strides: Any, dim: int, size: int, step: int) -> Any:
    count = (shape[dim] - size) // step + 1
    return (
        offset,
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]),
    )


def _array(x: np.ndarray, dim: int, size: int, step: int) -> np.ndarray:
    apart = step >= size and bool(x.flags.writeable)
    found = np.lib.stride_tricks.sliding_window_view(x, size, dim, writeable=apart)
    return found[(slice(None),) * dim + (slice(None, None, step),)]


def _rule(g: Any, x_shape: Any, dim: int, size: int, step: int) -> Any:
    """Each window's cotangent added to its elements, one window after the other."""
    order = (*range(dim + 1), g.ndim - 1, *range(dim + 1, g.ndim - 1))
    extent = x_shape[dim]
    if step == size and type(extent) is int:  # windows lie side by side
        from common.ops.shape.padding import constant_pad_

        taken = g.shape[dim] * size
        found = reshape(permute_(g, dims=order), (*x_shape[:dim], taken, *x_shape[dim + 1 :])) + 0.0
        starts = (0,) * len(x_shape)
        return found if taken == extent else constant_pad_(found, shape=x_shape, starts=starts, value=0)
    places = along(g.shape[dim], 1) * step + along(size, 0)
    if not isinstance(g, TensorBase):
        places = places.payload  # what rules are given, they return
    return index_put_zeros(permute_(g, dims=order), (places,), (x_shape[dim],), dim, False)


unfold_: Op = view(
    "unfold", _strided, _array, (_rule,),
    samples=join(one(7, dim=0, size=3, step=2), one(2, 6, 3, dim=1, size=2, step=1), one(5, 2, dim=0, size=2, step=3)),
    doc="Windows of a size, `step` apart, along one dimension; what is in a window is the last one.",
)  # fmt: skip


@remembered
def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """All windows of a size along a dimension, as a view; what is in a window is the last dimension.

    Parameters
    ----------
    x : (..., n, ...)
    dimension : the dimension.
    size : of each window.
    step : from the start of one window to that of the next.

    Returns
    -------
    tensor : (..., (n - size) // step + 1, ..., size). Where windows overlap it cannot be written.

    Raises
    ------
    ArgumentError : a window is longer than the dimension, or `size` is negative or `step` not positive.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    axis = normalize_dim(dimension, x.ndim, "unfold")
    size, step = integer(size, "unfold", "size"), integer(step, "unfold", "step")
    extent = x.shape[axis] if x.ndim else 1
    if size < 0 or size > extent:
        raise ArgumentError(f"unfold(): maximum size for tensor at dimension {axis} is {extent} but size is {size}")
    if step <= 0:
        raise ArgumentError(f"unfold(): step is {step} but must be > 0")
    return unfold_(x, dim=axis, size=size, step=step) if x.ndim else narrow(reshape(x, 1), 0, 0, size)


__all__: list[str] = []
