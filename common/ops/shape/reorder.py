"""Elements in another order: reversed, rolled, rotated; and dimensions in another order by name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from common.core.errors import IndexRangeError, ShapeError
from common.core.int_arguments import integer, integers, normalize_dim
from common.core.op import Op
from common.ops._define import composite, view
from common.ops._samples import join, one
from common.ops.math.cast import clone
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import permute_, reshape, transpose


def _reverse(offset: Any, shape: Any, strides: Any, dims: tuple[int, ...]) -> Any:
    for d in dims:
        if not (isinstance(shape[d], int) and shape[d] == 0):
            offset = offset + (shape[d] - 1) * strides[d]
    return offset, shape, tuple(-s if d in dims else s for d, s in enumerate(strides))


def _reverse_array(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    found: np.ndarray = x[_backwards(x.ndim, dims)]
    return found


@lru_cache(maxsize=1024)
def _backwards(ndim: int, dims: tuple[int, ...]) -> tuple[Any, ...]:
    return (*(slice(None, None, -1) if d in dims else slice(None) for d in range(ndim)), ...)


reverse_: Op = view(
    "reverse", _reverse, _reverse_array, (lambda g, dims: reverse_(g, dims=dims),),
    samples=join(one(3, 4, dims=(1,)), one(2, 3, 4, dims=(0, 2)), one(2, dims=())),
    doc="Dimensions backwards, as a view.",
)  # fmt: skip

flip_: Op = composite(
    "flip", lambda x, *, dims: clone(reverse_(x, dims=dims)), (lambda g, dims: flip_(g, dims=dims),), inputs=("x",),
    samples=join(one(3, 4, dims=(1,)), one(2, 3, 4, dims=(0, 2))),
    doc="Dimensions backwards, in new memory.",
)  # fmt: skip


turned_: Op = composite(
    "rot90", lambda x, *, turns, a, b: transpose(flip_(x, dims=(b if turns == 1 else a,)), a, b),
    (lambda g, turns, a, b: turned_(g, turns=4 - turns, a=a, b=b),), inputs=("x",), node_name="Rot90",
    samples=join(one(3, 4, turns=1, a=0, b=1), one(2, 3, 4, turns=3, a=2, b=0)),
    doc="The plane of two dimensions turned by one or three right angles. d/dx: g turned back.",
)  # fmt: skip


def distinct_dims(dims: Any, ndim: int, op: str) -> tuple[int, ...]:
    """Non-negative dimensions, in the given order, each named once.

    Raises
    ------
    ShapeError : one is named twice.
    IndexRangeError : one does not exist.
    ArgumentError : something that is no int.
    """
    found = tuple(normalize_dim(d, ndim, op) for d in integers(dims, op, "dims"))
    for d in found:
        if found.count(d) > 1:
            raise ShapeError(f"{op}(): dim {d} appears multiple times in the list of dims")
    return found


def flip(x: Any, dims: Any, *more: int) -> Any:
    """`x` backwards along dimensions; a copy.

    Parameters
    ----------
    x : (...)
    dims, more : a tuple of dimensions, or one or several of them.

    Raises
    ------
    ShapeError : a dimension that is named twice.
    IndexRangeError : one that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.flip(tw.arange(4).reshape(2, 2), (0,))
    tensor([[2, 3],
            [0, 1]])
    """
    given = distinct_dims((dims, *more) if more else dims, x.ndim, "flip")
    return flip_(x, dims=tuple(sorted(given)) if x.ndim else ())


def fliplr(x: Any) -> Any:
    """`x` with its columns backwards; a copy.

    Parameters
    ----------
    x : (m, n, ...)

    Raises
    ------
    ShapeError : fewer than two dimensions.
    """
    if x.ndim < 2:
        raise ShapeError(f"fliplr(): Input must be >= 2-d, got {x.ndim}-d")
    return flip_(x, dims=(1,))


def flipud(x: Any) -> Any:
    """`x` with its rows backwards; a copy.

    Parameters
    ----------
    x : (n, ...)

    Raises
    ------
    ShapeError : a 0-d tensor.
    """
    if x.ndim < 1:
        raise ShapeError("flipud(): Input must be >= 1-d, got 0-d")
    return flip_(x, dims=(0,))


def _roll(x: Any, *, shifts: tuple[Any, ...], dims: tuple[int, ...]) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        n = x.shape[dim]
        if n != 0:
            by = shift if 0 <= shift < n else shift + n if -n <= shift < 0 else shift % n
            x = cat((narrow(x, dim, n - by, by), narrow(x, dim, 0, n - by)), dim)
    return x


roll_: Op = composite(
    "roll", _roll, (lambda g, shifts, dims: roll_(g, shifts=tuple(-s for s in shifts), dims=dims),), inputs=("x",),
    samples=join(one(3, 4, shifts=(1,), dims=(1,)), one(2, 3, 4, shifts=(-1, 5), dims=(0, 2))), reduce="rolled",
    doc="Dimensions turned by shifts: what leaves at one end comes in at the other.",
)  # fmt: skip


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    """`x` turned along dimensions: what leaves at the end comes in at the beginning; a copy.

    Parameters
    ----------
    x : (...)
    shifts : by how many places, one number or one per dimension; negative ones turn back.
    dims : dimensions, as many as shifts; by default the flattened `x` is turned.

    Raises
    ------
    ShapeError : not as many shifts as dimensions.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.roll(tw.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    by = integers(shifts, "roll", "shifts")
    where = () if dims is None else integers(dims, "roll", "dims")
    if not where and len(by) == 1:
        return reshape(roll_(reshape(x, -1), shifts=by, dims=(0,)), x.shape)
    if not by:
        raise ShapeError("roll(): `shifts` required")
    if len(by) != len(where):
        raise ShapeError(f"roll(): shifts and dimensions must align. shifts: {len(by)}, dims:{len(where)}")
    if x.ndim == 0:
        raise IndexRangeError(f"roll(): Dimension specified as {where[0]} but tensor has no dimensions")
    axes = tuple(normalize_dim(d, x.ndim, "roll") for d in where)
    return roll_(x, shifts=by, dims=axes)


def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """`x` turned by k times 90 degrees in the plane of two dimensions, from the first towards the second.

    Parameters
    ----------
    x : (..., m, ..., n, ...)
    k : how often; negative turns the other way.
    dims : two dimensions.

    Raises
    ------
    ShapeError : not two different dimensions.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.rot90(tw.arange(4).reshape(2, 2))
    tensor([[1, 3],
            [0, 2]])
    """
    plane = integers(dims, "rot90", "dims")
    if len(plane) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if x.ndim < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    a, b = (normalize_dim(d, x.ndim, "rot90") for d in plane)
    if a == b:
        raise ShapeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    turns = integer(k, "rot90", "k") % 4
    if turns == 0:
        return clone(x)
    if turns == 2:
        return flip_(x, dims=tuple(sorted((a, b))))
    return turned_(x, turns=turns, a=a, b=b)


def movedim(x: Any, source: Any, destination: Any) -> Any:
    """Dimensions `source` at the places `destination`, the others in their order; a view.

    Parameters
    ----------
    x : (...)
    source, destination : a dimension, or equally many.

    Raises
    ------
    ShapeError : not equally many, or one is named twice.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.movedim(tw.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    begin, end = integers(source, "movedim", "source"), integers(destination, "movedim", "destination")
    if len(begin) != len(end):
        raise ShapeError(
            f"movedim(): Invalid source or destination dims: source ({list(begin)} dims) should contain the same "
            f"number of dims as destination ({list(end)} dims)"
        )
    for name, dims in (("source", begin), ("destination", end)):
        if len({d % max(x.ndim, 1) for d in dims}) < len(dims):
            raise ShapeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    begin, end = distinct_dims(begin, x.ndim, "movedim"), distinct_dims(end, x.ndim, "movedim")
    if x.ndim == 0:
        return permute_(x, dims=())
    rest = iter(d for d in range(x.ndim) if d not in begin)
    where = dict(zip(end, begin, strict=True))
    return permute_(x, dims=tuple(where[i] if i in where else next(rest) for i in range(x.ndim)))


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """NumPy's name of `movedim`.

    Parameters
    ----------
    x : (...)
    source, destination : a dimension, or equally many.
    """
    return movedim(x, source, destination)


def swapaxes(x: Any, axis0: int, axis1: int) -> Any:
    """NumPy's name of `transpose`.

    Parameters
    ----------
    x : (...)
    axis0, axis1 : dimensions.
    """
    return transpose(x, axis0, axis1)


def swapdims(x: Any, dim0: int, dim1: int) -> Any:
    """Another name of `transpose`.

    Parameters
    ----------
    x : (...)
    dim0, dim1 : dimensions.
    """
    return transpose(x, dim0, dim1)


__all__ = ["flip", "fliplr", "flipud", "moveaxis", "movedim", "roll", "rot90", "swapaxes", "swapdims"]
