"""Elements in another order: reversed, rolled, rotated; and dimensions in another order by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.arguments import integers
from common.errors import ShapeError
from common.op import Op
from common.ops._define import composite, view
from common.ops._samples import join, one
from common.ops.cast import clone
from common.ops.reduce import normalize_dim
from common.ops.view import permute_, transpose


def _reverse(offset: Any, shape: Any, strides: Any, dims: tuple[int, ...]) -> Any:
    for d in dims:
        if not (isinstance(shape[d], int) and shape[d] == 0):
            offset = offset + (shape[d] - 1) * strides[d]
    return offset, shape, tuple(-s if d in dims else s for d, s in enumerate(strides))


def _reverse_array(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    backwards = slice(None, None, -1)
    found: np.ndarray = x[(*(backwards if d in dims else slice(None) for d in range(x.ndim)), ...)]
    return found


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
    (3, 4, 2)
    """
    begin, end = integers(source, "movedim", "source"), integers(destination, "movedim", "destination")
    if len(begin) != len(end):
        raise ShapeError(
            f"movedim(): Invalid source or destination dims: source ({list(begin)}) should contain the same number of "
            f"dims as destination ({list(end)})"
        )
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


__all__ = ["flip", "fliplr", "flipud", "moveaxis", "movedim", "swapaxes", "swapdims"]
