"""Losses that ask for margins between classes, or between distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.ops.index.advanced_keys import along
from common.ops.index.gather import gather, index_select
from common.ops.linalg.distances import pairwise_distance
from common.ops.loss.reduction import check_reduction, reduced
from common.ops.math.compare import clamp_min, eq, logical_and, lt, minimum, ne, where
from common.ops.reduce.reductions import sum
from common.ops.reduce.scans import cumsum
from common.ops.reduce.truth import any
from common.ops.shape.slices import slice_
from common.ops.shape.view import reshape, unsqueeze

_MANY = 1 << 17
"""Terms of a loss from which on looking at the labels pays."""


def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """sum over i != t of max(0, margin - x[t] + x[i])^p, times weight[t], divided by the classes; then reduced.

    Parameters
    ----------
    input : (batch, classes), (classes,) or (), which is one class: x.
    target : (batch,) or () int64: t.
    p : 1 or 2.
    margin : how far the class should be above others.
    weight : (classes,) factor of each class, or None.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ArgumentError : another `p` or `reduction`.
    ShapeError : shapes that do not fit.
    IndexRangeError : a target that is no class.
    DTypeError : targets that are no ints.
    """
    check_reduction(reduction)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss(): only p == 1 and p == 2 supported, got {p}")
    if input.ndim == 0 and target.ndim == 0:
        input = unsqueeze(input, 0)
    _refuse_no_classes("multi_margin_loss", input)
    if target.ndim > 1 or (input.ndim == 2 and tuple(target.shape) != tuple(input.shape[:1])):
        raise ShapeError(f"multi_margin_loss(): target tensor should be 1-D with size equal to the number of input "
                         f"samples. Expected target size {list(input.shape[:-1])}, but got "
                         f"{list(target.shape)}")  # fmt: skip
    _refuse_no_ints("multi_margin_loss", target)
    refuse("multi_margin_loss", input)
    x, t = (unsqueeze(input, 0), reshape(target, (1,))) if input.ndim == 1 else (input, target)
    if weight is not None and tuple(weight.shape) != (x.shape[1],):
        raise ShapeError(f"multi_margin_loss(): inconsistent weight size, expected {x.shape[1]} but got "
                         f"{list(weight.shape)}")  # fmt: skip
    t = unsqueeze(t, 1)
    terms = clamp_min(margin - gather(x, 1, t) + x, 0)
    terms = terms if p == 1 else terms * terms
    if weight is not None:
        terms = terms * unsqueeze(index_select(weight, 0, reshape(t, (-1,))), 1)
    losses = sum(where(ne(along(x.shape[1], 0), t), terms, 0), 1) / x.shape[1]
    return reduced(reshape(losses, tuple(target.shape)) if input.ndim == 1 else losses, reduction)


def _refuse_no_classes(op: str, x: Any) -> None:
    if x.ndim not in (1, 2) or x.shape[-1] == 0:
        raise ShapeError(f"{op}(): Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                         f"{list(x.shape)}")  # fmt: skip


def _refuse_no_ints(op: str, target: Any) -> None:
    if target.dtype.kind not in "iu":
        raise DTypeError(f"{op}(): expected scalar type Long but found {target.dtype}: a target of ints is needed")


def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """sum over classes t of the target and others i of max(0, 1 - x[t] + x[i]), divided by the classes; then reduced.

    Parameters
    ----------
    input : (batch, classes), (classes,) or (), which is one class: x.
    target : the same shape, int64: classes, up to the first that is negative.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ArgumentError : another `reduction`.
    ShapeError : two shapes.
    DTypeError : targets that are no ints.
    """
    check_reduction(reduction)
    if input.ndim == 0 and target.ndim == 0:
        input, target = unsqueeze(input, 0), unsqueeze(target, 0)
    _refuse_no_classes("multilabel_margin_loss", input)
    if tuple(input.shape) != tuple(target.shape):
        raise ShapeError(f"multilabel_margin_loss(): inconsistent target size: {list(target.shape)} for input of "
                         f"size: {list(input.shape)}")  # fmt: skip
    _refuse_no_ints("multilabel_margin_loss", target)
    refuse("multilabel_margin_loss", input)
    x, t = (unsqueeze(input, 0), unsqueeze(target, 0)) if input.ndim == 1 else (input, target)
    t = t if (most := _most_labels(t)) is None else slice_(t, starts=(0, 0), sizes=(t.shape[0], most), steps=(1, 1))
    valid = eq(cumsum(lt(t, 0), 1), 0)
    safe = where(valid, t, 0)
    named = any(logical_and(eq(unsqueeze(safe, 2), along(x.shape[1], 0)), unsqueeze(valid, 2)), 1)
    terms = clamp_min(1 - unsqueeze(gather(x, 1, safe), 2) + unsqueeze(x, 1), 0)
    counted = logical_and(unsqueeze(valid, 2), unsqueeze(eq(named, False), 1))
    losses = sum(where(counted, terms, 0), (1, 2)) / x.shape[1]
    return reduced(reshape(losses, ()) if input.ndim == 1 else losses, reduction)


def _most_labels(t: Any) -> int | None:
    """How many of a row's places can name a class, where that is known; further terms are zeros and change no sum."""
    if mode.tracing or t.shape[0] * t.shape[1] ** 2 <= _MANY:
        return None
    ends = np.asarray(t.payload) < 0
    return max(int(np.where(ends.any(1), ends.argmax(1), t.shape[1]).max()), 1)


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with any distance; then reduced.

    Parameters
    ----------
    anchor, positive, negative : (..., k), floating point, of as many dimensions.
    distance_function : d, of two tensors; `pairwise_distance` by default.
    margin : number > 0.
    swap : take d(positive, negative) where it is smaller than d(anchor, negative).
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : another number of dimensions.
    ArgumentError : another value of `reduction`, margin <= 0.
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_with_distance_loss(): margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp_min(near - far + margin, 0), reduction)


__all__ = ["multi_margin_loss", "multilabel_margin_loss", "triplet_margin_with_distance_loss"]
