"""Products over dimensions, whose gradients need the products of all other elements."""

from __future__ import annotations

from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.int_arguments import flag, normalize_dims
from common.ops._define import composite, reduction
from common.ops._samples import join, one
from common.ops.math.cast import converted
from common.ops.reduce.reductions import spread
from common.ops.reduce.scans import cumprod_, delay_, recurrence_
from common.ops.shape.view import permute, reshape


def _before_and_after(x: Any, dim: int) -> tuple[Any, Any]:
    """For every element the products of those before it, and of those after it, along `dim`."""
    before, after = (delay_(cumprod_(x, dim=dim, reverse=r), dim=dim, reverse=r, fill=1) for r in (False, True))
    return before, after


def _others(x: Any, *, dim: int) -> Any:
    before, after = _before_and_after(x, dim)
    return before * after


def _others_rule(g: Any, x: Any, dim: int) -> Any:
    before, after = _before_and_after(x, dim)
    parts = (
        recurrence_(x, delay_(g * other, dim=dim, reverse=r, fill=0), dim=dim, reverse=r, shifted=True) * own
        for own, other, r in ((before, after, True), (after, before, False))
    )
    first, second = parts
    return first + second


others_ = composite(
    "product_of_others", _others, (_others_rule,), inputs=("x",), reduce="others",
    samples=join(one(4, 5, dim=1), one(3, 4, dim=0), one(2, dim=0)),
    doc="For every element the product of all others along dim: those before it times those after it.",
)  # fmt: skip


def _prod_rule(g: Any, x: Any, dim: tuple[int, ...]) -> Any:
    if not dim:
        return reshape(g, x.shape)
    if len(dim) == 1:
        return spread(g, x.shape, dim) * others_(x, dim=dim[0])
    order = tuple(i for i in range(x.ndim) if i not in dim) + dim
    ordered = permute(x, order)
    kept = ordered.shape[: x.ndim - len(dim)]
    size: Any = 1
    for d in dim:
        size = size * x.shape[d]
    others = reshape(others_(reshape(ordered, (*kept, size)), dim=len(kept)), ordered.shape)
    return spread(g, x.shape, dim) * permute(others, tuple(order.index(i) for i in range(x.ndim)))


prod_ = reduction(
    "prod", "prod", (_prod_rule,),
    doc="Product over dims, in the order of a sum: 16 lanes per block of 1024. d/dx is the product of the elements "
        "before x and of those after it: no division, so zeros are no exception.",
)  # fmt: skip


@accept_numpy_names
def prod(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over `dim` (all dimensions by default); ints and bools as int64. Gradients are right at zeros, too.

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
    >>> tw.prod(tw.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([3, 8])
    """
    if dtype is not None:
        return converted(prod(converted(x, dtype), dim, keepdim), dtype)
    return prod_(x, dim=normalize_dims(dim, x.ndim, "prod"), keepdim=flag(keepdim, "prod", "keepdim"))


__all__ = ["prod"]
