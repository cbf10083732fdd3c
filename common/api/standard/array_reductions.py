"""Reductions of the array API standard: over no axis, one, several or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.api.standard.array_creation import MADE
from common.core.errors import ArgumentError
from common.core.int_arguments import normalize_dim
from common.ops import functional
from common.tensor.arrays import known_dtype
from common.tensor.create import operand

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max",
           "mean", "min", "prod", "std", "sum", "var"]  # fmt: skip


def axes_of(axis: Any, rank: int) -> list[int]:
    """Dimensions that an axis means, none twice.

    Parameters
    ----------
    axis : None for all, an int or a tuple, which may be empty.
    rank : number of dimensions.

    Raises
    ------
    IndexRangeError : there is no such dimension.
    ArgumentError : one is named twice.
    """
    given = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [normalize_dim(one, rank, "axis") for one in given]
    if len({*axes}) != len(axes):
        raise ArgumentError(f"axis {axis} names a dimension twice")
    return axes


def reduced(f: Callable[..., Any], x: Any, axis: Any, keepdims: bool, **options: Any) -> Any:
    """Reduce over axes as one: they become the last dimension, in their order.

    Parameters
    ----------
    f : of a tensor and a dimension.
    axis : None for all, an int or a tuple, which may be empty.
    keepdims : keep each as a dimension of size 1.
    """
    x = operand(x, x)
    rank = len(x.shape)
    axes = axes_of(axis, rank)
    kept = [i for i in range(rank) if i not in axes]
    shape = [x.shape[i] for i in kept]
    size: Any = 1
    for i in axes:
        size = size * x.shape[i]
    flat = functional.reshape(functional.permute(x, (*kept, *axes)), (*shape, size)) if axes != [rank - 1] else x
    y = f(flat, -1, **options)
    return functional.reshape(y, [1 if i in axes else x.shape[i] for i in range(rank)]) if keepdims else y


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements are not 0.

    Parameters
    ----------
    x : (...).
    axis : None for all, an int or a tuple.
    keepdims : keep reduced dimensions with size 1.
    """
    return reduced(functional.all, x, axis, keepdims).bool()  # PyTorch's are uint8 of uint8


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether an element is not 0; parameters as for `all`."""
    return reduced(functional.any, x, axis, keepdims).bool()


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first maximum; parameters as for `all`."""
    return reduced(functional.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first minimum; parameters as for `all`."""
    return reduced(functional.argmin, x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of elements that are not 0; parameters as for `all`."""
    return reduced(functional.count_nonzero, x, axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The maximum; parameters as for `all`."""
    return reduced(functional.amax, x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The minimum; parameters as for `all`."""
    return reduced(functional.amin, x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean; parameters as for `all`."""
    return reduced(functional.mean, x, axis, keepdims)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum.

    Parameters
    ----------
    x : (...).
    axis : None for all, an int or a tuple.
    dtype : to compute in; by default int64 for integers.
    keepdims : keep reduced dimensions with size 1.
    """
    return reduced(functional.sum, x, axis, keepdims, dtype=dtype and known_dtype(dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product; parameters as for `sum`."""
    return reduced(functional.prod, x, axis, keepdims, dtype=dtype and known_dtype(dtype))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation.

    Parameters
    ----------
    x : (...).
    axis : None for all, an int or a tuple.
    correction : what is taken off the number of elements, by which the sum of squares is divided.
    keepdims : keep reduced dimensions with size 1.
    """
    return reduced(functional.std, x, axis, keepdims, correction=correction)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance; parameters as for `std`."""
    return reduced(functional.var, x, axis, keepdims, correction=correction)


def _running(f: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool, first: int) -> Any:
    x = operand(x, x)
    if axis is None:
        if len(x.shape) != 1:
            raise ArgumentError(f"axis may be left out for one dimension only, not for {len(x.shape)}")
        axis = 0
    y = f(x, axis, dtype=dtype and known_dtype(dtype))
    if not include_initial:
        return y
    shape = [*y.shape]
    shape[axis] = 1
    return functional.cat([MADE["full"](shape, first, dtype=y.dtype), y], axis)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Sums of the first elements, of one more each.

    Parameters
    ----------
    x : (...).
    axis : along which; may be left out if there is one dimension.
    dtype : to compute in; by default int64 for integers.
    include_initial : begin with the sum of none, 0.
    """
    return _running(functional.cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Products of the first elements, of one more each; parameters as for `cumulative_sum`."""
    return _running(functional.cumprod, x, axis, dtype, include_initial, 1)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours.

    Parameters
    ----------
    x : (...).
    axis : along which.
    n : how many times.
    prepend, append : (...) what is put before and behind.
    """
    return functional.diff(operand(x), n, axis, prepend, append)
