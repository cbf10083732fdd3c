"""Losses of numbers against numbers: elementwise, then reduced."""

from __future__ import annotations

from typing import Any

from common.errors import ArgumentError, ShapeError
from common.ops._define import composite
from common.ops.activations import logsigmoid
from common.ops.arithmetic import abs, sqrt
from common.ops.compare import clamp_min, eq, gt, le, lt, ne, where
from common.ops.join import broadcast_tensors
from common.ops.reduce import mean, sum
from common.ops.transcendental import exp, log, log1p


def reduced(losses: Any, reduction: str) -> Any:
    """Losses as PyTorch's `reduction` says.

    Raises
    ------
    ArgumentError : it is not "mean", "sum" or "none".
    """
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared difference, elementwise over broadcast operands, then reduced.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    difference = input - target
    return reduced(difference * difference, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The absolute difference, elementwise over broadcast operands, then reduced.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    return reduced(abs(input - target), reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, of the difference d; then reduced.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".
    beta : where the parabola ends; 0 gives `l1_loss`.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`, or beta < 0.

    References
    ----------
    Girshick, Fast R-CNN, 2015.
    """
    if beta < 0:
        raise ArgumentError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction)
    d = input - target
    return reduced(where(lt(abs(d), beta), 0.5 * (d * d) / beta, abs(d) - 0.5 * beta), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), of the difference d; then reduced.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".
    delta : where the parabola ends.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`, or delta <= 0.

    References
    ----------
    Huber, Robust estimation of a location parameter, 1964.
    """
    if delta <= 0:
        raise ArgumentError("huber_loss does not support non-positive values for delta.")
    d = input - target
    return reduced(where(le(abs(d), delta), 0.5 * (d * d), delta * (abs(d) - 0.5 * delta)), reduction)


def _samples(rng: Any, dtype: Any) -> list[Any]:
    return [((rng.uniform(0.1, 0.9, (5, 3)).astype(dtype), rng.uniform(0.1, 0.9, (5, 3)).astype(dtype)), {})]


def _binary(x: Any, target: Any) -> Any:
    return (target - 1) * clamp_min(log1p(-x), -100) - target * clamp_min(log(x), -100)


binary_ = composite(
    "binary_cross_entropy", _binary,
    (lambda g, x, target: g * ((x - target) / clamp_min((1 - x) * x, 1e-12)),
     lambda g, x: g * (clamp_min(log1p(-x), -100) - clamp_min(log(x), -100))),
    inputs=("x", "target"), samples=_samples,
    doc="-t log(x) - (1 - t) log(1 - x), logarithms at least -100. d/dx = (x - t) / max((1 - x) x, 1e-12).",
)  # fmt: skip


def _same_shape(name: str, input: Any, target: Any) -> None:
    if input.ndim != target.ndim or any(m != n for m, n in zip(input.shape, target.shape, strict=True)):
        raise ShapeError(
            f"{name}(): target size ({tuple(target.shape)}) must be the same as input size ({tuple(input.shape)})"
        )


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    """-t log(x) - (1 - t) log(1 - x), logarithms not below -100; then reduced.

    Parameters
    ----------
    input : (...) probabilities x.
    target : (...) probabilities t.
    weight : factor of each loss, broadcast; or None.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : input and target differ in shape.
    ArgumentError : another value of `reduction`.
    """
    _same_shape("binary_cross_entropy", input, target)
    losses = binary_(input, target)
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """`binary_cross_entropy` of sigmoid(input) without its overflow; then reduced.

    (1 - t) x + (1 + (pos_weight - 1) t) log(1 + e^-x).

    Parameters
    ----------
    input : (...) logits x.
    target : (...) probabilities t.
    weight : factor of each loss, broadcast; or None.
    reduction : "mean", "sum" or "none".
    pos_weight : factor of the term with t, broadcast; or None.

    Raises
    ------
    ShapeError : input and target differ in shape.
    ArgumentError : another value of `reduction`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.binary_cross_entropy_with_logits(tw.tensor([0.0, 200.0]), tw.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 200.0000])
    """
    _same_shape("binary_cross_entropy_with_logits", input, target)
    rest = -logsigmoid(input)
    if pos_weight is not None:
        rest = (1 + (pos_weight - 1) * target) * rest
    losses = (1 - target) * input + rest
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """Kullback-Leibler divergence t (log t - x), 0 where t = 0; then reduced.

    Parameters
    ----------
    input : (...) log-probabilities x.
    target : (...) probabilities t; their logarithms with `log_target`.
    reduction : "mean" (over all elements), "batchmean" (the divergence, over the first dimension), "sum" or "none".
    log_target : what target is.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    if log_target:
        losses = exp(target) * (target - input)
    else:
        none = eq(target, 0)
        losses = where(none, 0, target * log(where(none, 1, target))) - target * input
    return sum(losses) / input.shape[0] if reduction == "batchmean" else reduced(losses, reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """x where y = 1, max(0, margin - x) where y = -1; then reduced.

    Parameters
    ----------
    input : (...) distances x.
    target : (...) y, 1 or -1.
    margin, reduction : see above; "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    apart = where(ne(target, 1), clamp_min(margin - input, 0), 0)
    return reduced(apart + where(ne(target, -1), input, 0), reduction)


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """max(0, -y (x1 - x2) + margin); then reduced.

    Parameters
    ----------
    input1, input2 : (...) ranks x1 and x2.
    target : (...) y, 1 where x1 ranks higher, else -1.
    margin, reduction : see above; "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    return reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + e^(-y x)), without overflow; then reduced.

    Parameters
    ----------
    input : (...) x.
    target : (...) y, 1 or -1.
    reduction : "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    return reduced(-logsigmoid(target * input), reduction)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """x1 x2 / (max(|x1|, eps) max(|x2|, eps)), products and norms along `dim`.

    Parameters
    ----------
    x1, x2 : (...) broadcast.
    dim : the dimension that is summed over.
    eps : least value of a norm; below it the gradient does not see the norm.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    IndexRangeError : a dimension that does not exist.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cosine_similarity(tw.tensor([[3.0, 4.0]]), tw.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    x1, x2 = broadcast_tensors(x1, x2)
    products = x1 * x2
    return sum(products, dim) / (_norm(x1, dim, eps) * _norm(x2, dim, eps))


def _norm(x: Any, dim: int, eps: float) -> Any:
    squares = sum(x * x, dim)
    large = gt(squares, eps * eps)
    return where(large, sqrt(where(large, squares, 1)), eps)


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]
