"""The cross entropy of classes whose logits a linear map gives."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.spec import numel
from common.ops.linalg.matmul import linear
from common.ops.loss.classes import cross_entropy
from common.ops.shape.view import reshape


def linear_cross_entropy(
    input: Any, weight: Any, target: Any, *, bias: Any = None, weights: Any = None, reduction: str = "mean",
    ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
) -> Any:  # fmt: skip
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Parameters
    ----------
    input : (batch, in) or (in,)
    weight : `linear_weight`, (classes, ..., in).
    target : classes (batch, ...), or probabilities of the shape of the logits.
    bias : `linear_bias`, (classes, ...), or None.
    weights : `weight`, (classes,) factor of each class's loss, or None.
    reduction, ignore_index, label_smoothing : see `cross_entropy`.
    options : accepted; PyTorch's say in which pieces it computes, here the logits are one tensor.

    Raises
    ------
    ShapeError : sizes that do not fit.
    ArgumentError : `ignore_index` with probabilities.
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise ShapeError(f"expected linear_weight with dimensionality at least 2, got {weight.ndim}")
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    outputs = tuple(weight.shape[:-1])
    if bias is not None and tuple(bias.shape) != outputs:
        raise ShapeError(f"expected linear_bias shape {outputs}, got {tuple(bias.shape)}")
    if len(outputs) > 1 and input.ndim == 1:
        raise ShapeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, got "
            f"unbatched input with shape {tuple(input.shape)}"
        )
    flat = reshape(weight, (numel(outputs), weight.shape[-1]))
    logits = linear(input, flat, None if bias is None else reshape(bias, (numel(outputs),)))
    logits = reshape(logits, (*input.shape[:-1], *outputs))
    if ignore_index is not None and target.ndim == logits.ndim and target.dtype.kind == "f":
        raise ArgumentError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weights, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


__all__ = ["linear_cross_entropy"]
