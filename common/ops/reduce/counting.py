"""How often values occur: bincount and histc."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import float64, int64
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer
from common.core.spec import numel
from common.evaluate import kernels
from common.ops.create.creation import zeros
from common.ops.index.gather import put_zeros, scatter_add
from common.ops.index.written_values import of_dtype, without_history
from common.ops.math.arithmetic import zeros_like
from common.ops.math.compare import clamp_max, eq, ge, le, logical_and, where
from common.ops.math.rounding import floor
from common.ops.reduce.reductions import amax, amin
from common.ops.shape.view import reshape
from common.ops.sort.data_dependent import elements
from common.tensor.create import lift


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each of 0, 1, 2, ... is among the elements; or the sum of their weights, added in order.

    Parameters
    ----------
    x : (n,) of integers >= 0.
    weights : (n,) or None; summed as float64 unless they are float32.
    minlength : least number of counts.

    Returns
    -------
    tensor : (m,), m = max(largest element + 1, minlength); int64, or the dtype of the weights. It has no gradient.

    Raises
    ------
    DTypeError : `x` is not of integers.
    ShapeError : `x` is not 1-D, or `weights` has another shape.
    ArgumentError : a negative element, or a negative `minlength`.
    TraceError : in a trace, which cannot know the size of the result.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.bincount(tw.tensor([1, 3, 1]))
    tensor([0, 2, 0, 1])
    """
    least = integer(minlength, "bincount", "minlength")
    if least < 0:
        raise ArgumentError(f"minlength should be >= 0, got {least}")
    if x.dtype.kind not in "iu":
        raise DTypeError(f"bincount(): expected a tensor of integers, got {x.dtype}")
    instead = "call it outside, or count with one_hot(x, classes).sum(0)"
    array = elements(x, "bincount", instead)
    if weights is None and not mode.tracing and x.ndim == 1 and array.size:
        try:
            return lift(_counts(array, least))
        except (ValueError, TypeError, MemoryError):  # a negative element, or one that numpy has no place for
            pass
    if x.ndim != 1 or (array.size and array.min() < 0):
        error = ShapeError if x.ndim != 1 else ArgumentError
        raise error(f"bincount only supports 1-d non-negative integral inputs, got {list(x.shape)}")
    if weights is not None and tuple(weights.shape) != tuple(x.shape):
        raise ShapeError(
            f"weights should be 1-d and have the same length as input, got {list(weights.shape)} for {list(x.shape)}"
        )
    size = max(least, int(array.max()) + 1 if array.size else 0)
    index = of_dtype(x, int64)
    if weights is None:
        given = zeros_like(index) + 1
    else:
        given = without_history(weights)
        given = given if given.dtype == np.float32 else of_dtype(given, float64)
    return put_zeros(given, index, extent=size, dim=0)


_MANY, _FEW = 1 << 14, 1 << 12
"""Elements from which on, and counts up to which, they are counted in four parts; numpy counts in one."""


def _counts(array: np.ndarray, least: int) -> np.ndarray:
    """numpy's ``bincount``, with its errors."""
    if array.size >= _MANY and array.dtype == int64 and array.flags.carray and array.min() >= 0:
        size = max(least, int(array.max()) + 1)
        if size <= _FEW:
            from common.kernels.arrays.indexing import COUNTS

            parts = np.empty(4 * size, np.int64)
            kernels.compiled(COUNTS, "counts")(array, parts, array.size, size)
            return parts[:size].copy()
    return np.bincount(array, minlength=least)


def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements fall into each of `bins` equal parts of [min, max]; the last part has its upper end too.

    Element x belongs to part floor((x - min) bins / (max - min)). Those outside, nan among them, belong to none.

    Parameters
    ----------
    x : (...), floating point.
    bins : number of parts.
    min, max : the ends; if they are equal, the least and the greatest element, one to each side if these are equal too.

    Returns
    -------
    tensor : (bins,) of the dtype of `x`. It has no gradient.

    Raises
    ------
    DTypeError : `x` is not floating point.
    ArgumentError : `bins` is not positive, or min > max, or an end is not finite.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.histc(tw.tensor([0.0, 1.0, 1.5, 4.0]), bins=2, min=0, max=2)
    tensor([1., 2.])
    """
    count = integer(bins, "histc", "bins")
    if count <= 0:
        raise ArgumentError(f"bins must be > 0, got {count}")
    if x.dtype.kind != "f":
        raise DTypeError(f"histc(): expected a floating point tensor, got {x.dtype}")
    if not min <= max or max - min in (np.inf, np.nan):
        raise ArgumentError(f"max must be larger than min and both finite, got min={min}, max={max}")
    x = reshape(without_history(x), (-1,))
    low: Any = min
    high: Any = max
    if min == max and numel(x.shape) != 0:
        low, high = amin(x), amax(x)
        alone = eq(low, high)
        low, high = where(alone, low - 1, low), where(alone, high + 1, high)
    inside = logical_and(ge(x, low), le(x, high))
    place = clamp_max(floor(where(inside, x - low, 0) * count / (high - low)), count - 1)
    counted = scatter_add(zeros(count, dtype=int64), 0, of_dtype(place, int64), of_dtype(inside, int64))
    return of_dtype(counted, x.dtype)


__all__ = ["bincount", "histc"]
