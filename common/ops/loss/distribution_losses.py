"""Losses of distributions and of distances: Poisson, Gaussian, triplets, cosines, many labels."""

from __future__ import annotations

import math
from typing import Any

from common.core.dtypes import default_float
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.core.shapes import broadcast_shapes
from common.ops.index.written_values import of_dtype, without_history
from common.ops.linalg.distances import pairwise_distance, require_number
from common.ops.loss.elementwise_losses import cosine_similarity
from common.ops.loss.reduction import reduced
from common.ops.math.activations import logsigmoid
from common.ops.math.compare import clamp_min, eq, gt, lt, minimum, where
from common.ops.math.transcendental import exp, log
from common.ops.reduce.reductions import sum
from common.ops.shape.view import unsqueeze


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    """Minus the log-likelihood of Poisson distributions: e^x - t x, or x - t log(x + eps); then reduced.

    Parameters
    ----------
    input : (...) logarithms of rates x; rates, if not `log_input`.
    target : (...) counts t.
    log_input : what input is.
    full : add Stirling's t log t - t + log(2 pi t) / 2 where t > 1, an approximation of log(t!).
    eps : see above.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.poisson_nll_loss(tw.tensor([0.0, 1.0]), tw.tensor([1.0, 0.0]), reduction="none")
    tensor([1.0000, 2.7183])
    """
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        many = gt(target, 1)
        t = where(many, target, 1)
        losses = losses + where(many, t * log(t) - t + 0.5 * log(2 * math.pi * t), 0)
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Minus the log-likelihood of normal distributions: (log v + (x - t)^2 / v) / 2, v = max(var, eps); then reduced.

    Parameters
    ----------
    input : (...) means x.
    target : (...) t, broadcast.
    var : variances: a number, of the shape of `input`, with 1 for one of its sizes, or without its last dimension.
        Below eps the gradient is that of v, as if it were var.
    full : add log(2 pi) / 2.
    eps : least variance, > 0.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not fit.
    ArgumentError : another value of `reduction`; a negative variance given as a number; eps <= 0.
    DTypeError : variances that are ints or bools, which no eps fits.
    """
    if eps <= 0:
        raise ArgumentError(f"gaussian_nll_loss(): eps must be positive, got {eps}")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ArgumentError("var has negative entry/entries")
        var = input * 0 + float(var)
    if var.dtype.kind != "f":
        raise DTypeError(f"gaussian_nll_loss(): not implemented for variances of {var.dtype}; use .to(float32)")
    if tuple(var.shape) != tuple(input.shape):
        if tuple(var.shape) == tuple(input.shape[:-1]):
            var = unsqueeze(var, -1)
        elif var.ndim != input.ndim or [m for n, m in zip(input.shape, var.shape) if n != m] != [1]:
            raise ShapeError(f"var is of incorrect size: {list(var.shape)} for input {list(input.shape)}")
    small = lt(var, eps)
    v = where(small, var - where(small, without_history(var), 0) + eps, var)
    d = input - target
    losses = 0.5 * (log(v) + d * d / v)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), distances along the last dimension; then reduced.

    Parameters
    ----------
    anchor, positive, negative : (..., k), floating point, of as many dimensions.
    margin : number > 0.
    p, eps : of the distances, see `pairwise_distance`.
    swap : take d(positive, negative) where it is smaller than d(anchor, negative).
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast, or differ in the number of dimensions.
    ArgumentError : another value of `reduction`, margin <= 0, or p is no number.

    References
    ----------
    Balntas and others, Learning shallow convolutional feature descriptors with triplet losses, 2016.
    """
    require_number(p, "triplet_margin_loss")
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss(): margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(clamp_min(near - far + margin, 0), reduction)


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y = -1; then reduced.

    Parameters
    ----------
    input1, input2 : (batch, k) or (k,).
    target : (batch,) or (): y, 1 or -1.
    margin : see above.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not fit.
    ArgumentError : another value of `reduction`.
    """
    shape = broadcast_shapes(input1.shape, input2.shape, op="cosine_embedding_loss()")
    if target.ndim > 1:
        raise ShapeError(f"cosine_embedding_loss(): 0D or 1D target tensor expected, got {list(target.shape)}")
    if target.ndim != len(shape) - 1:
        raise ShapeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)}, {list(input2.shape)}"
        )
    input1, input2 = (x if x.dtype.kind == "f" else of_dtype(x, default_float()) for x in (input1, input2))
    cosine = cosine_similarity(input1, input2, dim=-1)
    apart = where(eq(target, -1), clamp_min(cosine - margin, 0), 0)
    return reduced(where(eq(target, 1), 1 - cosine, 0) + apart, reduction)


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    """-(t log sigmoid(x) + (1 - t) log sigmoid(-x)), the mean over the last dimension of `input`; then reduced.

    Parameters
    ----------
    input : (..., classes) logits x.
    target : (..., classes) labels t, 0 or 1.
    weight : factor of each class, broadcast; or None. Broadcasting goes before the mean: with more dimensions than
        `input`, the mean is over the one that counts, from the left, as many as the last of `input`.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    IndexRangeError : no dimension of classes.
    ArgumentError : another value of `reduction`.
    """
    if input.ndim == 0:
        raise IndexRangeError("multilabel_soft_margin_loss(): Dimension specified as -1 but tensor has no dimensions")
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(sum(losses, input.ndim - 1) / input.shape[-1], reduction)


__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "multilabel_soft_margin_loss", "poisson_nll_loss",
    "triplet_margin_loss",
]  # fmt: skip
