"""Differences and integrals along a dimension; membership."""

from __future__ import annotations

import builtins
from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.dtypes import float64, refuse
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.core.int_arguments import integer, normalize_dim
from common.ops._define import composite
from common.ops._samples import join, one
from common.ops.index.written_values import of_dtype
from common.ops.linalg.matmul import dot
from common.ops.math.arithmetic import pow
from common.ops.math.bitwise import bitwise_xor
from common.ops.math.cast import clone
from common.ops.math.compare import eq
from common.ops.reduce.reductions import sum_
from common.ops.reduce.scans import cumsum
from common.ops.reduce.truth import any
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, reshape, unsqueeze
from common.tensor.base import NUMBERS
from common.tensor.create import lift, operand


def _axis(x: Any, dim: Any, name: str) -> int:
    if x.ndim == 0:
        raise IndexRangeError(f"{name}(): expects a tensor of at least one dimension")
    return normalize_dim(dim, x.ndim, name)


def _ends(x: Any, axis: int) -> tuple[Any, Any]:
    """All but the first and all but the last slice along a dimension."""
    n = x.shape[axis] - 1
    return narrow(x, axis, 1, n), narrow(x, axis, 0, n)


@accept_numpy_names
def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along `dim`, n times; of bools, whether they differ.

    Parameters
    ----------
    x : (..., k, ...)
    n : how often.
    dim : the dimension.
    prepend, append : what stands before and behind `x` along `dim`, or None.

    Returns
    -------
    tensor : (..., k - n, ...), empty where n is larger than k.

    Raises
    ------
    ArgumentError : `n` is negative.
    ShapeError : `prepend` or `append` differs from `x` in a size that is not along `dim`.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.diff(tw.tensor([1, 4, 9, 16])), tw.diff(tw.tensor([1, 4, 9, 16]), n=2)
    (tensor([3, 5, 7]), tensor([2, 2]))
    """
    axis, times = _axis(x, dim, "diff"), integer(n, "diff", "n")
    if times < 0:
        raise ArgumentError(f"order must be non-negative but got {times}")
    for t in (prepend, append):
        if t is not None and (t.ndim != x.ndim or builtins.any(
            i != axis and m != n for i, (m, n) in enumerate(zip(x.shape, t.shape, strict=True))
        )):  # fmt: skip
            raise ShapeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; got {list(t.shape)} for input of shape {list(x.shape)} and dimension {axis}"
            )
    parts = [t for t in (prepend, x, append) if t is not None]
    x = cat(parts, axis) if len(parts) > 1 and times else x
    for _ in range(int(times)):
        if x.shape[axis] == 0:
            break
        after, before = _ends(x, axis)
        x = bitwise_xor(after, before) if x.dtype.kind == "b" else after - before
    return x if times else clone(x)


def _areas(src: Any, x: Any, dx: Any, dim: int, name: str) -> tuple[Any, int]:
    axis = _axis(src, dim, name)
    if src.dtype.kind == "b":
        raise DTypeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}(): received both `x` and `dx`; give one of them")
    width = 1 if dx is None else dx
    after, before = _ends(src, axis) if src.shape[axis] != 0 else (src, src)
    if x is not None:
        place = -1 if x.ndim == 1 else axis - src.ndim
        if x.ndim < -place or x.shape[place] != src.shape[axis]:
            raise ShapeError(f"{name}(): There must be one `x` value for each sample point: {tuple(x.shape)}")
        width = diff(x) if x.ndim == 1 else diff(x, dim=axis - src.ndim)
        if x.ndim == 1:
            width = reshape(width, (width.shape[0], *(1,) * (src.ndim - 1 - axis)))
    return (after + before) * width / 2, axis


def _neighbours_rule(g: Any, x: Any, dim: int) -> Any:
    """Half a cotangent from each neighbour; those at the ends have one."""
    lead, n, trail = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    half = unsqueeze(g / 2, dim)
    end = half + 0.0
    return cat([end, expand(half + half, (*lead, n - 2, *trail)), end], dim)


def _means_of_neighbours(x: Any, *, dim: int) -> Any:
    after, before = _ends(x, dim)
    return sum_((after + before) / 2, dim=(dim,), keepdim=False)


neighbours_ = composite(
    "sum_of_neighbours", _means_of_neighbours, (_neighbours_rule,), inputs=("x",), reduce="neighbours",
    samples=join(one(4, 5, dim=1), one(4, 3, dim=0), one(2, dim=0)),
    doc="S of the means of neighbours, of two or more. d/dx = 1/2 from each neighbour.",
)  # fmt: skip


@accept_numpy_names
def trapezoid(src: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral of y along `dim` by the trapezoidal rule: the sum of (y[i] + y[i + 1]) (x[i + 1] - x[i]) / 2.

    Parameters
    ----------
    src : `y`, (..., k, ...).
    x : (k,) or broadcasts to `y`: where y was taken; or None.
    dx : the distance of neighbours, 1 by default.
    dim : the dimension.

    Raises
    ------
    ShapeError : not one `x` per sample.
    ArgumentError : both `x` and `dx`.
    DTypeError : `y` is bool.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.trapezoid(tw.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    if x is None and dx is None and src.dtype.kind == "f" and src.ndim > 0:
        axis = _axis(src, dim, "trapezoid")
        if src.shape[axis] > 1:
            return neighbours_(src, dim=axis)
    areas, axis = _areas(src, x, dx, dim, "trapezoid")
    return sum_(areas, dim=(axis,), keepdim=False)


def trapz(src: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Another name of `trapezoid`.

    Parameters
    ----------
    src, x, dx, dim : see `trapezoid`.
    """
    return trapezoid(src, x, dx=dx, dim=dim)


@accept_numpy_names
def cumulative_trapezoid(src: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Running integrals of y along `dim` by the trapezoidal rule, one less than there are samples.

    Parameters
    ----------
    src : `y`, (..., k, ...).
    x, dx, dim : as for `trapezoid`.

    Raises
    ------
    ShapeError, ArgumentError, DTypeError, IndexRangeError : as for `trapezoid`.
    """
    areas, axis = _areas(src, x, dx, dim, "cumulative_trapezoid")
    return cumsum(areas, axis)


def isin(x: Any, b: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among others.

    Parameters
    ----------
    x : (...)
    b : (...) the others. One of x and b may be a number.
    assume_unique : accepted; makes no difference.
    invert : whether they are not among them.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.isin(tw.tensor([1, 2, 3]), tw.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    x, b = operand(x, b), lift(b)
    if isinstance(x, NUMBERS):
        found = any(eq(b, x))
    else:
        refuse("isin", x, "b")
        found = eq(x, b) if isinstance(b, NUMBERS) else any(eq(unsqueeze(x, -1), reshape(b, (-1,))), -1)
    return ~found if invert else found


def float_power(a: Any, b: Any) -> Any:
    """a to the power b, computed in float64.

    Parameters
    ----------
    a, b : (...), broadcast; one of them may be a number.
    """
    a, b = (of_dtype(t, float64) if hasattr(t, "dtype") else float(t) for t in (a, b))
    return pow(a, b)


def vdot(a: Any, b: Any) -> Any:
    """The sum of the products of two vectors, as `dot`.

    Parameters
    ----------
    a, b : (n,)

    Raises
    ------
    ShapeError, DTypeError : as for `dot`.
    """
    return dot(a, b)


__all__ = [
    "cumulative_trapezoid", "diff", "float_power", "isin", "trapezoid", "trapz", "vdot",
]  # fmt: skip
