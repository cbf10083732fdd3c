"""Losses of numbers against numbers: elementwise, then reduced."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import apply, called
from common.core.docstrings import sections_of
from common.core.dtypes import bool_, promote, refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.shapes import broadcast_shapes
from common.core.size_tuples import Size
from common.core.source_lines import warn_user
from common.ops._define import composite
from common.ops.index.written_values import of_dtype
from common.ops.loss.reduction import check_reduction, reduced
from common.ops.loss.smooth_l1 import huber_piece, smooth_l1_piece
from common.ops.loss.squared_error import known_reduction, squared_
from common.ops.math.activations import logsigmoid
from common.ops.math.arithmetic import abs, sqrt
from common.ops.math.compare import clamp_min, gt, ne, where
from common.ops.math.special_functions import xlogy
from common.ops.math.transcendental import exp, log, log1p
from common.ops.random.parameters import bounded_
from common.ops.reduce.reductions import sum
from common.ops.shape.join import broadcast_tensors


def _weighted(losses: Any, weight: Any, input: Any) -> Any:
    """Losses, each with a factor.

    Raises
    ------
    ShapeError : the weights do not have the shape of the input.
    """
    if weight is None:
        return losses
    if weight.ndim != input.ndim or any(m != n for m, n in zip(weight.shape, input.shape, strict=True)):
        raise ShapeError(
            f"Weights and input must have the same size, got {tuple(weight.shape)} and {tuple(input.shape)}"
        )
    return losses * weight


def _averaged(losses: Any, weight: Any, input: Any, reduction: str) -> Any:
    """Weighted losses reduced; their mean is that of the weights."""
    losses = _weighted(losses, weight, input)
    if weight is not None and reduction == "mean":
        return sum(losses) / sum(weight)
    return reduced(losses, reduction)


def _within(name: str, input: Any, *others: Any) -> None:
    """Refuse operands that would make the result larger than the input.

    Raises
    ------
    ShapeError : they would.
    """
    shape = broadcast_shapes(input.shape, *(x.shape for x in others if x is not None), op=name)
    if len(shape) != input.ndim or any(m != n for m, n in zip(shape, input.shape, strict=True)):
        raise ShapeError(
            f"{name}(): output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}"
        )


def _warn_of_sizes(input: Any, target: Any) -> None:
    """Warn of operands that are broadcast: more often than not one of them has a dimension too many."""
    if input.ndim != target.ndim or any(m != n for m, n in zip(input.shape, target.shape, strict=True)):
        warn_user(
            f"Using a target size ({Size(target.shape)}) that is different to the input size ({Size(input.shape)}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )


def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The squared difference, elementwise over broadcast operands, then reduced; warns if their sizes differ.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".
    weight : of the shape of `input`, factor of each loss, or None; "mean" then divides by the sum of the weights.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    """
    target = _numbers(target, input)
    _warn_of_sizes(input, target)
    if weight is None:
        check_reduction(reduction)
        broadcast_shapes(input.shape, target.shape, op="mse_loss")
        return apply(squared_, (input, target), known_reduction(reduction))
    difference = input - target
    return _averaged(difference * difference, weight, input, reduction)


def _numbers(target: Any, input: Any) -> Any:
    """Bools as 0 and 1, as PyTorch's own kernels of losses take them; its composed losses refuse to subtract them."""
    return target.to(input.dtype) if target.dtype == bool_ else target


@sections_of(mse_loss)
def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The absolute difference, elementwise over broadcast operands, then reduced; warns if their sizes differ."""
    _warn_of_sizes(input, target)
    return _averaged(abs(input - target), weight, input, reduction)


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
    _warn_of_sizes(input, target)
    return called(reduced(smooth_l1_piece(input - _numbers(target, input), beta), reduction), "SmoothL1LossBackward0")


def _of_kind(op: str, input: Any, target: Any) -> None:
    """Refuse an input of ints for targets of floats, whose losses are of the input's dtype in PyTorch."""
    if input.dtype.kind != "f" and target.dtype.kind == "f":
        raise DTypeError(f"{op}(): result type {target.dtype} can't be cast to the desired output type {input.dtype}")


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), of the difference d; then reduced.

    Parameters
    ----------
    input, target : (...)
    reduction : "mean", "sum" or "none".
    delta : where the parabola ends.
    weight : of the shape of `input`, factor of each loss, or None.

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
    _of_kind("huber_loss", input, target)
    _warn_of_sizes(input, target)
    y = reduced(_weighted(huber_piece(input - target, delta), weight, input), reduction)
    return called(y, "HuberLossBackward0") if weight is None else y


def _samples(rng: Any, dtype: Any) -> list[Any]:
    return [((rng.uniform(0.1, 0.9, (5, 3)).astype(dtype), rng.uniform(0.1, 0.9, (5, 3)).astype(dtype)), {})]


def _binary(x: Any, target: Any) -> Any:
    x = bounded_(x, user="binary_cross_entropy")
    target = bounded_(target, user="binary_cross_entropy of target")
    return (target - 1) * clamp_min(log1p(-x), -100) - target * clamp_min(log(x), -100)


binary_ = composite(
    "binary_cross_entropy", _binary,
    (lambda g, x, target: g * ((x - target) / clamp_min((1 - x) * x, 1e-12)),
     lambda g, x: g * (clamp_min(log1p(-x), -100) - clamp_min(log(x), -100))),
    inputs=("x", "target"), samples=_samples,
    doc="-t log(x) - (1 - t) log(1 - x), logarithms at least -100. d/dx = (x - t) / max((1 - x) x, 1e-12).",
)  # fmt: skip


def _same_shape(told: str, input: Any, target: Any) -> None:
    """Refuse other sizes in PyTorch's words, which differ from one loss to the next."""
    if input.ndim != target.ndim or any(m != n for m, n in zip(input.shape, target.shape, strict=True)):
        raise ShapeError(told.format(tuple(target.shape), tuple(input.shape)))


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
    DTypeError : input or target is of bools or integers.
    ArgumentError : another value of `reduction`; or an element of input or target is not in [0, 1]: in a compiled
        program when it runs.
    """
    _same_shape("binary_cross_entropy(): Using a target size ({}) that is different to the input size ({}) is not "
                "possible: make them the same size", input, target)  # fmt: skip
    refuse("binary_cross_entropy", input)
    if target.dtype.kind != "f":
        raise DTypeError(f"binary_cross_entropy(): Found dtype {target.dtype} but expected {input.dtype}")
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
    DTypeError : input or target is not of floats.
    ArgumentError : another value of `reduction`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.binary_cross_entropy_with_logits(tw.tensor([0.0, 200.0]), tw.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 200.0000])
    """
    _same_shape("binary_cross_entropy_with_logits(): Target size ({}) must be the same as input size ({})",
                input, target)  # fmt: skip
    for name, x in (("input", input), ("target", target)):
        if x.dtype.kind != "f":
            raise DTypeError(
                f"binary_cross_entropy_with_logits(): {name} must be of floats, not {x.dtype}; convert: .to(float32)"
            )
    _within("binary_cross_entropy_with_logits", input, weight, pos_weight)
    rest = -logsigmoid(input)
    if pos_weight is not None:
        rest = (1 + (pos_weight - 1) * target) * rest
    losses = (1 - target) * input + rest
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """Kullback-Leibler divergence t (log t - x), 0 where t = 0; then reduced. d/dt is nan where t <= 0, as in PyTorch.

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
    for x in (input, target):
        refuse("kl_div", x)
    if log_target:
        losses = exp(target) * (target - input)
    else:
        losses = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return sum(losses) / input.shape[0] if input.ndim else sum(losses)
    return reduced(losses, reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """x where y = 1, max(0, margin - x) where y = -1; then reduced.

    Parameters
    ----------
    input : (...) distances x; ints stay ints, and leave the digits of `margin` behind the point.
    target : (...) y, 1 or -1.
    margin, reduction : see above; "mean", "sum" or "none".

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    ArgumentError : another value of `reduction`.
    DTypeError : the mean of ints.
    """
    if input.dtype.kind in "iu" and isinstance(margin, float):
        margin = int(margin)
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
    ShapeError : the shapes do not broadcast, or differ in the number of dimensions.
    ArgumentError : another value of `reduction`.
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{tuple(input1.shape)}, input2: {tuple(input2.shape)}, target: {tuple(target.shape)}"
        )
    if isinstance(margin, int):
        margin = float(margin)  # ints become floats by it, as in PyTorch
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
    ShapeError : `target` does not broadcast to the shape of `input`.
    ArgumentError : another value of `reduction`.
    """
    _of_kind("soft_margin_loss", input, target)
    _within("soft_margin_loss", input, target)
    return reduced(-logsigmoid(target * input), reduction)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """S(x1 / max(|x1|, eps) x2 / max(|x2|, eps)), sum and norms along `dim`.

    Parameters
    ----------
    x1, x2 : (...) broadcast.
    dim : the dimension that is summed over.
    eps : least value of a norm; below it the gradient does not see the norm.

    Raises
    ------
    ShapeError : the shapes do not broadcast.
    IndexRangeError : a dimension that does not exist.
    DTypeError : neither is floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cosine_similarity(tw.tensor([[3.0, 4.0]]), tw.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    x1, x2 = broadcast_tensors(x1, x2)
    common = promote(x1.dtype, x2.dtype)
    if common.kind != "f":
        raise DTypeError(
            f"cosine_similarity(): expected common dtype to be floating point, yet common dtype is {common}"
        )
    x1, x2 = of_dtype(x1, common), of_dtype(x2, common)
    return sum(x1 / _norm(x1, dim, eps) * (x2 / _norm(x2, dim, eps)), dim)


def _norm(x: Any, dim: int, eps: float) -> Any:
    squares = sum(x * x, dim, keepdim=True)
    large = gt(squares, eps * eps)
    return where(large, sqrt(where(large, squares, 1)), eps)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity", "hinge_embedding_loss",
    "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss",
]  # fmt: skip
