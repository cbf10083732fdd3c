"""Reductions of segments: parts of a dimension that lie one after the other, each of its own length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.dispatch import called
from common.core.dtypes import int64
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import normalize_dim
from common.core.operators import as_operand
from common.core.sizes import same
from common.ops.create.creation import full
from common.ops.index.advanced_keys import along
from common.ops.index.scatter_reduce import scatter_reduce
from common.ops.index.written_values import of_dtype
from common.ops.math.compare import eq, lt, where
from common.ops.reduce.scans import cumsum
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, reshape
from common.ops.sort.sorting import searchsorted
from common.tensor.create import lift, operand

#: Per reduction: how elements are combined, and the first value.
_KINDS = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0),
    "max": ("amax", -math.inf), "amax": ("amax", -math.inf), "min": ("amin", math.inf), "amin": ("amin", math.inf),
}  # fmt: skip


def segment_reduce(
    x: Any, reduce: str, *, lengths: Any = None, at: Any = None, offsets: Any = None, axis: int = 0,
    unsafe: bool = False, initial: float | None = None,
) -> Any:  # fmt: skip
    """The elements of each segment of a dimension combined into one.

    Parameters
    ----------
    x : (..., n, ...), floating point.
    reduce : "sum", "mean", "prod", "max" or "min".
    lengths : (..., k) of integers: how long each segment is; a row for each of the dimensions before `axis`.
    at : None.
    offsets : (..., k + 1) of integers, in ascending order: where each segment begins, and where the last one ends;
        instead of `lengths`.
    axis : the dimension, the last one of `lengths`.
    unsafe : whether lengths may sum to another number than n. A trace does not look.
    initial : combined with each segment; what an empty one is. Without it that is 0 of a sum, 1 of a product, nan of a
        mean, and an infinity of an extreme.

    Returns
    -------
    tensor : (..., k, ...). Extremes that tie share the gradient evenly.

    Raises
    ------
    DTypeError : `x` is not floating point, or lengths or offsets are no integers.
    ShapeError : the sizes of lengths or offsets do not fit, or lengths do not sum to n.
    ArgumentError : another `reduce`, `indices`, neither or both of lengths and offsets, or a negative length.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.segment_reduce(tw.tensor([1.0, 2.0, 3.0, 4.0]), "sum", lengths=tw.tensor([1, 3]))
    tensor([1., 9.])
    """
    if reduce not in _KINDS:
        raise ArgumentError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if at is not None:
        raise ArgumentError("segment_reduce(): indices based reduction is not supported yet.")
    if (lengths is None) == (offsets is None):
        raise ArgumentError("segment_reduce(): Either lengths or offsets must be defined.")
    if x.dtype.kind != "f":
        raise DTypeError(f"segment_reduce(): not implemented for {x.dtype}; convert: .to(float32)")
    axis = normalize_dim(axis, x.ndim, "segment_reduce")
    given = operand(lengths if offsets is None else offsets)
    if given.dtype.kind not in "iu":
        raise DTypeError(f"segment_reduce(): lengths and offsets are integers, got {given.dtype}")
    lead, n = x.shape[:axis], x.shape[axis]
    if given.ndim != axis + 1 or any(not same(a, b) and a != b for a, b in zip(given.shape, lead, strict=False)):
        raise ShapeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}; lengths of shape "
            f"{tuple(given.shape)} for data of shape {tuple(x.shape)}"
        )
    if offsets is None:
        _check_lengths(given, n, unsafe)
        bounds = cat([lift(full((*lead, 1), 0, int64)), cumsum(of_dtype(given, int64), -1)], -1)
    else:
        if given.shape[-1] == 0:
            raise ShapeError("segment_reduce(): offsets have at least one element, the end of the last segment")
        bounds = of_dtype(given, int64)
    k = bounds.shape[-1] - 1
    found = searchsorted(bounds, expand(along(n, 0), (*lead, n)), right=True) - 1
    found = where(lt(found, 0), as_operand(k), found)  # a row more for what lies in no segment
    tail = x.shape[axis + 1 :]
    target = expand(reshape(found, (*lead, n, *(1,) * len(tail))), x.shape)
    how, neutral = _KINDS[reduce]
    start = neutral if initial is None else float(initial)
    base = lift(full((*lead, k + 1, *tail), start, x.dtype))
    y = narrow(scatter_reduce(base, axis, target, x, how), axis, 0, k)
    if reduce != "mean":
        return called(y, "SegmentReduceBackward0")
    sizes = narrow(bounds, -1, 1, k) - narrow(bounds, -1, 0, k)
    counts = reshape(of_dtype(sizes, x.dtype), (*lead, k, *(1,) * len(tail)))
    y = y / counts if initial is None else where(eq(counts, 0), start, y / counts)
    return called(y, "SegmentReduceBackward0")


def _check_lengths(lengths: Any, n: Any, unsafe: bool) -> None:
    """Refuse lengths that are known and no lengths."""
    known = lengths.payload
    if not isinstance(known, np.ndarray):
        return
    if (known < 0).any():
        raise ArgumentError("segment_reduce(): lengths contains negative value!")
    if not unsafe and (known.sum(-1) != n).any():
        raise ShapeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            f"!unsafe: they sum to {known.sum(-1).tolist()}, not {n}"
        )


__all__ = ["segment_reduce"]
