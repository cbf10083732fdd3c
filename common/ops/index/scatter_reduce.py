"""scatter, scatter_reduce and index_reduce: elements that are sent to one place replace what is there, or join it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.dtypes import bool_, int64
from common.core.errors import ArgumentError, DTypeError
from common.core.int_arguments import normalize_dim
from common.core.unbroadcast import reshaped
from common.ops.create.like import full_like
from common.ops.index.coordinates import family
from common.ops.index.gather import of_rank, require_index, row, scatter_add
from common.ops.index.put import all_indices, check_scattered, check_slices, put_scattered
from common.ops.index.written_values import number_like, of_dtype, same_dtype
from common.ops.math.compare import clamp_min
from common.ops.math.division import floor_divide
from common.ops.shape.view import expand, reshape

#: Names of reductions that `scatter` takes.
_OLDER = {"add": "sum", "multiply": "prod"}
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """`x` with elements of `src` combined into it at `index` along `dim`: ``x[index[i][j]][j] += src[i][j]`` for dim 0
    and "sum".

    Elements meet one after the other in C order of `index`, after that of `x`. A mean is the sum divided by how many
    there are; of integers rounded down.

    Parameters
    ----------
    x : (...)
    dim : the dimension that `index` selects from.
    index : (...) int64 or int32, of the rank of `x`; in other dimensions not larger.
    src : (...), not smaller than `index`, of the dtype of `x`.
    reduce : "sum", "prod", "mean", "amax" or "amin".
    include_self : whether the elements of `x` take part; those that nothing is sent to stay in any case.

    Returns
    -------
    tensor : like `x`. Extremes that tie share the gradient evenly.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32, src has another dtype than x, or x is bool and the mean is asked for.
    ShapeError : the ranks differ, or `index` is larger than `x` or `src`.
    ArgumentError : another `reduce`.

    Examples
    --------
    >>> import dynamic as tw
    >>> index, src = tw.tensor([0, 0, 1]), tw.tensor([2.0, 3.0, 4.0])
    >>> tw.scatter_reduce(tw.ones(3), 0, index, src, "prod")
    tensor([6., 4., 1.])
    >>> tw.scatter_reduce(tw.ones(3), 0, index, src, "mean", include_self=False)
    tensor([2.5000, 4.0000, 1.0000])
    """
    if x.ndim == 0:
        return reshape(scatter_reduce(row(x), dim, row(index), row(src), reduce, include_self=include_self), ())
    axis = normalize_dim(dim, x.ndim, "scatter_reduce")
    require_index("scatter_reduce", index)
    index = of_rank(index, x)
    src = check_scattered("scatter_reduce", x, axis, index, src)
    same_dtype("scatter_reduce", x, src)
    if x.dtype.kind == "b" and reduce != "mean":
        whole = scatter_reduce(of_dtype(x, int64), dim, index, of_dtype(src, int64), reduce, include_self=include_self)
        return of_dtype(whole, bool_)
    ops, indices = family(x.ndim), all_indices(x, axis, index)

    def write(name: str, *operands: Any) -> Any:
        return ops[f"index_{name}"](*operands, *indices, dim=0, wrap=False)

    def total(x: Any) -> Any:
        return scatter_add(x, axis, index, src)

    return _combined("scatter_reduce", _REDUCTIONS, x, src, reduce, include_self, write, total)


def scatter(x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None) -> Any:
    """`x` with elements of `src` at `index` along `dim`: ``x[index[i][j]][j] = src[i][j]`` for dim 0, and so on.

    Of several elements for one place the last one in C order of `index` stays.

    Parameters
    ----------
    x : (...)
    dim : the dimension that `index` selects from.
    index : (...) int64 or int32, of the rank of `x`; in other dimensions not larger.
    src : (...), not smaller than `index`, of the dtype of `x`; or a number.
    value : a number instead of `src`.
    reduce : "add" or "multiply": combine elements with those of `x`; an older name of `scatter_reduce`.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32, or src has another dtype than x.
    ShapeError : the ranks differ, unless `index` is empty, or `index` is larger than `x` or `src`.
    ArgumentError : both or neither of `src` and `value`, or another `reduce`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.scatter(tw.zeros(2, 3), 1, tw.tensor([[2], [0]]), value=5)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    if x.ndim == 0:
        y = scatter(row(x), dim, row(index), row(src), value=value, reduce=reduce)
        return reshaped(y, (), f"ScatterBackward{int(src is None)}")
    if reduce is not None:
        if reduce not in _OLDER:
            raise ArgumentError("reduce argument must be either add or multiply.")
        if (src is None) is (value is None):
            raise ArgumentError("scatter(): exactly one of 'src' and 'value' must be given")
        number = src if value is None else value
        if not hasattr(number, "ndim") or number.ndim == 0:
            index = of_rank(index, x)
            src = expand(reshape(number_like(number, x, "scatter"), (1,) * index.ndim), index.shape)
        return scatter_reduce(x, dim, index, src, _OLDER[reduce])
    return put_scattered(x, dim, index, src, value).on(x)


def index_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """`x` with the slices of `src` combined into those at `index` along `dim`, one after the other.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    index : (k,) int64 or int32.
    src : (..., k, ...), of the dtype of `x`.
    reduce : "prod", "mean", "amax" or "amin"; see `scatter_reduce`.
    include_self : whether the elements of `x` take part; slices that nothing is sent to stay in any case.

    Returns
    -------
    tensor : like `x`. Extremes that tie share the gradient evenly.

    Raises
    ------
    IndexRangeError : an index outside the dimension; negative indices are outside.
    DTypeError : `index` is not int64 or int32, source has another dtype than x, or x is bool and the mean is asked for.
    ShapeError : `src` does not have the sizes of `x` and `index`.
    ArgumentError : another `reduce`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.index_reduce(tw.ones(3), 0, tw.tensor([0, 0, 2]), tw.tensor([2.0, 3.0, 4.0]), "prod")
    tensor([6., 1., 4.])
    """
    if x.ndim == 0:
        return reshape(index_reduce(row(x), dim, index, row(src), reduce, include_self=include_self), ())
    axis, index = check_slices("index_reduce", x, dim, index, src)
    if x.dtype.kind == "b" and reduce != "mean":
        whole = index_reduce(of_dtype(x, int64), dim, index, of_dtype(src, int64), reduce, include_self=include_self)
        return of_dtype(whole, bool_)

    def write(name: str, *operands: Any) -> Any:
        return family(1)[f"index_{name}"](*operands, index, dim=axis, wrap=False)

    def total(x: Any) -> Any:
        return write("add", x, src)

    return _combined("index_reduce", _REDUCTIONS[1:], x, src, reduce, include_self, write, total)


def _combined(
    op: str,
    reductions: tuple[str, ...],
    x: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    write: Callable[..., Any],
    total: Callable[[Any], Any],
) -> Any:
    """Combine values as `reduce` says.

    Parameters
    ----------
    write : ``write(operation, x, v)``: x with v combined into it by an operation of `common.ops.index.coordinates`.
    total : x with `src` added.
    """
    if reduce not in reductions:
        raise ArgumentError(f"{op}(): reduce argument must be one of {reductions}, got {reduce!r}")
    if x.dtype.kind == "b":
        raise DTypeError(f"{op}(): mean is not implemented for bool; convert with .to(uint8)")
    if not include_self:
        x = write("set", x, number_like(_start(reduce, x.dtype), x, op))
    if reduce in ("prod", "amax", "amin"):
        return write({"prod": "mul", "amax": "max", "amin": "min"}[reduce], x, src)
    sums = total(x)
    if reduce == "sum":
        return sums
    counts = full_like(x, int(include_self), int64)
    counts = of_dtype(clamp_min(write("add", counts, number_like(1, counts, op)), 1), x.dtype)
    return sums / counts if x.dtype.kind == "f" else floor_divide(sums, counts)


def _start(reduce: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return float("-inf" if reduce == "amax" else "inf")
    info = np.iinfo(dtype)
    return int(info.min if reduce == "amax" else info.max)


__all__ = ["index_reduce", "scatter", "scatter_reduce"]
