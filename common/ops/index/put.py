"""Functions that read and write at indices: take, index_add, index_copy, index_fill, index_put, put, scatter.

The writing ones are an op of `common.ops.index.coordinates` and its operands; `common.methods.in_place_index` applies
the same op in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.dispatch import Attrs, apply, known_attrs
from common.core.errors import ArgumentError, IndexRangeError, ShapeError
from common.core.int_arguments import normalize_dim
from common.core.op import Op
from common.core.shapes import broadcast_shapes
from common.core.sizes import same
from common.core.spec import numel
from common.core.unbroadcast import reshaped
from common.ops.index.advanced_keys import along, integers, neighbours, take_apart
from common.ops.index.coordinates import family, index_get
from common.ops.index.gather import gather, of_rank, require_index, row, whole_index
from common.ops.index.written_values import at_indices, number_like, same_dtype
from common.ops.math.compare import lt, where
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, reshape
from common.tensor.base import TensorBase


class Put(NamedTuple):
    """A write: x becomes ``op(x, *operands, dim=dim, wrap=wrap)``."""

    op: Op
    operands: tuple[Any, ...]
    dim: int
    wrap: bool
    node_name: str

    def on(self, x: Any) -> Any:
        """The new tensor."""
        return apply(self.op, (x, *self.operands), self.attrs)

    @property
    def attrs(self) -> Attrs:
        """The attributes of the op."""
        return known_attrs(self.node_name, dim=self.dim, wrap=self.wrap)


def take(x: Any, index: Any) -> Any:
    """Elements of `x`, seen as one row in C order.

    Parameters
    ----------
    x : (...)
    index : (...) int64 or int32; negative ones count from the end.

    Returns
    -------
    tensor : of the shape of `index`.

    Raises
    ------
    IndexRangeError : an index outside the elements.
    DTypeError : `index` is not int64 or int32.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.take(tw.tensor([[1.0, 2.0], [3.0, 4.0]]), tw.tensor([0, -1]))
    tensor([1., 4.])
    """
    require_index("take", index)
    return index_get(reshape(x, -1), (index,), 0)


def take_along_dim(x: Any, index: Any, dim: int | None = None) -> Any:
    """Elements of `x` at `indices` along a dimension; what argmax or argsort gave selects what they found.

    Parameters
    ----------
    x : (...)
    index : (...) integers, of the rank of `x`; broadcast with it except in `dim`. Negative ones count from the end.
    dim : the dimension; None takes both as one row.

    Raises
    ------
    IndexRangeError : an index outside the dimension.
    DTypeError : `indices` are no integers.
    ShapeError : the ranks differ, or the shapes do not broadcast.
    IndexRangeError : a dimension of a tensor that has none.
    """
    index = whole_index("take_along_dim", index)
    if dim is None:
        x, index = reshape(x, -1), reshape(index, -1)
        return gather(x, 0, _wrapped(index, x.shape[0]))
    if x.ndim == 0:
        raise IndexRangeError(f"take_along_dim(): Dimension specified as {dim} but tensor has no dimensions")
    if x.ndim != index.ndim:
        raise ShapeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{x.ndim} dimensions for input, and {index.ndim} dimensions for indices"
        )
    axis = normalize_dim(dim, x.ndim, "take_along_dim")
    shapes = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in (x, index)]
    both = broadcast_shapes(*shapes, op="take_along_dim()")
    x, index = (expand(t, (*both[:axis], t.shape[axis], *both[axis:])) for t in (x, index))
    return gather(x, axis, _wrapped(index, x.shape[axis]))


def _wrapped(index: Any, extent: Any) -> Any:
    """Negative indices count from the end."""
    return where(lt(index, 0), index + extent, index)


# ------------------------------------------------------------------ slices along a dimension


def index_add(x: Any, dim: int, index: Any, src: Any, *, alpha: float = 1) -> Any:
    """`x` with ``alpha * src`` added to its slices at `index`, one slice after the other.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    index : (k,) int64 or int32.
    src : (..., k, ...), of the dtype of `x`.
    alpha : factor.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32, or source has another dtype than x.
    ShapeError : `src` does not have the sizes of `x` and `index`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.index_add(tw.zeros(3), 0, tw.tensor([0, 2, 2]), tw.ones(3))
    tensor([1., 0., 2.])
    """
    if x.ndim == 0:
        return reshaped(index_add(row(x), dim, index, row(src), alpha=alpha), (), "IndexAddBackward0")
    return put_add(x, dim, index, src, alpha).on(x)


def put_add(x: Any, dim: int, index: Any, src: Any, alpha: float) -> Put:
    """The write of `index_add`."""
    axis, index = check_slices("index_add", x, dim, index, src)
    if isinstance(alpha, float) and x.dtype.kind != "f":
        raise ArgumentError(
            f"index_add(): For integral input tensors, argument alpha must not be a floating point number, got {alpha}"
        )
    return Put(family(1)["index_add"], (src if alpha == 1 else src * alpha, index), axis, False, "IndexAddBackward0")


def index_copy(x: Any, dim: int, index: Any, src: Any) -> Any:
    """`x` with `src` as its slices at `index`; of several for one slice the last one stays.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    index : (k,) int64 or int32.
    src : (..., k, ...), of the dtype of `x`.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32, or source has another dtype than x.
    ShapeError : `src` does not have the sizes of `x` and `index`.
    """
    if x.ndim == 0:
        return reshaped(index_copy(row(x), dim, index, row(src)), (), "IndexCopyBackward0")
    return put_copy(x, dim, index, src).on(x)


def put_copy(x: Any, dim: int, index: Any, src: Any) -> Put:
    """The write of `index_copy`; a number alone counts as one slice of a vector."""
    src = row(src) if src.ndim == 0 and x.ndim == 1 else src
    axis, index = check_slices("index_copy", x, dim, index, src)
    return Put(family(1)["index_set"], (src, index), axis, False, "IndexCopyBackward0")


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    """`x` with a number in its slices at `index`.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    index : (k,) int64 or int32; negative ones count from the end.
    value : number or 0-d tensor, converted to the dtype of `x`.

    Raises
    ------
    IndexRangeError : an index outside the dimension.
    DTypeError : `index` is not int64 or int32, or the value is a float that the integers of `x` cannot hold.
    ShapeError : `value` has dimensions, or `index` has more than one.
    """
    if x.ndim == 0:
        return reshaped(index_fill(row(x), dim, index, value), (), "IndexFillBackward0")
    return put_fill(x, dim, index, value).on(x)


def put_fill(x: Any, dim: int, index: Any, value: Any) -> Put:
    """The write of `index_fill`."""
    require_index("index_fill", index)
    axis, index = normalize_dim(dim, x.ndim, "index_fill"), _row("index_fill", index)
    node_name = f"IndexFillBackward{int(hasattr(value, 'ndim'))}"
    return Put(family(1)["index_set"], (number_like(value, x, "index_fill"), index), axis, True, node_name)


def check_slices(op: str, x: Any, dim: int, index: Any, src: Any) -> tuple[int, Any]:
    """The dimension and the index, after what `src` must be has been checked."""
    require_index(op, index)
    axis, index = normalize_dim(dim, x.ndim, op), _row(op, index)
    wanted = (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
    if len(src.shape) != len(wanted) or any(
        not same(m, n) and m != n for m, n in zip(src.shape, wanted, strict=True)
    ):
        raise ShapeError(
            f"{op}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(x.shape)} source.shape = {list(src.shape)} for {index.shape[0]} indices"
        )
    same_dtype(op, x, src)
    return axis, index


def _row(op: str, index: Any) -> Any:
    if index.ndim > 1:
        raise ShapeError(f"{op}(): Index is supposed to be a vector, got shape {list(index.shape)}")
    return index if index.ndim == 1 else reshape(index, -1)


# ------------------------------------------------------------------ places


def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """`x` with `values` at ``x[indices]``.

    Parameters
    ----------
    x : (...)
    indices : tensors that index the leading dimensions as in ``x[indices]``, None for a whole one.
    values : broadcasts to the shape of ``x[indices]``, of the dtype of `x`.
    accumulate : add the values, one after the other in C order; else the last one for a place stays.

    Raises
    ------
    IndexRangeError : an index outside its dimension.
    DTypeError : values have another dtype than x.
    ShapeError : values do not broadcast.
    TraceError : a mask, in a trace.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.index_put(tw.zeros(3), (tw.tensor([0, 2, 2]),), tw.ones(1), accumulate=True)
    tensor([1., 0., 2.])
    """
    return put_at(x, indices, values, accumulate).on(x)


def put_at(x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Put:
    """The write of `index_put`."""
    same_dtype("index_put", x, values)
    selection = take_apart(x.shape, tuple(slice(None) if i is None else i for i in indices))
    if not selection.placed:
        raise ArgumentError("index_put(): at least one of indices must be a tensor")
    found, dim = neighbours(x.shape, integers(x, selection.placed))
    op = family(len(found))["index_add" if accumulate else "index_set"]
    return Put(op, (at_indices(x.shape, found, dim, values), *found), dim, True, "IndexPutBackward0")


def put(x: Any, index: Any, src: Any, accumulate: bool = False) -> Any:
    """`x` with the elements of `src` at `index`, `x` seen as one row in C order.

    Parameters
    ----------
    x : (...)
    index : (...) int64 or int32; negative ones count from the end.
    src : as many elements as `index`, of the dtype of `x`.
    accumulate : add the elements, one after the other in C order; else the last one for a place stays.

    Raises
    ------
    IndexRangeError : an index outside the elements.
    DTypeError : `index` is not int64 or int32, or source has another dtype than x.
    ShapeError : `index` and source have different numbers of elements.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.put(tw.zeros(2, 2), tw.tensor([1, -1]), tw.tensor([3.0, 4.0]))
    tensor([[0., 3.],
            [0., 4.]])
    """
    require_index("put", index)
    same_dtype("put", x, src)
    given, wanted = numel(src.shape), numel(index.shape)
    if not same(given, wanted) and given != wanted:
        raise ShapeError(
            "put(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{given}, index.numel() = {wanted}"
        )
    op = family(1)["index_add" if accumulate else "index_set"]
    write = Put(op, (reshape(src, -1), reshape(index, -1)), 0, True, "PutBackward0")
    return reshaped(write.on(reshape(x, -1)), tuple(x.shape), "PutBackward0")


def put_scattered(x: Any, dim: int, index: Any, src: Any, value: Any) -> Put:
    """The write of `scatter`."""
    require_index("scatter", index)
    if (src is None) is (value is None):
        raise ArgumentError("scatter(): exactly one of 'src' and 'value' must be given")
    axis, index = normalize_dim(dim, x.ndim, "scatter"), of_rank(index, x)
    number = value is not None or not isinstance(src, (TensorBase, np.ndarray))
    if number:
        check_scattered("scatter", x, axis, index)
        v = number_like(src if value is None else value, x, "scatter")
    else:
        same_dtype("scatter", x, src)
        v = check_scattered("scatter", x, axis, index, src)
    operands, node_name = (v, *all_indices(x, axis, index)), f"ScatterBackward{int(number)}"
    return Put(family(x.ndim)["index_set"], operands, 0, False, node_name)


def check_scattered(op: str, x: Any, axis: int, index: Any, src: Any = None) -> Any:
    """The part of `src` that belongs to `index`, which selects along one dimension of x.

    Raises
    ------
    ShapeError : the ranks differ, or `index` is larger than `x` or `src`.
    """
    if x.ndim != index.ndim:
        raise ShapeError(f"{op}(): Index tensor must have the same number of dimensions as self tensor")
    for d, n in enumerate(index.shape):
        if d != axis and not same(n, x.shape[d]) and n > x.shape[d]:
            raise ShapeError(
                f"{op}(): expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                f"dimension {axis}"
            )
    if src is None:
        return None
    src = row(src) if x.ndim == 1 else src
    if x.ndim != src.ndim:
        raise ShapeError(f"{op}(): Index tensor must have the same number of dimensions as src tensor")
    if any(not same(m, n) and m > n for m, n in zip(index.shape, src.shape, strict=True)):
        raise ShapeError(f"{op}(): expected index {list(index.shape)} to be no larger than src {list(src.shape)}")
    for d, n in enumerate(index.shape):
        src = src if same(n, src.shape[d]) else narrow(src, d, 0, n)
    return src


def all_indices(x: Any, axis: int, index: Any) -> list[Any]:
    """Indices of all dimensions: one along the axis, the others count."""
    return [index if d == axis else along(index.shape[d], x.ndim - 1 - d) for d in range(x.ndim)]


__all__ = [
    "index_add", "index_copy", "index_fill", "index_put", "put", "take", "take_along_dim",
]  # fmt: skip
