"""Distinct elements: results whose size depends on the data, so outside traces only."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import called, known_attrs
from common.core.errors import IndexRangeError, ShapeError
from common.core.int_arguments import normalize_dim
from common.core.spec import numel
from common.evaluate import kernels
from common.evaluate.specialise import run
from common.kernels.arrays.runs import runs_source
from common.ops.index.gather import take_
from common.ops.shape.view import reshape
from common.ops.sort.data_dependent import elements
from common.ops.sort.sorting import argsort_
from common.tensor.base import Tensor, TensorBase, wrap

_ASCENDING = known_attrs(None, descending=False)


def unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along `dim`.

    Parameters
    ----------
    x : (...)
    sorted : accepted; the result is always in order.
    return_inverse : return int64 positions in the result as well: for every element, or for every slice.
    return_counts : return int64 counts as well.
    dim : compare slices along this dimension instead of elements.

    Returns
    -------
    values, inverse, counts : a tensor, or a tuple with what was asked for. Gradients of values go to the first of equal
        elements.

    Raises
    ------
    TraceError : in a trace, which cannot know the size of the result.
    IndexRangeError : the dimension does not exist.
    ShapeError : slices along `dim` have no elements.

    Notes
    -----
    Each nan is distinct, as it equals nothing; -0 and +0 are equal, and the first of them stays.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.unique(tw.tensor([2, 1, 2]), return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    axis = None if dim is None else normalize_dim(dim, x.ndim, "unique")
    rows = _rows(x, axis, "unique")
    if rows.ndim == 1:
        order = run(argsort_, (np.ascontiguousarray(rows),), _ASCENDING)
    else:
        order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    return _distinct(x, axis, rows, order, return_inverse, return_counts, "Unique2" if axis is None else "UniqueDim")


def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first element of each run of equal neighbours, or the first slice along `dim`.

    Parameters
    ----------
    x : (...)
    return_inverse : return int64 numbers of the runs as well: for every element, or for every slice.
    return_counts : return int64 lengths of the runs as well.
    dim : compare slices along this dimension instead of elements.

    Raises
    ------
    TraceError : in a trace, which cannot know the size of the result.
    IndexRangeError : the dimension does not exist.
    ShapeError : slices along `dim` have no elements.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.unique_consecutive(tw.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    axis = None if dim is None else normalize_dim(dim, x.ndim, "unique_consecutive")
    rows = _rows(x, axis, "unique_consecutive")
    return _distinct(x, axis, rows, None, return_inverse, return_counts, "UniqueConsecutive")


def _rows(x: Any, axis: int | None, name: str) -> np.ndarray:
    """The elements to compare, one per row; (n,) where a row is one element."""
    array = elements(x, name, "call it outside and pass the result in, or count with one_hot(index, classes).sum(0)")
    if axis is None:
        return array.reshape(-1)
    if x.ndim == 0:
        raise IndexRangeError(f"{name}(): Dimension specified as {axis} but tensor has no dimensions")
    rest = numel((*array.shape[:axis], *array.shape[axis + 1 :]))
    if rest == 0:
        raise ShapeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], rest)
    return rows if rest > 1 else rows[:, 0]


def _runs(x: np.ndarray, numbered: bool, measured: bool) -> tuple[np.ndarray, ...]:
    """Of each run of equal neighbours the first element and its place, per element its run, and the runs' lengths."""
    n = len(x)
    values, (first, number) = np.empty(n, x.dtype), (np.empty(m, np.int64) for m in (n, n * numbered))
    lengths, count = np.empty(n * measured, np.int64), np.empty(1, np.int64)
    kernels.compiled(runs_source(x.dtype, numbered, measured), "runs")(x, values, first, number, lengths, count, n)
    for made in (values, first, *[lengths] * measured):
        made.resize(int(count[0]), refcheck=False)  # nothing else knows of it
    return values, first, number, lengths


def _distinct(
    x: Any, axis: int | None, rows: np.ndarray, order: np.ndarray | None, inverse: bool, counts: bool, name: str
) -> Any:
    """The first of equal neighbours among rows, in an order, or in their own."""
    ordered = rows if order is None else rows[order]
    if rows.ndim == 1:
        found, first, number, lengths = _runs(np.ascontiguousarray(ordered), inverse, counts)
    else:
        starts = np.empty(len(rows), np.bool_)
        starts[:1] = True
        starts[1:] = (ordered[1:] != ordered[:-1]).any(1)
        (first,) = starts.nonzero()
        number, lengths = np.cumsum(starts) - 1, np.diff(first, append=len(rows))
    if axis is None and type(x) is Tensor and not x._requires_grad and not mode.tracing:
        values = wrap(found)
    else:
        values = take_(reshape(x, -1) if axis is None else x, first if order is None else order[first], dim=axis or 0)
    values = called(values, f"{name}Backward0")
    if not (inverse or counts):
        return values
    results = [values]
    if inverse:
        if order is not None:
            placed = np.empty(len(rows), np.int64)
            placed[order] = number
            number = placed
        results.append(number.reshape(x.shape) if axis is None else number)
    if counts:
        results.append(lengths)
    if isinstance(x, TensorBase):
        results = [r if isinstance(r, TensorBase) else wrap(r) for r in results]
    return tuple(results)


__all__ = ["unique", "unique_consecutive"]
