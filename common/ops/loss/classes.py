"""Losses of classes: their indices, or their probabilities, against log-probabilities or logits."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import apply, called, known_attrs
from common.core.dtypes import int32, int64, refuse, uint8
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.op import REGISTRY
from common.core.shapes import plain_shape
from common.ops._define import composite
from common.ops.index.gather import index_select, pick, spread
from common.ops.loss.reduction import check_reduction, reduced
from common.ops.math.compare import ne, where
from common.ops.reduce.reductions import sum, sum_
from common.ops.reduce.softmax import log_softmax
from common.ops.shape.view import permute, reshape


def _taken(index: Any, ignore: int) -> tuple[Any, Any]:
    """Whether each class counts, and an index that is valid where it does not."""
    valid = ne(index, ignore)
    return valid, where(valid, index, 0)


def _nll(x: Any, index: Any, *, ignore: int) -> Any:
    valid, safe = _taken(index, ignore)
    return where(valid, -pick(x, safe), 0)


def _nll_rule(g: Any, x_shape: Any, index: Any, ignore: int) -> Any:
    valid, safe = _taken(index, ignore)
    return spread(where(valid, -g, 0), safe, extent=x_shape[-1])


def _samples(rng: Any, dtype: Any) -> list[Any]:
    operands = rng.normal(size=(6, 4)).astype(dtype), rng.integers(0, 4, 6)
    return [(operands, {"ignore": ignore}) for ignore in (-100, 1)]


nll_ = composite(
    "nll", _nll, (_nll_rule,), inputs=("x", "index"), samples=_samples, node_name="NllLoss",
    doc="Minus the element at index of each row; 0 where the index is `ignore`. d/dx = -1 there.",
)  # fmt: skip


def _nll_mean(x: Any, index: Any, *, ignore: int) -> Any:
    valid, safe = _taken(index, ignore)
    losses = where(valid, -pick(x, safe), 0)
    dims = tuple(range(len(losses.shape)))
    count = sum_(valid, dim=dims, keepdim=False)
    count = REGISTRY["to"](count, dtype=x.dtype, x_dtype=count.dtype)
    return sum_(losses, dim=dims, keepdim=False) / count, count


def _nll_mean_rule(g: Any, y: Any, x_shape: Any, index: Any, ignore: int) -> Any:
    valid, safe = _taken(index, ignore)
    return None if g[0] is None else spread(where(valid, -(g[0] / y[1]), 0), safe, extent=x_shape[-1])


nll_mean_ = composite(
    "nll_mean", _nll_mean, (_nll_mean_rule,), inputs=("x", "index"), nout=2, samples=_samples, node_name="NllLoss",
    doc="The mean of `nll` over rows whose index is not `ignore`, and their number. d/dx = -1 / number there.",
)  # fmt: skip


def _classes_last(input: Any) -> Any:
    """Dimension 1, the classes, as the last one."""
    return input if input.ndim < 3 else permute(input, (0, *range(2, input.ndim), 1))


def _log_probabilities(input: Any) -> Any:
    """Of logits (batch, classes, ...) or (classes,), with the classes as the last dimension."""
    return _classes_last(log_softmax(input, 1 if input.ndim > 1 else 0))


def _classes(target: Any) -> Any:
    """Bytes as int64: they could not be compared with a class to ignore that is below 0."""
    return target.to(int64) if target.dtype == uint8 else target


def _check(name: str, input: Any, target: Any, weight: Any) -> None:
    """Refuse operands that do not belong together; classes are the last dimension."""
    if target.ndim == input.ndim and name == "cross_entropy":
        raise DTypeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
    if input.ndim == 0 or target.ndim != input.ndim - 1:
        raise ShapeError(
            f"{name}(): expected input (batch, classes, ...) and target (batch, ...), got {input.ndim} and "
            f"{target.ndim} dimensions"
        )
    scored, classed = plain_shape(input)[:-1], plain_shape(target)
    if classed and scored[0] != classed[0]:
        raise ShapeError(f"Expected input batch_size ({scored[0]}) to match target batch_size ({classed[0]}).")
    if any(m != n for m, n in zip(scored[1:], classed[1:], strict=True)):
        raise ShapeError(f"{name}(): Expected target size {list(scored)}, got {list(classed)}")
    if target.dtype not in (int64, int32):
        raise DTypeError(
            f"{name}(): expected target dtype to be Long or Byte: int64, int32 or uint8, got {target.dtype}"
        )
    _check_weight(name, input, weight)


def _check_weight(name: str, input: Any, weight: Any) -> None:
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != input.shape[-1]):
        raise ShapeError(
            f"{name}(): weight tensor should be defined either for all {input.shape[-1]} classes or no classes, but "
            f"got weight tensor of shape: {tuple(weight.shape)}"
        )


def _of_classes(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> Any:
    """The loss of log-probabilities x (..., classes)."""
    if weight is None and not smoothing:
        if reduction == "mean":
            return apply(nll_mean_, (x, target), known_attrs(None, ignore=ignore_index))[0]
        return reduced(nll_(x, target, ignore=ignore_index), reduction)
    valid, safe = _taken(target, ignore_index)
    losses, scale = nll_(x, target, ignore=ignore_index), valid.to(x.dtype)
    if weight is not None:
        scale = scale * reshape(index_select(weight, 0, reshape(safe, (-1,))), tuple(target.shape))
        losses = losses * scale
    if smoothing:
        others = sum(-x if weight is None else -x * weight, -1) / x.shape[-1]
        losses = losses * (1 - smoothing) + where(valid, others, 0) * smoothing
    return sum(losses) / sum(scale) if reduction == "mean" else reduced(losses, reduction)


def nll_loss(
    input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    """Minus the log-probability of the target class.

    Parameters
    ----------
    input : (batch, classes, ...) or (classes,), log-probabilities.
    target : (batch, ...) or () int64, int32 or uint8, in [0, classes).
    weight : (classes,) factor of each class's loss, or None.
    ignore_index : a target that counts as no loss.
    reduction : "mean" (the sum divided by the sum of the targets' weights), "sum" or "none".

    Raises
    ------
    IndexRangeError : a target outside [0, classes).
    ShapeError : target does not have one class per row, or weight one number per class.
    DTypeError : target is of another dtype.
    ArgumentError : another value of `reduction`.
    """
    check_reduction(reduction)
    x, target = _classes_last(input), _classes(target)
    _check("nll_loss", x, target, weight)
    refuse("nll_loss", x)
    return _shown(_of_classes(x, target, weight, ignore_index, reduction, 0.0), x, reduction)


def _shown(y: Any, x: Any, reduction: str) -> Any:
    """A loss as PyTorch's node for classes in dimension 1 of so many."""
    if x.ndim == 4 or (x.ndim > 2 and reduction != "none"):
        return called(y, "NllLoss2DBackward0")
    return called(y, "NllLossBackward0" if x.ndim < 3 else "ViewBackward0")


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Minus the log-probability of the target class, ``nll_loss(log_softmax(input), target)``.

    Parameters
    ----------
    input : (batch, classes, ...) or (classes,), logits.
    target : (batch, ...) or () int64, int32 or uint8, in [0, classes); or of the shape of input, floating point,
        probabilities of all classes.
    weight : (classes,) factor of each class's loss, or None.
    ignore_index : a target that counts as no loss; not for probabilities.
    reduction : "mean" (the sum divided by the sum of the targets' weights, for probabilities by the batch), "sum" or
        "none".
    label_smoothing : the part of a target's probability, 0 to 1, that is spread evenly over all classes.

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError, ArgumentError : see `nll_loss`; label_smoothing outside [0, 1];
        ignore_index given with probabilities.

    References
    ----------
    Szegedy et al., Rethinking the inception architecture for computer vision, 2016 (label smoothing).

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cross_entropy(tw.zeros(2, 4), tw.tensor([0, 3]))
    tensor(1.3863)
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    check_reduction(reduction)
    x = _classes_last(input)
    if target.dtype.kind == "f" and target.ndim == input.ndim:
        if ignore_index >= 0:
            raise ArgumentError("cross_entropy(): ignore_index is not supported for floating point target")
        return _of_probabilities(input, target, weight, reduction, label_smoothing)
    target = _classes(target)
    _check("cross_entropy", x, target, weight)
    if label_smoothing:  # which uses them twice: their gradients are added with the classes last
        return _of_classes(log_softmax(x, -1), target, weight, ignore_index, reduction, label_smoothing)
    y = _of_classes(_log_probabilities(input), target, weight, ignore_index, reduction, 0.0)
    return _shown(y, x, reduction)


def _of_probabilities(input: Any, target: Any, weight: Any, reduction: str, smoothing: float) -> Any:
    x, target = _classes_last(input), _classes_last(target)
    _check_weight("cross_entropy", x, weight)
    if x.ndim > 1 and x.shape[0] != target.shape[0]:
        raise ShapeError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if any(m != n for m, n in zip(x.shape, target.shape, strict=True)):
        raise ShapeError(
            f"cross_entropy(): probabilities of shape {tuple(target.shape)} for an input of shape {tuple(x.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / x.shape[-1]
    terms = _log_probabilities(input) * target
    losses = -sum(terms if weight is None else terms * weight, -1)
    return reduced(losses, reduction)


__all__ = ["cross_entropy", "nll_loss"]
