"""Rows of a table, combined bag by bag."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.core.mode import GradSwitch
from common.ops.create.like import ones_like, zeros_like
from common.ops.index.advanced_keys import along
from common.ops.index.embedding import embedding
from common.ops.index.gather import put_zeros, whole_index
from common.ops.index.put import index_add
from common.ops.index.scatter_reduce import index_reduce
from common.ops.math.compare import clamp_min, eq, gt, logical_and, where
from common.ops.reduce.norms import norm
from common.ops.reduce.scans import cumsum
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, reshape, unsqueeze


def embedding_bag(
    index: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Rows of `weight` at the indices of each bag: their sum, mean or largest elements; 0 for an empty bag.

    Parameters
    ----------
    index : (bags, n) int64 or int32; or (n,), the bags one after the other, see `offsets`.
    weight : (entries, width)
    offsets : (bags,) where each bag begins, for a 1-D `index`.
    max_norm : rows that are looked up are scaled down to this norm first, in `weight` itself.
    norm_type : of the norm.
    scale_grad_by_freq : whether the gradient of a row is divided by how often it is looked up.
    mode : "sum", "mean" or "max".
    sparse : accepted; gradients are dense.
    per_sample_weights : as `index`, factors of the rows, for "sum".
    include_last_offset : whether the last of `offsets` is the end of the last bag; what comes after it is in no bag.
    padding_idx : an entry that does not count.

    Returns
    -------
    tensor : (bags, width).

    Raises
    ------
    ArgumentError : another mode, weights for another mode than "sum", offsets with a 2-D `index` or none with a 1-D.
    ShapeError : sizes that do not fit.
    IndexRangeError : an index outside [0, entries), `padding_idx` outside [-entries, entries), or an offset that is
        negative or lies behind the end of `index`; the first one is 0.
    DTypeError : `index` is not int64 or int32, or `per_sample_weights` has another dtype than `weight`.
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if weight.ndim != 2:
        raise ShapeError(f"embedding_bag(): weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
                            f"mode='sum' (got mode='{mode}').")  # fmt: skip
    if per_sample_weights is not None and tuple(per_sample_weights.shape) != tuple(index.shape):
        raise ShapeError("embedding_bag: If per_sample_weights is not None, then it must have the same shape as the "
                         f"input ({tuple(index.shape)}), got {tuple(per_sample_weights.shape)}")  # fmt: skip
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise DTypeError(f"embedding_bag(): expected per_sample_weights to have the same type as weight "
                         f"({weight.dtype}), got {per_sample_weights.dtype}")  # fmt: skip
    if index.ndim == 2:
        if offsets is not None:
            raise ArgumentError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                                "fixed length sequences.")  # fmt: skip
        bags, n = index.shape
        owner = reshape(expand(along(bags, 1), (bags, n)), (-1,))
    elif index.ndim == 1:
        if offsets is None or offsets.ndim != 1:
            raise ArgumentError("offsets has to be a 1D Tensor, but got "
                                f"{'None' if offsets is None else f'{offsets.ndim}D'}")  # fmt: skip
        if offsets.dtype.kind not in "iu":
            raise DTypeError(f"embedding_bag(): expected offsets to be ints, got {offsets.dtype}")
        bags = offsets.shape[0]
        owner = _owners(offsets, index.shape[0])
    else:
        raise ShapeError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {index.ndim}")
    flat = reshape(index, (-1,))
    if max_norm is not None:
        _scale_down(weight, flat, max_norm, norm_type)
    rows = embedding(flat, weight, scale_grad_by_freq=scale_grad_by_freq)
    counts = None
    if padding_idx is not None:
        _require_row(weight.shape[0], padding_idx)
        known = padding_idx if padding_idx >= 0 else padding_idx + int(weight.shape[0])
        counts = unsqueeze(1 - eq(flat, known).to(weight.dtype), 1)
    if per_sample_weights is not None:
        rows = rows * unsqueeze(reshape(per_sample_weights, (-1,)), 1)
    found = _combined(rows, owner, bags, counts, mode)
    return narrow(found, 0, 0, bags - 1) if include_last_offset and index.ndim == 1 else found


def _combined(rows: Any, owner: Any, bags: Any, counts: Any, mode: str) -> Any:
    """Rows joined by the bag that owns them; `counts` (n, 1) has 0 for a row that is padding."""
    if mode == "max":
        if counts is not None:
            rows = where(counts.to("bool"), rows, -float("inf"))
        empty = put_zeros(zeros_like(rows), owner, extent=bags, dim=0)
        found = index_reduce(empty, 0, owner, rows, "amax", include_self=False)
        return found if counts is None else where(eq(found, -float("inf")), 0.0, found)
    total = put_zeros(rows if counts is None else where(counts.to("bool"), rows, 0.0), owner, extent=bags, dim=0)
    if mode == "sum":
        return total
    each = ones_like(narrow(rows, 1, 0, 1)).detach() if counts is None else counts
    return total / clamp_min(put_zeros(each, owner, extent=bags, dim=0), 1)


def _require_row(entries: Any, padding_idx: int) -> None:
    if isinstance(entries, int) and not -entries <= padding_idx < entries:
        raise IndexRangeError(f"embedding_bag(): padding_idx must be within the number of embeddings, {-entries} "
                              f"through {entries - 1}, but got {padding_idx}")  # fmt: skip


def _owners(begins: Any, n: Any) -> Any:
    """The bag of each of n places: how many bags begin there or before, less one."""
    at = whole_index("embedding_bag", begins)
    return narrow(cumsum(put_zeros(ones_like(at), at, extent=n + 1, dim=0), 0), 0, 0, n) - 1


def _scale_down(weight: Any, index: Any, max_norm: float, norm_type: float) -> None:
    """Bring rows that are looked up to a norm of at most `max_norm`, in place."""
    with GradSwitch(False):
        fixed = weight.detach()
        used = index_add(zeros_like(fixed[:, 0]), 0, index, ones_like(index, dtype=weight.dtype))
        norms = norm(fixed, norm_type, 1)
        factor = where(logical_and(gt(norms, max_norm), gt(used, 0)), max_norm / (norms + 1e-7), 1.0)
        fixed.copy_(fixed * unsqueeze(factor, 1))  # a tangent of the weight stays as it is


__all__ = ["embedding_bag"]
