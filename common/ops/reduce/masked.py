"""The functions of `torch.masked`: reductions, scans and softmax of the elements that a mask lets through.

A masked element counts as the number that changes nothing: 0 of a sum, 1 of a product, -inf of a maximum. What consists
of such elements alone has that number too; means, medians and deviations of no elements are nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.docstrings import sections_of
from common.core.dtypes import default_float, refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import normalize_dims
from common.ops.index.masks import require_mask
from common.ops.index.written_values import of_dtype
from common.ops.linalg.matrix_norms import vector_norm
from common.ops.math import arithmetic, compare, logarithms
from common.ops.math.cast import converted
from common.ops.math.compare import maximum, where
from common.ops.reduce import extremes, reductions, scans
from common.ops.reduce import softmax as soft
from common.ops.reduce.product import prod as product
from common.ops.shape.view import broadcast_to, reshape, unsqueeze
from common.ops.sort.quantiles import nanmedian


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else int(np.iinfo(dtype).min)


def _greatest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _over(x: Any, mask: Any) -> Any:
    """The mask in the shape of `x`.

    Raises
    ------
    DTypeError : it is not bool.
    ShapeError : it does not broadcast to that shape.
    """
    require_mask("masked", mask)
    if mask.ndim > x.ndim:
        raise ShapeError(f"masked: mask dimensionality {mask.ndim} is larger than that of the input, {x.ndim}")
    return broadcast_to(mask, x.shape)


def _filled(x: Any, mask: Any, number: Any) -> Any:
    return x if mask is None else where(_over(x, mask), x, number)


def _some(dim: Any, ndim: int, op: str) -> Any:
    """The dimensions; an empty tuple names all of them."""
    return normalize_dims((tuple(dim) or None) if isinstance(dim, (tuple, list)) else dim, ndim, op)


def sum(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sum of the elements that a mask lets through.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.
    keepdim : leave them with size 1.
    dtype : to which `x` is converted first.
    mask : bool, broadcast to `x`: what counts; all by default.

    Raises
    ------
    DTypeError : a mask that is not bool.
    ShapeError : a mask that does not broadcast to `x`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.masked.sum(tw.tensor([1.0, 2.0, 4.0]), mask=tw.tensor([True, False, True]))
    tensor(5.)
    """
    return reductions.sum(_filled(converted(x, dtype), mask, 0), _some(dim, x.ndim, "masked.sum"), bool(keepdim))


def prod(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The product of the elements that a mask lets through.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`.
    """
    return product(_filled(converted(x, dtype), mask, 1), _some(dim, x.ndim, "masked.prod"), bool(keepdim))


def cumsum(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running sums, to which masked elements add nothing, in the dtype of the elements.

    Parameters
    ----------
    x, dim, dtype, mask : see `masked.sum`.
    """
    x = converted(x, dtype)
    refuse("cumsum", x, "b")
    return of_dtype(scans.cumsum(_filled(x, mask, 0), dim), x.dtype)


def cumprod(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Running products, which masked elements do not change, in the dtype of the elements.

    Parameters
    ----------
    x, dim, dtype, mask : see `masked.sum`.
    """
    x = converted(x, dtype)
    refuse("cumprod", x, "b")
    return of_dtype(scans.cumprod(_filled(x, mask, 1), dim), x.dtype)


@sections_of(prod)
def amax(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The largest of the elements that a mask lets through."""
    x = converted(x, dtype)
    return reductions.amax(_filled(x, mask, _least(x.dtype)), _some(dim, x.ndim, "masked.amax"), bool(keepdim))


@sections_of(prod)
def amin(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest of the elements that a mask lets through."""
    x = converted(x, dtype)
    return reductions.amin(_filled(x, mask, _greatest(x.dtype)), _some(dim, x.ndim, "masked.amin"), bool(keepdim))


def argmax(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The first position of the largest of the elements that a mask lets through, in their dtype, as in PyTorch.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`; one dimension, or none.
    """
    x = converted(x, dtype)
    return of_dtype(extremes.argmax(_filled(x, mask, _least(x.dtype)), dim, bool(keepdim)), x.dtype)


def argmin(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The first position of the smallest of the elements that a mask lets through, in their dtype, as in PyTorch.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`; one dimension, or none.
    """
    x = converted(x, dtype)
    return of_dtype(extremes.argmin(_filled(x, mask, _greatest(x.dtype)), dim, bool(keepdim)), x.dtype)


def _count(x: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    there = _over(x, mask) if mask is not None else compare.logical_not(broadcast_to(np.array(False), x.shape))
    return reductions.sum(there, dim, keepdim)


def mean(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The mean of the elements that a mask lets through; nan of none.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`; floating point.
    """
    x = converted(x, dtype)
    if x.dtype.kind != "f":
        raise DTypeError(
            f"mean(): Could not infer output dtype. Dtype must be either a floating point or complex dtype. Got: "
            f"{x.dtype}"
        )
    dims = _some(dim, x.ndim, "masked.mean")
    if mask is None:
        return reductions.sum(x, dims, bool(keepdim)) / reductions.reduced_size(x.shape, dims)
    return reductions.sum(_filled(x, mask, 0), dims, bool(keepdim)) / _count(x, dims, bool(keepdim), mask)


def median(x: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The median along a dimension, of two middle elements the smaller, of those that a mask lets through; nan of none.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`; one dimension.
    """
    number = x if x.dtype.kind == "f" else of_dtype(x, default_float())
    found = nanmedian(_filled(number, mask, np.nan), dim, bool(keepdim)).values
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    return found if x.dtype.kind == "f" else of_dtype(found, wanted)


@sections_of(prod)
def logsumexp(x: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithm of the sum of the exponentials of the elements that a mask lets through."""
    x = converted(x, dtype)
    dims = _some(dim, x.ndim, "masked.logsumexp")
    return of_dtype(soft.logsumexp(_filled(x, mask, _least(x.dtype)), dims, bool(keepdim)), x.dtype)


def logaddexp(a: Any, b: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """log(exp(a) + exp(b)), in which masked elements are -inf.

    Parameters
    ----------
    a, b : (...) of one shape.
    dtype : to which both are converted first.
    input_mask, other_mask : bool, broadcast to `a` and to `b`.

    Raises
    ------
    DTypeError : a mask that is not bool.
    ShapeError : a mask that does not broadcast.
    """
    a, b = converted(a, dtype), converted(b, dtype)
    return logarithms.logaddexp(
        _filled(a, input_mask, _least(a.dtype)), _filled(b, other_mask, _least(b.dtype))
    )


def norm(
    x: Any, ord: Any = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The norm of the elements that a mask lets through, as one vector.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`.
    ord : any number.
    """
    x = converted(x, dtype)
    number = np.inf if ord == -np.inf else 0
    dims = _some(dim, x.ndim, "masked.norm")
    if not dims:
        size = arithmetic.abs(_filled(x, mask, number))
        return vector_norm(unsqueeze(size, -1), 0, -1, False) if ord == 0 else size
    return vector_norm(_filled(x, mask, number), ord, dims, bool(keepdim))


def normalize(
    x: Any, ord: Any, dim: Any, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """The tensor divided by the norm of the elements that a mask lets through; 0 where it does not.

    Parameters
    ----------
    x, dim, dtype, mask : see `masked.sum`.
    ord : of the norm.
    eps : the least norm.
    """
    x = converted(x, dtype)
    return _filled(x, mask, 0) / maximum(norm(x, ord, dim, keepdim=True, mask=mask), eps)


def _variance(
    op: str, x: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any
) -> Any:
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"masked.{op}(): only one of unbiased and correction may be given")
    less = 1.0 if correction is None and unbiased in (None, True) else 0.0 if correction is None else float(correction)
    x = converted(x, dtype)
    x = x if x.dtype.kind == "f" else of_dtype(x, default_float())
    dims = _some(dim, x.ndim, f"masked.{op}")
    count = _count(x, dims, True, mask)
    deviation = x - reductions.sum(_filled(x, mask, 0), dims, True) / count
    total = reductions.sum(_filled(deviation * deviation, mask, 0), dims, keepdim)
    freedom = of_dtype(count if keepdim else reshape(count, total.shape), x.dtype) - less
    return total / maximum(freedom, 0)


def var(
    x: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: bool = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The variance of the elements that a mask lets through.

    Parameters
    ----------
    x, dim, keepdim, dtype, mask : see `masked.sum`.
    unbiased : whether the number of elements less 1 divides; or
    correction : subtracted from that number, 1 by default.

    Raises
    ------
    ArgumentError : both `unbiased` and `correction`.
    """
    return _variance("var", x, dim, unbiased, correction, bool(keepdim), dtype, mask)


def std(
    x: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: bool = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation of the elements that a mask lets through.

    Parameters
    ----------
    x, dim, unbiased, correction, keepdim, dtype, mask : see `masked.var`.
    """
    return arithmetic.sqrt(_variance("std", x, dim, unbiased, correction, bool(keepdim), dtype, mask))


def softmax(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The softmax of the elements that a mask lets through, 0 elsewhere; nan of none.

    Parameters
    ----------
    x, dim, dtype, mask : see `masked.sum`; one dimension.
    """
    return soft.softmax(_filled(converted(x, dtype), mask, -np.inf), dim)


@sections_of(softmax)
def log_softmax(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithm of `masked.softmax`."""
    return soft.log_softmax(_filled(converted(x, dtype), mask, -np.inf), dim)


@sections_of(softmax)
def softmin(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The softmax of the negative elements that a mask lets through, 0 elsewhere; nan of none."""
    return soft.softmax(-_filled(converted(x, dtype), mask, np.inf), dim)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm,
              normalize, prod, softmax, softmin, std, sum, var)
}  # fmt: skip

__all__: list[str] = []
