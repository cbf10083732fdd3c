"""Views of memory by sizes and strides, and parts of copies replaced that views would show."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, integers
from common.core.op import Op
from common.core.spec import numel
from common.ops._define import view
from common.ops._samples import join, one
from common.ops.index.advanced_keys import along
from common.ops.index.coordinates import index_put_zeros
from common.ops.index.written_values import of_dtype
from common.ops.math.cast import clone
from common.ops.shape.diagonal import diagonal
from common.ops.shape.view import lies_in_order, reshape
from common.ops.shape.view_scatter import path_along, placed, view_set
from common.tensor.base import TensorBase
from common.tensor.view_families import family_of


def _strided(offset: Any, shape: Any, strides: Any, size: Any, step: Any, start: Any) -> Any:
    return (offset + start, size, step) if lies_in_order(shape, strides) else None


def _apart(size: Any, step: Any) -> bool:
    """Whether no element is shown twice; said only of dimensions that lie inside one another."""
    covered = 1
    for s, n in sorted((s, n) for n, s in zip(size, step, strict=True) if n != 1):
        if s < covered:
            return False
        covered = s * n
    return True


def _array(x: np.ndarray, size: Any, step: Any, start: Any) -> np.ndarray:
    flat = np.ascontiguousarray(x).reshape(-1)[start:]
    steps = tuple(s * x.itemsize for s in step)
    writeable = bool(flat.flags.writeable) and _apart(size, step)
    return np.lib.stride_tricks.as_strided(flat, tuple(size), steps, writeable=writeable)


def _places(size: Any, step: Any, start: Any) -> Any:
    """Positions in flat memory, of the shape `size`."""
    places: Any = start
    for i, (n, s) in enumerate(zip(size, step, strict=True)):
        places = along(n, len(size) - 1 - i) * s + places
    return places


def _rule(g: Any, x_shape: Any, size: Any, step: Any, start: Any) -> Any:
    """Each element's cotangent added where it lies, one after the other."""
    places = _places((*size, 1), (*step, 0), start)
    places = reshape(places, (numel(size),))
    if not isinstance(g, TensorBase):
        places = places.payload  # what rules are given, they return
    flat = index_put_zeros(reshape(g, (numel(size),)), (places,), (numel(x_shape),), 0, False)
    return reshape(flat, x_shape)


as_strided_: Op = view(
    "as_strided", _strided, _array, (_rule,),
    samples=join(one(7, size=(3, 2), step=(2, 1), start=1), one(3, 4, size=(2, 2, 2), step=(1, 1, 4), start=0),
                 one(2, 3, size=(), step=(), start=4)),
    doc="Elements of memory in C order, by sizes, steps and the position of the first.", node_name="AsStrided",
)  # fmt: skip


def _place(x: Any, base: Any) -> tuple[Any, bool]:
    """Where a view begins in the memory of the tensor that it shows, and whether its elements lie there in C order."""
    if base is x:
        return 0, True
    if isinstance(x.payload, np.ndarray):
        return x.storage_offset() - base.storage_offset(), bool(x.payload.flags.c_contiguous)
    _, shown, steps = family_of(x)
    place = placed(shown.shape, path_along(steps, shown)) if shown is base else None
    if place is None:
        raise ArgumentError("as_strided(): a trace does not know where this view begins in memory; clone it first")
    return place[0], lies_in_order(*place[1:])


def _of_base(op: str, x: Any, size: Any, stride: Any, storage_offset: Any) -> tuple[Any, dict[str, Any]]:
    """The tensor whose memory a view shows, and the attributes of the op on it.

    That is `x` itself, which is differentiated, unless the view shows more of the memory than `x` does.
    """
    sizes, steps = integers(size, op, "size"), integers(stride, op, "stride")
    if len(sizes) != len(steps):
        raise ShapeError(f"mismatch in length of strides and shape: {list(steps)} and {list(sizes)}")
    if any(type(n) is int and n < 0 for n in sizes):
        raise ShapeError(f"Trying to create tensor with negative dimension: {list(sizes)}")
    if any(type(n) is int and n < 0 for n in steps):
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    base = getattr(x, "_base", None)
    base = x if base is None else base
    own, in_order = _place(x, base)
    start = own if storage_offset is None else integer(storage_offset, op, "storage_offset")
    last = start
    for n, s in zip(sizes, steps, strict=True):
        last = last + (n - 1) * s
    if numel(sizes) != 0 and (start < 0 or last >= numel(base.shape)):
        raise ShapeError(
            f"setStorage: sizes {list(sizes)}, strides {list(steps)}, storage offset {start} are out of bounds for "
            f"storage of {numel(base.shape)} elements; the result can access memory outside of `tensor`"
        )
    if in_order and start >= own and last - own < numel(x.shape):
        return x, {"size": sizes, "step": steps, "start": start - own}
    return base, {"size": sizes, "step": steps, "start": start}


def as_strided(x: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view of a tensor's memory by sizes and strides; of a view, of the tensor whose memory it shows.

    There are no storages: what does not lie in C order is copied first, and a compiled function sees the elements of
    its arguments in C order, not the memory around them.

    Parameters
    ----------
    x : (...)
    size : sizes of the result.
    stride : steps in elements, of each dimension.
    storage_offset : position of the first element; that of `x` by default.

    Returns
    -------
    tensor : where elements are shown more than once it cannot be written; their gradients are added.

    Raises
    ------
    ShapeError : elements beyond the memory, or sizes and strides of different number.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.as_strided(tw.arange(6), (2, 3), (1, 2))
    tensor([[0, 2, 4],
            [1, 3, 5]])
    """
    base, attrs = _of_base("as_strided", x, size, stride, storage_offset)
    return as_strided_(base, **attrs)


def as_strided_copy(x: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of what `as_strided` shows.

    Parameters
    ----------
    x, size, stride, storage_offset : see `as_strided`.
    """
    return clone(as_strided(x, size, stride, storage_offset))


def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of `x` with `src` in the place of what `as_strided` shows.

    Parameters
    ----------
    x : (...) in C order.
    src : of the shape `size`; converted to the dtype of `x`.
    size, stride, storage_offset : see `as_strided`.

    Raises
    ------
    ShapeError : `src` has another shape, or see `as_strided`.
    """
    x = clone(x)
    _, attrs = _of_base("as_strided_scatter", x, size, stride, storage_offset)
    return _replaced("as_strided_scatter", x, src, (("as_strided", tuple(attrs.items())),), attrs["size"])


def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of `x` with `src` on a diagonal.

    Parameters
    ----------
    x : (..., m, ..., n, ...)
    src : of the shape of ``diagonal(x, offset, dim1, dim2)``; converted to the dtype of `x`.
    offset, dim1, dim2 : see `diagonal`.

    Raises
    ------
    ShapeError : `src` has another shape.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.diagonal_scatter(tw.zeros(2, 2), tw.tensor([3.0, 4.0]))
    tensor([[3., 0.],
            [0., 4.]])
    """
    part = diagonal(x, offset, dim1, dim2)
    attrs = {"offset": integer(offset, "diagonal_scatter", "offset"), "dim1": dim1 % x.ndim, "dim2": dim2 % x.ndim}
    return _replaced("diagonal_scatter", x, src, (("diagonal", tuple(attrs.items())),), part.shape)


def _replaced(op: str, x: Any, src: Any, path: Any, shape: Any) -> Any:
    if len(src.shape) != len(shape) or any(m != n for m, n in zip(src.shape, shape, strict=True)):
        raise ShapeError(
            f"{op}(): expected src to have a size equal to the view of self: src is {list(src.shape)}, the view "
            f"{list(shape)}"
        )
    return view_set(x, of_dtype(src, x.dtype), path=path)


__all__ = ["as_strided", "as_strided_copy", "as_strided_scatter", "diagonal_scatter"]
