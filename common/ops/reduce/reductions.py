"""Reductions, in the order that docs/numerics.md defines; means and losses are compositions of `sum`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.dispatch import Attrs, apply
from common.core.docstrings import sections_of
from common.core.dtypes import bool_
from common.core.errors import DTypeError
from common.core.int_arguments import flag, normalize_dims
from common.core.spec import numel
from common.ops._define import composite, reduction
from common.ops._samples import of_reduction
from common.ops.math.cast import converted, to
from common.ops.math.compare import eq, ne, where
from common.ops.shape.view import expand, reshape


def reduced(dim: Any, keepdim: Any, ndim: int, op: str, node_name: str | None = None) -> Any:
    """The attributes of a reduction; a node may have another name than the op's where `dim` is None."""
    if type(keepdim) is not bool:
        keepdim = flag(keepdim, op, "keepdim")
    kind = type(dim)
    plain = dim is None or kind is int or (kind is tuple and {int}.issuperset(map(type, dim)))
    if plain:
        return _known_reduced(dim, keepdim, ndim, op, node_name)
    return {"dim": normalize_dims(dim, ndim, op), "keepdim": keepdim}


@lru_cache(maxsize=1024)
def _known_reduced(dim: Any, keepdim: bool, ndim: int, op: str, node_name: str | None) -> Attrs:
    if dim is not None and op in ("sum", "mean", "prod"):
        node_name = f"{op.capitalize()}Backward1"  # though these be all dimensions
    return Attrs(node_name=node_name, dim=normalize_dims(dim, ndim, op), keepdim=keepdim)


def kept(shape: Any, dim: tuple[int, ...]) -> tuple[Any, ...]:
    """`shape` with the reduced dimensions as 1: what broadcasts against the operand."""
    return tuple(1 if i in dim else n for i, n in enumerate(shape))


def spread(g: Any, shape: Any, dim: tuple[int, ...]) -> Any:
    """Repeat a reduction's result over `dim`, with or without the dimensions, to `shape`."""
    return expand(reshape(g, kept(shape, dim)), shape)


def require_float(op: str, x: Any) -> None:
    """Refuse what is not floating point.

    Raises
    ------
    DTypeError : always for ints and bools.
    """
    if x.dtype.kind != "f":
        raise DTypeError(
            f"{op}(): could not infer output dtype. Input dtype must be a floating point one. Got: {x.dtype}; "
            "convert with .to(float32)"
        )


sum_ = reduction(
    "sum", "sum", (lambda g, x_shape, dim: spread(g, x_shape, dim),),
    doc="Sum over dims, in the order of docs/numerics.md: 16 lanes per block of 1024. d/dx = 1.",
)  # fmt: skip


def _extremum_rule(g: Any, y: Any, x: Any, dim: tuple[int, ...]) -> Any:
    shape = kept(x.shape, dim)
    top = reshape(y, shape)
    ties = to(where(ne(top, top), ne(x, x), eq(x, top)), dtype=x.dtype, x_dtype=bool_)  # nan is the extreme of nans
    return ties * (reshape(g, shape) / sum_(ties, dim=dim, keepdim=True))


amax_ = reduction(
    "amax", "max", (_extremum_rule,), identity=False,
    doc="Maximum over dims; nan if any is nan, +0 above -0. Ties, or all nans, share the gradient evenly.",
)  # fmt: skip
amin_ = reduction(
    "amin", "min", (_extremum_rule,), identity=False,
    doc="Minimum over dims; nan if any is nan, -0 below +0. Ties, or all nans, share the gradient evenly.",
)  # fmt: skip


def reduced_size(shape: Any, dim: tuple[int, ...]) -> Any:
    """How many elements go into one result."""
    return numel(tuple(shape[d] for d in dim))


mean_ = composite(
    "mean", lambda x, *, dim, keepdim: sum_(x, dim=dim, keepdim=keepdim) / reduced_size(x.shape, dim),
    (lambda g, x_shape, dim: spread(g / reduced_size(x_shape, dim), x_shape, dim),),
    inputs=("x",), samples=of_reduction,
    doc="Sum over dims divided by the number of elements. d/dx = 1 / n.",
)  # fmt: skip


@accept_numpy_names
def sum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over `dim` (all dimensions by default); ints and bools sum as int64.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.sum(tw.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    if dtype is not None:
        return converted(sum(converted(x, dtype), dim, keepdim), dtype)
    return apply(sum_, (x,), reduced(dim, keepdim, x.ndim, "sum"))


@accept_numpy_names
def mean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over `dim` divided by the number of elements.

    Parameters
    ----------
    x : (...), floating point.
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.
    dtype : to which `x` is converted first, and that of the result; by default as above.

    Raises
    ------
    DTypeError : `x` is not floating point.
    """
    x = converted(x, dtype)
    require_float("mean", x)
    return apply(mean_, (x,), reduced(dim, keepdim, x.ndim, "mean"))


@accept_numpy_names
def amax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Maximum over `dim`; nan if any element is nan.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.

    Raises
    ------
    ShapeError : a reduced dimension has size 0.
    """
    return apply(amax_, (x,), reduced(dim, keepdim, x.ndim, "amax"))


@sections_of(amax)
@accept_numpy_names
def amin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Minimum over `dim`; nan if any element is nan."""
    return apply(amin_, (x,), reduced(dim, keepdim, x.ndim, "amin"))


__all__ = ["amax", "amin", "mean", "sum"]
