"""Losses: compositions of ops."""

from __future__ import annotations

from typing import Any

from common.errors import ArgumentError, DTypeError, ShapeError
from common.ops.index import pick
from common.ops.normalize import log_softmax
from common.ops.reduce import mean, sum


def _reduce(losses: Any, reduction: str) -> Any:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")


def nll_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Minus the log-probability of the target class.

    Parameters
    ----------
    input : (batch, classes) or (classes,), log-probabilities.
    target : (batch,) or () int64 or int32, in [0, classes).
    reduction : "mean", "sum" or "none".

    Raises
    ------
    IndexRangeError : a target outside [0, classes).
    ShapeError : target does not have one class per row.
    DTypeError : target is not int64 or int32.
    ArgumentError : another value of `reduction`.
    """
    if target.dtype.kind not in "iu" or target.dtype.itemsize < 4:
        raise DTypeError(f"nll_loss(): expected a target of dtype int64 or int32, got {target.dtype}")
    if input.ndim not in (1, 2) or target.ndim != input.ndim - 1:
        raise ShapeError(
            f"nll_loss(): expected input (batch, classes) and target (batch,), got {tuple(input.shape)} and "
            f"{tuple(target.shape)}"
        )
    if target.ndim == 1 and input.shape[0] != target.shape[0]:
        raise ShapeError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]})."
        )
    return _reduce(-pick(input, target), reduction)


def cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Any:
    """``nll_loss(log_softmax(input), target)``: see there.

    Parameters
    ----------
    input : (batch, classes) or (classes,), logits.
    target : (batch,) or () int64 or int32, in [0, classes).
    reduction : "mean", "sum" or "none".

    Raises
    ------
    IndexRangeError, ShapeError, DTypeError, ArgumentError : see `nll_loss`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cross_entropy(tw.zeros(2, 4), tw.tensor([0, 3]))
    tensor(1.3863)
    """
    return nll_loss(log_softmax(input, -1), target, reduction)


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
    return _reduce(difference * difference, reduction)


__all__ = ["cross_entropy", "mse_loss", "nll_loss"]
