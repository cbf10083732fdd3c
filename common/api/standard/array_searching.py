"""Sorting, searching, sets and positions of the array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.api.standard.array_elementwise import promoted
from common.core.errors import ArgumentError
from common.core.int_arguments import normalize_dim
from common.ops import functional
from common.tensor.create import operand

__all__ = ["argsort", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
           "unique_counts", "unique_inverse", "unique_values"]  # fmt: skip


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Positions that put elements in order.

    Parameters
    ----------
    x : (..., n).
    axis : along which.
    descending : the largest first.
    stable : equal elements stay in their order, which they always do.
    """
    return functional.argsort(operand(x, x), axis, descending, True)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Elements in order; parameters as for `argsort`."""
    return functional.sort(operand(x, x), axis, descending, True)[0]


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Whether each element is one of others.

    Parameters
    ----------
    x1 : (...) elements.
    x2 : the others.
    invert : whether it is none of them.
    """
    return functional.isin(*promoted(x1, x2), invert=invert)


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """Positions of elements that are not 0: an (n) tensor per dimension.

    Raises
    ------
    ArgumentError : no dimensions.
    """
    x = operand(x, x)
    if not len(x.shape):
        raise ArgumentError("nonzero(): the array has no dimensions")
    return tuple(functional.nonzero(x, as_tuple=True))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where elements would have to be inserted to keep an order.

    Parameters
    ----------
    x1 : (n) in order, or put in order by `sorter`.
    x2 : (...) elements.
    side : "left" before equal ones, or "right".
    sorter : (n) positions.
    """
    x1, x2 = promoted(x1, x2)
    return functional.searchsorted(x1, x2, side=side, sorter=sorter)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Parts of a tensor.

    Parameters
    ----------
    x : (..., n, ...).
    indices : (m) positions; those below 0 count from the end.
    axis : along which; may be left out if there is one dimension.

    Raises
    ------
    ArgumentError : `axis` is left out, and there are several.
    """
    x = operand(x)
    if axis is None and len(x.shape) != 1:
        raise ArgumentError(f"take(): axis may be left out for one dimension only, not for {len(x.shape)}")
    before = normalize_dim(0 if axis is None else axis, len(x.shape), "axis")
    return x[(*[slice(None)] * before, operand(indices))]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Elements at positions along an axis.

    Parameters
    ----------
    x : (..., n, ...).
    indices : (..., m, ...) of as many dimensions.
    axis : along which.
    """
    return functional.take_along_dim(operand(x), operand(indices), axis)


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """Different elements in order, where each is first, which of them each element is, and how often they occur.

    Parameters
    ----------
    x : (...); every NaN is an element of its own.
    """
    x = operand(x, x)
    values, inverse, counts = functional.unique(x, return_inverse=True, return_counts=True)
    order = functional.argsort(functional.reshape(inverse, (-1,)), 0, False, True)
    first = functional.index_select(order, 0, functional.sub(functional.cumsum(counts, 0), counts))
    return UniqueAll(values, first, functional.reshape(inverse, x.shape), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Different elements in order, and how often they occur."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Different elements in order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """Different elements in order."""
    return unique_all(x).values
