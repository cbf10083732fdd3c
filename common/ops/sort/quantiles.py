"""Medians, quantiles and modes: elements of sorted rows, whose gradients go to where they stood."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.aliases import accept_numpy_names
from common.core.dispatch import called
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, DTypeError, EmptyError, ShapeError
from common.core.int_arguments import flag, normalize_dim
from common.core.op import Op
from common.core.return_types import values_and_indices
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import join, one
from common.ops.index.gather import gather_, index_select
from common.ops.index.taken import taken
from common.ops.index.written_values import of_dtype
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import clone
from common.ops.math.compare import clamp_min, eq, isnan, logical_not, ne, where
from common.ops.math.division import floor_divide
from common.ops.math.rounding import ceil, floor, round
from common.ops.reduce.extremes import argmax
from common.ops.reduce.reductions import _extremum_rule, sum_
from common.ops.reduce.scans import cummax_, cumsum_
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import permute, reshape, transpose, unsqueeze
from common.ops.sort.sorting import argsort_, back_in_order, sort
from common.tensor.create import lift


def _last_of(rows: Any) -> Any:
    return narrow(rows, rows.ndim - 1, rows.shape[-1] - 1, 1)


def _rows(x: Any, dim: Any, name: str) -> tuple[Any, int]:
    """The dimension as the last one, all elements without one; nothing to choose from is refused."""
    if dim is None:
        x, dim = reshape(x, (numel(x.shape),)), 0
    elif x.ndim == 0:
        normalize_dim(dim, 0, name)
        x, dim = reshape(x, (1,)), 0
    axis = normalize_dim(dim, x.ndim, name)
    if x.shape[axis] == 0:
        raise EmptyError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    return transpose(x, axis, x.ndim - 1), axis


def _of_nothing(x: Any) -> Any:
    """The median of no elements: nan, or the least int."""
    if x.dtype.kind == "f":
        return sum_(x, dim=tuple(range(x.ndim)), keepdim=False) * math.nan
    return lift(np.array(np.iinfo(x.dtype).min, x.dtype))


def _middle(rows: Any, *, skip: bool) -> Any:
    order = argsort_(rows, descending=False)
    if skip:
        return gather_(order, floor_divide(clamp_min(_numbers(rows) - 1, 0), 2), dim=rows.ndim - 1)
    index = narrow(order, rows.ndim - 1, (rows.shape[-1] - 1) // 2, 1)
    if rows.dtype.kind == "f":
        last = gather_(rows, _last_of(order), dim=rows.ndim - 1)
        index = where(isnan(last), argmax(rows, -1, keepdim=True), index)
    return index


places_: Op = composite(
    "places_of_middle", _middle, (), inputs=("x",), reduce="middle",
    samples=join(one(3, 5, skip=False), one(2, 4, skip=True)),
    doc="Where the median of each row stands, (..., 1): nan if there is one; or the median of what is not nan.",
)  # fmt: skip

def _mode(rows: Any) -> Any:
    last, n = rows.ndim - 1, rows.shape[-1]
    order = argsort_(rows, descending=False)
    ordered = gather_(rows, order, dim=last)
    places = cumsum_(zeros_like(order) + 1, dim=last, reverse=False) - 1
    begins = ne(narrow(ordered, last, 1, n - 1), narrow(ordered, last, 0, n - 1))
    starts = where(begins, narrow(places, last, 1, n - 1), 0)
    starts = cat([narrow(places, last, 0, 1), starts], last)
    lengths = places - cummax_(starts, dim=last)[0]
    return gather_(order, argmax(lengths, last, keepdim=True), dim=last)


places_of_mode_: Op = composite(
    "places_of_mode", _mode, (), inputs=("x",), reduce="mode", samples=join(one(3, 5), one(4)),
    doc="Where the most frequent element of each row stands last, of several the smallest, (..., 1).",
)  # fmt: skip

middle_: Op = composite(
    "middle", lambda x, *, skip: reshape(gather_(x, places_(x, skip=skip), dim=0), ()),
    (lambda g, y, x: _extremum_rule(g, y, x, (0,)),), inputs=("x",), node_name="Median",
    samples=join(one(5, skip=False), one(4, skip=True)),
    doc="The median of (n,), nan if there is one; or of what is not nan. Equal elements share the gradient evenly.",
)  # fmt: skip


@accept_numpy_names
def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The median: of an even number of elements the lower one; nan if there is one, or if there are no elements.

    Parameters
    ----------
    x : (...)
    dim : the dimension; all elements by default.
    keepdim : leave the dimension with size 1.

    Returns
    -------
    tensor, or values and indices over a dimension; gradients go to the elements they came from, of a tensor in equal
        parts to all elements that are equal.

    Raises
    ------
    EmptyError : a dimension of no elements.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.median(tw.tensor([3.0, 1.0, 4.0, 2.0]))
    tensor(2.)
    """
    keepdim = flag(keepdim, "median", "keepdim")
    refuse("median", x, "b")
    if dim is None and 0 in x.shape:
        return _of_nothing(x)
    rows, axis = _rows(x, dim, "median")
    if dim is None:
        return called(middle_(rows, skip=False), "MedianBackward0")
    return _chosen("Median", x, rows, places_(rows, skip=False), axis, keepdim)


@accept_numpy_names
def nanmedian(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The `median` of the elements that are not nan, with its results and errors; nan where there are none.

    Parameters
    ----------
    x, dim, keepdim : as those of `median`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nanmedian(tw.tensor([3.0, float("nan"), 1.0]))
    tensor(1.)
    """
    keepdim = flag(keepdim, "nanmedian", "keepdim")
    refuse("nanmedian", x, "b")
    if dim is None and 0 in x.shape:
        return _of_nothing(x)
    rows, axis = _rows(x, dim, "nanmedian")
    if dim is None:
        return called(middle_(rows, skip=True), "NanmedianBackward0")
    return _chosen("Nanmedian", x, rows, places_(rows, skip=True), axis, keepdim)


@accept_numpy_names
def mode(x: Any, dim: int | None = -1, keepdim: bool = False) -> Any:
    """The most frequent element along `dim`, of several the smallest, and the last position where it stands.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    keepdim : leave the dimension with size 1.

    Returns
    -------
    values, indices : gradients of the values go to the elements at the indices. Each nan is an element of its own.

    Raises
    ------
    ShapeError : no elements.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.mode(tw.tensor([2, 1, 1, 2, 3]))
    torch.return_types.mode(
    values=tensor(1),
    indices=tensor(2))
    """
    keepdim = flag(keepdim, "mode", "keepdim")
    rows, axis = _rows(x, dim, "mode")
    index = places_of_mode_(rows)
    if dim is None:
        return taken(rows, index, 0, False, "ModeBackward0")
    return _chosen("Mode", x, rows, index, axis, keepdim)


def _numbers(rows: Any) -> Any:
    """How many elements of each row are not nan, (..., 1) int64."""
    return sum_(logical_not(isnan(rows)), dim=(rows.ndim - 1,), keepdim=True)


def _chosen(name: str, x: Any, rows: Any, index: Any, axis: int, keepdim: bool) -> Any:
    """The elements of rows at an index (..., 1), in the shape in which `x` is reduced over `dim`."""
    node_name = f"{name}Backward{int(name != 'Mode')}"  # of `median` and `nanmedian` this is the second form
    if x.ndim == 0:
        return values_and_indices(name.lower(), called(clone(x), node_name), reshape(index, ()))
    index = back_in_order(index, axis)
    values = taken(x, index, axis, keepdim, node_name)
    index = index if keepdim else reshape(index, (*x.shape[:axis], *x.shape[axis + 1 :]))
    return values_and_indices(name.lower(), values, index)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@accept_numpy_names
def quantile(x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """Quantiles: element q (n - 1) of the sorted ones, between two of them by interpolation; nan if there is one.

    Parameters
    ----------
    x : (...), floating point.
    q : a number from 0 to 1; or (m,) of the dtype of `x`, which becomes the first dimension of the result.
    dim : the dimension; all elements by default.
    keepdim : leave the dimension with size 1.
    interpolation : "linear", "lower", "higher", "midpoint" or "nearest".

    Raises
    ------
    DTypeError : `x` is not floating point, or `q` has another dtype.
    ArgumentError : q outside [0, 1], or another interpolation.
    ShapeError : no elements, or `q` has more than one dimension.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.quantile(tw.tensor([0.0, 1.0, 2.0, 3.0]), 0.4)
    tensor(1.2000)
    """
    return _quantile("quantile", x, q, dim, keepdim, interpolation)


@accept_numpy_names
def nanquantile(x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    """`quantile` of the elements that are not nan; nan where there are none.

    Parameters
    ----------
    x : (...), floating point.
    q, dim, keepdim, interpolation : as for `quantile`.

    Raises
    ------
    DTypeError, ArgumentError, ShapeError, IndexRangeError : as for `quantile`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nanquantile(tw.tensor([0.0, float("nan"), 2.0]), 0.5)
    tensor(1.)
    """
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation)


def _quantile(name: str, x: Any, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Any:
    keepdim = flag(keepdim, name, "keepdim")
    if x.dtype.kind != "f":
        raise DTypeError(f"{name}() input tensor must be either float or double dtype, got {x.dtype}")
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(f"{name}() interpolation must be one of {_INTERPOLATIONS}, but got {interpolation!r}")
    if isinstance(q, (int, float)):
        if not 0 <= q <= 1:
            raise ArgumentError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = lift(np.asarray(q, x.dtype))
    if q.ndim == 0:
        q = of_dtype(q, x.dtype)
    if q.ndim > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor, got {q.ndim} dimensions")
    if q.dtype != x.dtype:
        raise DTypeError(f"{name}() q tensor must be same dtype as the input tensor, got {q.dtype} and {x.dtype}")
    if numel(x.shape) == 0:
        raise ShapeError(f"{name}() input tensor must be non-empty")
    rows, axis = _rows(x, dim, name)
    found = _between(sort(rows, -1)[0], reshape(q, (-1,)), interpolation, skip=name == "nanquantile")
    # (..., m) with the reduced dimension's place taken by m, which then leads
    found = transpose(unsqueeze(found, rows.ndim - 1), axis, rows.ndim - 1)
    found = permute(found, (rows.ndim, *range(rows.ndim)))
    if dim is None or x.ndim == 0:
        shape: tuple[Any, ...] = (1,) * x.ndim if keepdim else ()
    else:
        shape = (*x.shape[:axis], *((1,) if keepdim else ()), *x.shape[axis + 1 :])
    return reshape(found, shape if q.ndim == 0 else (found.shape[0], *shape))


def _between(ordered: Any, q: Any, interpolation: str, skip: bool) -> Any:
    """(..., m): the quantiles q (m,) of sorted rows; with `skip` of the elements before the nans."""
    last = ordered.ndim - 1
    if skip:
        places = q * of_dtype(clamp_min(_numbers(ordered) - 1, 0), q.dtype)
    else:
        places = q * (ordered.shape[-1] - 1)
    lower, upper = (of_dtype(f(places), "int64") for f in (floor, ceil))
    if interpolation == "nearest":
        lower = upper = of_dtype(round(places), "int64")
    elif interpolation in ("lower", "higher"):
        lower = upper = lower if interpolation == "lower" else upper
    share = 0.5 if interpolation == "midpoint" else places - floor(places)
    if skip:
        low, high = (gather_(ordered, i, dim=last) for i in (lower, upper))
    else:
        low, high = (index_select(ordered, last, i) for i in (lower, upper))
    found = low if lower is upper else where(eq(lower, upper), low, low + (high - low) * share)
    return found if skip else where(isnan(_last_of(ordered)), _last_of(ordered), found)


__all__ = ["median", "mode", "nanmedian", "nanquantile", "quantile"]
