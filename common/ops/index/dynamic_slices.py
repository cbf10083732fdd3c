"""Slices whose starts are data, with the signatures of jax.lax: their sizes are known when a program is traced.

A negative start counts from the end. A start for which the slice would not lie inside is moved to the nearest for which
it does, in both directions; so there is no index out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.dtypes import int64
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer, lengths, normalize_dim, shown
from common.core.python_numbers import is_foreign
from common.core.sizes import Dim, same
from common.ops.index.advanced_keys import along
from common.ops.index.coordinates import index_get, index_set
from common.ops.index.written_values import as_value, of_dtype, same_dtype
from common.ops.math.cast import clone
from common.ops.math.compare import lt, maximum, minimum, where
from common.ops.shape.slice_scatter import overwrite
from common.ops.shape.view import squeeze, unsqueeze
from common.tensor.base import TensorBase
from common.tensor.create import CONVERTED, operand


def dynamic_slice(x: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """The part of `x` of a fixed size that begins at `start_indices`.

    Parameters
    ----------
    x : (...)
    start_indices : a start per dimension: a sequence of ints and 0-d integer tensors, or a 1-D integer tensor. Negative
        ones count from the end; each is moved so that the part lies inside of `x`.
    slice_sizes : a size per dimension.

    Raises
    ------
    ShapeError : the number of starts or sizes is not that of dimensions, or a size is larger than the dimension.
    DTypeError : a start that is no integer.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.dynamic_slice(tw.arange(6), (tw.tensor(2),), (3,))
    tensor([2, 3, 4])
    >>> tw.dynamic_slice(tw.arange(6), (5,), (3,))
    tensor([3, 4, 5])
    """
    sizes = lengths(slice_sizes, "dynamic_slice", "slice_sizes")
    if len(sizes) != x.ndim:
        raise ShapeError(
            f"dynamic_slice: slice_sizes must have one entry per dimension of operand: {list(sizes)} for shape "
            f"{list(x.shape)}"
        )
    indices, dim = _places("dynamic_slice", x.shape, start_indices, sizes)
    return index_get(x, indices, dim, wrap=False) if indices else clone(x)


def dynamic_update_slice(x: Any, src: Any, start_indices: Any) -> Any:
    """`x` with `src` in the place of the part of its size that begins at `start_indices`; a new tensor.

    Parameters
    ----------
    x : (...)
    src : of the rank and dtype of `x`, in no dimension larger.
    start_indices : see `dynamic_slice`.

    Raises
    ------
    ShapeError : ranks differ, `src` is larger, or the number of starts is not that of dimensions.
    DTypeError : `src` has another dtype, or a start is no integer.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.dynamic_update_slice(tw.zeros(5), tw.ones(2), (tw.tensor(-1),))
    tensor([0., 0., 0., 1., 1.])
    """
    same_dtype("dynamic_update_slice", x, src)
    if src.ndim != x.ndim:
        raise ShapeError(
            f"dynamic_update_slice: update must have the rank of operand, got {list(src.shape)} for {list(x.shape)}"
        )
    indices, dim = _places("dynamic_update_slice", x.shape, start_indices, src.shape)
    return index_set(x, src, indices, dim, wrap=False) if indices else overwrite(x, src)


def dynamic_slice_in_dim(x: Any, index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one dimension.

    Parameters
    ----------
    x : (..., n, ...)
    index : where it starts, see `dynamic_slice`.
    slice_size : its size.
    axis : the dimension.

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError : there is no such dimension, or see `dynamic_slice`.
    """
    axis = _axis(x, axis, "dynamic_slice_in_dim")
    size = integer(slice_size, "dynamic_slice_in_dim", "slice_size")
    return dynamic_slice(x, _starts(x, index, axis), (*x.shape[:axis], size, *x.shape[axis + 1 :]))


def dynamic_index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """`dynamic_slice` of size 1 along one dimension.

    Parameters
    ----------
    x : (..., n, ...)
    index : its place, see `dynamic_slice`.
    axis : the dimension.
    keepdims : whether the dimension stays, with size 1.

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError : there is no such dimension, or see `dynamic_slice`.
    """
    axis = _axis(x, axis, "dynamic_index_in_dim")
    part = dynamic_slice_in_dim(x, index, 1, axis)
    return part if keepdims else squeeze(part, axis)


def dynamic_update_slice_in_dim(x: Any, src: Any, index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one dimension.

    Parameters
    ----------
    x : (..., n, ...)
    src : (..., k, ...)
    index : where it starts, see `dynamic_slice`.
    axis : the dimension.

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError : there is no such dimension, or see `dynamic_update_slice`.
    """
    return dynamic_update_slice(x, src, _starts(x, index, _axis(x, axis, "dynamic_update_slice_in_dim")))


def dynamic_update_index_in_dim(x: Any, src: Any, index: Any, axis: int) -> Any:
    """`dynamic_update_slice` of size 1 along one dimension.

    Parameters
    ----------
    x : (..., n, ...)
    src : (..., 1, ...), or without that dimension.
    index : its place, see `dynamic_slice`.
    axis : the dimension.

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError : there is no such dimension, or see `dynamic_update_slice`.
    """
    axis = _axis(x, axis, "dynamic_update_index_in_dim")
    return dynamic_update_slice_in_dim(x, unsqueeze(src, axis) if src.ndim == x.ndim - 1 else src, index, axis)


def _axis(x: Any, axis: int, op: str) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{op}: operand is 0-d, it has no dimension {axis}")
    return normalize_dim(axis, x.ndim, op)


def _starts(x: Any, index: Any, axis: int) -> list[Any]:
    return [index if dim == axis else 0 for dim in range(x.ndim)]


def _places(op: str, shape: tuple[Any, ...], starts: Any, sizes: tuple[Any, ...]) -> tuple[list[Any], int]:
    """Indices of neighbouring dimensions that reach from the first to the last that is not taken whole; the first."""
    if not isinstance(starts, (tuple, list)):
        starts = _tensor(op, starts)
        if starts.ndim != 1:
            raise ShapeError(f"{op}: start_indices must be scalars, or a 1-D tensor, not of {starts.ndim} dimensions")
    count = len(starts) if isinstance(starts, (tuple, list)) else int(starts.shape[0])
    if count != len(shape):
        raise ShapeError(
            f"{op}: start_indices must have one entry per dimension of operand: {count} for shape {list(shape)}"
        )
    for n, size in zip(shape, sizes, strict=True):
        if not same(n, size) and size > n:
            raise ShapeError(f"{op}: sizes {list(sizes)} must be less than or equal to operand shape {list(shape)}")
    starts = [_start(op, starts[i]) for i in range(count)]
    part = [dim for dim, (n, size) in enumerate(zip(shape, sizes, strict=True)) if not same(n, size)]
    if not part:
        return [], 0
    first, last = part[0], part[-1]
    indices = []
    for dim in range(first, last + 1):
        index = along(sizes[dim], last - dim)
        indices.append(index + _inside(starts[dim], shape[dim], sizes[dim]) if dim in part else index)
    return indices, first


def _tensor(op: str, starts: Any) -> Any:
    """Starts that are no Python numbers."""
    if not isinstance(starts, (TensorBase, *CONVERTED)) and not is_foreign(starts):
        raise ArgumentError(f"{op}: start_indices must be integers and tensors of such, got {shown(starts)}")
    return operand(starts, None)


def _start(op: str, value: Any) -> Any:
    """A start as a 0-d int64 tensor."""
    if isinstance(value, (bool, float)):
        raise DTypeError(f"{op}: start_indices must be integers, got {value!r}")
    x = as_value(value, int64) if isinstance(value, (int, Dim)) else _tensor(op, value)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{op}: start_indices must be integers, got {x.dtype}")
    if x.ndim:
        raise ShapeError(f"{op}: start_indices must be scalars, got one of shape {list(x.shape)}")
    return of_dtype(x, int64)


def _inside(start: Any, n: Any, size: Any) -> Any:
    """A start that counts from the end as one from the beginning, moved so that the part lies inside."""
    n, room = (as_value(value, int64) for value in (n, n - size))
    return maximum(minimum(where(lt(start, 0), start + n, start), room), 0)


__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim",
]  # fmt: skip
