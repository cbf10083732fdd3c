"""Several tensors together: side by side, as a grid, in one shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.shapes import broadcast_shapes
from common.core.unbroadcast import reshaped
from common.ops.shape.cat import cat
from common.ops.shape.view import expand, reshape


def each(tensors: Sequence[Any]) -> Sequence[Any]:
    """Tensors given one by one, or as one list."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All tensors in the shape to which they broadcast, as views.

    Parameters
    ----------
    tensors : (...) each, one by one or as a list.

    Raises
    ------
    ShapeError : they do not broadcast.
    """
    xs = each(tensors)
    shape = broadcast_shapes(*(x.shape for x in xs), op="broadcast_tensors")
    return tuple(expand(x, shape) for x in xs)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """The coordinates of a grid: of all tensors one, expanded to as many dimensions as there are tensors; views.

    Parameters
    ----------
    tensors : (n_i) or () each, one by one or as a list.
    indexing : "ij", where the first tensor varies along the first dimension; "xy", where it does along the second.

    Raises
    ------
    ArgumentError : no tensors, or another indexing.
    ShapeError : more than one dimension.
    DTypeError : different dtypes.

    Examples
    --------
    >>> import dynamic as tw
    >>> [x.tolist() for x in tw.meshgrid(tw.arange(2), tw.arange(3))]
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    """
    xs = each(tensors)
    if not xs:
        raise ArgumentError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing!r}')
    for x in xs:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape {tuple(x.shape)}")
        if x.dtype != xs[0].dtype:
            raise DTypeError(f"meshgrid expects all tensors to have the same dtype, got {xs[0].dtype} and {x.dtype}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    sizes = [x.shape[0] if x.ndim else 1 for x in xs]
    shape = tuple(sizes[i] for i in order)
    places = [order.index(i) for i in range(len(xs))]
    return tuple(
        expand(reshape(x, tuple(sizes[i] if axis == places[i] else 1 for axis in range(len(xs)))), shape)
        for i, x in enumerate(xs)
    )


def _at_least(x: Any, ndim: int) -> Any:
    """NumPy's places of new dimensions: (n) becomes (1, n) and (1, n, 1), and (m, n) becomes (m, n, 1)."""
    if x.ndim >= ndim:
        return x
    shape, node_name = x.shape, "UnsqueezeBackward0" if x.ndim else "ViewBackward0"
    if ndim == 3:
        return reshaped(x, {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[x.ndim], node_name)
    return reshaped(x, (*[1] * (ndim - x.ndim), *shape), node_name)


def _all_at_least(tensors: Any, ndim: int) -> Any:
    xs = tuple(_at_least(x, ndim) for x in each(tensors))
    return xs[0] if len(tensors) == 1 and each(tensors) is tensors else xs


def atleast_1d(*tensors: Any) -> Any:
    """Views with at least one dimension: () becomes (1). One tensor for one, a tuple for several.

    Parameters
    ----------
    tensors : (...) each, one by one or as a list.
    """
    return _all_at_least(tensors, 1)


@sections_of(atleast_1d)
def atleast_2d(*tensors: Any) -> Any:
    """Views with at least two dimensions: (n) becomes (1, n). One tensor for one, a tuple for several."""
    return _all_at_least(tensors, 2)


@sections_of(atleast_1d)
def atleast_3d(*tensors: Any) -> Any:
    """Views with at least three dimensions: (m, n) becomes (m, n, 1). One tensor for one, a tuple for several."""
    return _all_at_least(tensors, 3)


def hstack(tensors: Sequence[Any]) -> Any:
    """Tensors side by side: along the second dimension, or the first of vectors. Empty vectors do not count.

    Parameters
    ----------
    tensors : sequence of (m, n_i, ...) or (n_i).

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    xs = _some(tensors, 1, "hstack")
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Tensors on top of each other; vectors are rows.

    Parameters
    ----------
    tensors : sequence of (m_i, n, ...) or (n).

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    return cat(_some(tensors, 2, "vstack"), 0)


def dstack(tensors: Sequence[Any]) -> Any:
    """Tensors one behind the other, along the third dimension.

    Parameters
    ----------
    tensors : sequence of (m, n, k_i, ...), (m, n) or (n).

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    return cat(_some(tensors, 3, "dstack"), 2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Tensors side by side; vectors are columns.

    Parameters
    ----------
    tensors : sequence of (m, n_i) or (m).

    Raises
    ------
    ArgumentError : no tensors.
    ShapeError : sizes differ in another dimension.
    """
    xs = [reshape(x, (-1, 1) if x.ndim else (1, 1)) if x.ndim < 2 else x for x in _some(tensors, 0, "column_stack")]
    return cat(xs, 1)


def _some(tensors: Sequence[Any], ndim: int, op: str) -> list[Any]:
    if not tensors:
        raise ArgumentError(f"{op}(): expects a non-empty TensorList")
    return [_at_least(x, ndim) for x in tensors]


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "column_stack", "dstack", "hstack", "meshgrid",
    "vstack",
]  # fmt: skip
