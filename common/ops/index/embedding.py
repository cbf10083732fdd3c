"""Rows of a table by index, with the options of training: a row that stays, and a limit to the rows' norms."""

from __future__ import annotations

from typing import Any

from common.core import mode
from common.core.errors import IndexRangeError, ShapeError
from common.ops.create.like import ones_like, zeros_like
from common.ops.index.gather import require_index, take_
from common.ops.index.put import index_add
from common.ops.math import compare
from common.ops.math.arithmetic import abs
from common.ops.reduce.reductions import sum
from common.ops.shape.view import reshape, unsqueeze


def embedding(
    index: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of `weight` (entries, width) at `index` (...): (..., width).

    Parameters
    ----------
    index : (...) int64 or int32.
    weight : (entries, width)
    padding_idx : a row that gets no gradient; a negative one counts from the end.
    max_norm : rows that are looked up and whose norm is larger are first scaled to it, in place, without history.
    norm_type : p of that norm, (sum |x|^p)^(1/p).
    scale_grad_by_freq : whether the gradient of a row is divided by how often it is looked up.
    sparse : accepted; gradients are dense.

    Raises
    ------
    IndexRangeError : an index, or `padding_idx`, outside [0, entries).
    DTypeError : `index` is not int64 or int32.
    ShapeError : `weight` is not 2-D.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.embedding(tw.tensor([1, 0]), tw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.ndim != 2:
        raise ShapeError(f"embedding(): 'weight' must be 2-D, got shape {tuple(weight.shape)}")
    require_index("embedding", index)
    if max_norm is not None:
        _limit(index, weight, max_norm, norm_type)
    rows = take_(weight, index, dim=0)
    if scale_grad_by_freq:
        fixed, at = rows.detach(), reshape(index, (-1,))
        often = index_add(zeros_like(weight[:, 0]).detach(), 0, at, ones_like(at, dtype=weight.dtype))
        rows = fixed + (rows - fixed) / unsqueeze(take_(often, index, dim=0), -1)
    if padding_idx is None:
        return rows
    n = weight.shape[0]
    if isinstance(n, int) and not -n <= padding_idx < n:
        raise IndexRangeError(f"embedding(): padding_idx {padding_idx} must be within the {n} rows of the weight")
    padding = compare.eq(index, padding_idx + n if padding_idx < 0 else padding_idx)
    return compare.where(unsqueeze(padding, -1), rows.detach(), rows)


def _limit(index: Any, weight: Any, max_norm: float, p: float) -> None:
    """Scale the rows that are looked up to a norm of at most `max_norm`, as PyTorch: by max_norm / (norm + 1e-7)."""
    with mode.no_grad():
        at = reshape(index, -1)
        rows = take_(weight.detach(), at, dim=0)
        norms = sum(abs(rows) ** p, 1, True) ** (1 / p)
        scaled = compare.where(compare.gt(norms, max_norm), rows * (max_norm / (norms + 1e-7)), rows)
        weight.detach().index_copy_(0, at, scaled)  # a tangent of the weight stays as it is


__all__ = ["embedding"]
