"""Cutting a tensor into parts along a dimension: all parts are views, and their gradients are joined again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dtypes import int64
from common.core.errors import AllocationError, ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.core.int_arguments import integer, integers, normalize_dim
from common.core.locks import make_lock
from common.core.op import Op
from common.ops._define import composite
from common.ops._samples import one
from common.ops.shape.cat import cat, stack
from common.ops.shape.slices import select_, slice_, unslice
from common.ops.shape.view import unsqueeze
from common.tensor.base import TensorBase
from common.tensor.view_families import make_only

#: Parts of one call: more tensors take minutes to make, and gigabytes.
MOST_PARTS = 1 << 20

_made: dict[tuple[str, int], Op] = {}
_lock = make_lock()


def _part(x: Any, dim: int, start: Any, size: Any) -> Any:
    n = len(x.shape)
    starts = tuple(start if i == dim else 0 for i in range(n))
    sizes = tuple(size if i == dim else extent for i, extent in enumerate(x.shape))
    return slice_(x, starts=starts, sizes=sizes, steps=(1,) * n)


def _split(x: Any, *, dim: int, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(_part(x, dim, start, size))
        start = start + size
    return tuple(parts)


def _split_rule(g: Any, x_shape: Any, dim: int, sizes: tuple[Any, ...]) -> Any:
    """The cotangents one after the other; where parts have none, each of the others in its place among zeros."""
    if all(part is not None for part in g):
        return cat(g, dim)
    total, start = None, 0
    for part, size in zip(g, sizes, strict=True):
        if part is not None:
            starts = tuple(start if i == dim else 0 for i in range(len(x_shape)))
            placed = unslice(part, shape=x_shape, starts=starts, sizes=part.shape, steps=(1,) * len(x_shape))
            total = placed if total is None else total + placed
        start = start + size
    return total


def _unbind(x: Any, *, dim: int, count: int) -> tuple[Any, ...]:
    n = len(x.shape)
    rest = tuple(i for i in range(n) if i != dim)
    sizes = tuple(1 if i == dim else extent for i, extent in enumerate(x.shape))

    def part(at: int) -> Any:
        starts = tuple(at if i == dim else 0 for i in range(n))
        return select_(x, starts=starts, sizes=sizes, steps=(1,) * n, dims=rest)

    return tuple(map(part, range(count)))


def _unbind_rule(g: Any, x_shape: Any, dim: int, count: int) -> Any:
    if all(part is not None for part in g):
        return stack(g, dim)
    return _split_rule([p if p is None else unsqueeze(p, dim) for p in g], x_shape, dim, (1,) * count)


def op_of(name: str, count: int) -> Op:
    """The op for one number of parts: an op has a fixed number of results."""
    with _lock:
        if (name, count) not in _made:
            forward, rule, attrs, doc = _KINDS[name]
            _made[name, count] = composite(
                f"{name}{count}", forward, (rule,), inputs=("x",), nout=count, doc=doc,
                node_name=name.capitalize().removesuffix("s"), parts=name if name == "slices" else "",
                samples=one(2, count, **attrs(count)),
            )  # fmt: skip
    return _made[name, count]


_KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[int], dict[str, Any]], str]] = {
    "split": (_split, _split_rule, lambda n: {"dim": 1, "sizes": (1,) * n},
              "Parts of given sizes along a dimension. The gradients are joined."),
    "slices": (_split, _split_rule, lambda n: {"dim": 1, "sizes": (1,) * n},
               "As split; but each part may be written where a tape records. The gradients are joined."),
    "unbind": (_unbind, _unbind_rule, lambda n: {"dim": 1, "count": n},
               "The slices along a dimension. The gradients are stacked."),
}  # fmt: skip


def _cut(x: Any, dim: int, sizes: tuple[Any, ...], op: str = "split") -> tuple[Any, ...]:
    if len(sizes) < 2:  # an op of one result does not return a tuple
        return _only(_split(x, dim=dim, sizes=sizes), op)
    parts: tuple[Any, ...] = op_of(op, len(sizes))(x, dim=dim, sizes=sizes)
    return parts


def _only(parts: tuple[Any, ...], op: str) -> tuple[Any, ...]:
    """One part, or none, is no more to be written than one of several."""
    for part in parts if op != "slices" else ():
        if isinstance(part, TensorBase):
            make_only(part)
    return parts


def _pieces(extent: Any, size: Any) -> tuple[Any, ...]:
    """Sizes of the parts of `size` elements; the last one has the rest. In a trace their number is a guard."""
    count = _counted("split", int((extent + size - 1) // size))
    return (*([size] * (count - 1)), extent - (count - 1) * size) if count else (extent,)


def _counted(op: str, count: int) -> int:
    """How many parts there will be, which is data: a tensor each.

    Raises
    ------
    AllocationError : more than `MOST_PARTS`.
    """
    if count > MOST_PARTS:
        raise AllocationError(f"{op}(): {count} parts would be as many tensors, of which there can be {MOST_PARTS}; "
                              "take parts of the result of a reshape, or select them one by one")  # fmt: skip
    return count


def _axis(x: Any, dim: Any, op: str) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{op} expects at least a 1-dimensional tensor")
    return normalize_dim(dim, x.ndim, op)


@accept_numpy_names
def split(x: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts of `x` along `dim`, as views.

    Parameters
    ----------
    x : (..., n, ...)
    split_size_or_sections : elements per part, where the last part may have fewer; or a list of sizes that sum to n.
    dim : the dimension.

    Raises
    ------
    ShapeError : a negative size, sizes that do not sum to n, or a 0-d tensor.
    ArgumentError : sizes that are no ints.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.split(tw.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    >>> [part.tolist() for part in tw.split(tw.arange(5), [1, 4])]
    [[0], [1, 2, 3, 4]]
    """
    axis = _axis(x, dim, "split")
    extent = x.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = integers(split_size_or_sections, "split", "split_sizes")
        if any(size < 0 for size in sizes):
            raise ShapeError(f"split_with_sizes expects split_sizes have only non-negative entries, got {list(sizes)}")
        if sum(sizes) != extent:
            raise ShapeError(
                f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at dimension "
                f"{axis}), but got split_sizes={list(sizes)}"
            )
        return _cut(x, axis, sizes)
    size = integer(split_size_or_sections, "split", "split_size")
    if size < 0:
        raise ShapeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0:
        if extent != 0:
            raise ShapeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")
        return _cut(x, axis, (extent,))
    return _cut(x, axis, _pieces(extent, size))


@accept_numpy_names
def chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """At most `chunks` parts of equal size along `dim`; the last one may be smaller.

    Parameters
    ----------
    x : (..., n, ...)
    chunks : how many; fewer come back where ``ceil(n / chunks)`` elements per part fill fewer.
    dim : the dimension.

    Raises
    ------
    ArgumentError : `chunks` is no positive int.
    ShapeError : a 0-d tensor.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.chunk(tw.arange(5), 4)]
    [[0, 1], [2, 3], [4]]
    """
    axis = _axis(x, dim, "chunk")
    count = integer(chunks, "chunk", "chunks")
    if count <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {count}")
    extent = x.shape[axis]
    if extent == 0:
        return _cut(x, axis, (0,) * _counted("chunk", int(count)))
    return _cut(x, axis, _pieces(extent, (extent + count - 1) // count))


def parts_of(name: str, *given: Any) -> Any:
    """Indices or a number of parts, which a call has given by one of its names: the others are None."""
    known = [x for x in given if x is not None]
    if len(known) != 1:
        raise ArgumentError(f"{name}() takes either indices or a number of sections, got {len(known)} of them")
    return known[0]


@accept_numpy_names
def tensor_split(
    x: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Any, ...]:
    """Parts along `dim`: so many, the first ones one larger where sizes differ; or between indices.

    Parameters
    ----------
    x : (..., n, ...)
    indices_or_sections : number of parts; or the indices at which a new part begins, as for slices. Either may be a
        tensor of int64, outside a trace.
    dim : the dimension.
    indices, sections : PyTorch's names of the one and of the other.

    Raises
    ------
    ShapeError : a number of parts that is not positive, or a 0-d tensor.
    ArgumentError : neither an int nor a list of ints.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.tensor_split(tw.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    >>> [part.tolist() for part in tw.tensor_split(tw.arange(5), (1, 3))]
    [[0], [1, 2], [3, 4]]
    """
    axis = _axis(x, dim, "tensor_split")
    extent = x.shape[axis]
    indices_or_sections = parts_of("tensor_split", indices_or_sections, indices, sections)
    if isinstance(indices_or_sections, (TensorBase, np.ndarray)) and indices_or_sections.ndim:
        indices_or_sections = _listed(indices_or_sections)
    if isinstance(indices_or_sections, (tuple, list)):
        borders = integers(indices_or_sections, "tensor_split", "indices")
        starts = [0, *(_border(i, extent) for i in borders)]
        ends = [*starts[1:], extent]
        return tuple(
            _part(x, axis, a, b - a if b > a else 0) for a, b in zip(starts, ends, strict=True)
        )
    count = _counted("tensor_split", int(integer(indices_or_sections, "tensor_split", "sections")))
    if count <= 0:
        raise ShapeError(f"number of sections must be larger than 0, got {count}")
    # part i of k has (n + k - 1 - i) // k elements
    return _cut(x, axis, tuple((extent + (count - 1 - i)) // count for i in range(count)), "slices")


def _listed(x: Any) -> Any:
    """Indices that came as a tensor: their number decides how many parts there are."""
    if x.dtype != int64:
        raise DTypeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {x.dtype}")
    if x.ndim > 1:
        raise ShapeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                         f"tensor, but got a tensor with {x.ndim} dims")  # fmt: skip
    return x.tolist()


def _border(index: Any, extent: Any) -> Any:
    """A slice's bound inside [0, extent]."""
    if index < 0:
        index = index + extent
        return 0 if index < 0 else index
    return extent if index > extent else index


@accept_numpy_names
def unbind(x: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices of `x` along `dim`, without that dimension, as views.

    Parameters
    ----------
    x : (..., n, ...); inside a trace n specialises the program.
    dim : the dimension.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> [row.tolist() for row in tw.unbind(tw.eye(2))]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if x.ndim == 0:
        raise IndexRangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = normalize_dim(dim, x.ndim, "unbind")
    count = _counted("unbind", int(x.shape[axis]))
    if count < 2:
        return _only(_unbind(x, dim=axis, count=count), "unbind")
    parts: tuple[Any, ...] = op_of("unbind", count)(x, dim=axis, count=count)
    return parts


__all__ = ["chunk", "split", "tensor_split", "unbind"]
