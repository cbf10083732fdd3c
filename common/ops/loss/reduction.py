"""How losses are reduced, as PyTorch's `reduction` says."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.ops.reduce.reductions import mean, sum


def check_reduction(reduction: str) -> None:
    """Refuse what is no reduction.

    Raises
    ------
    ArgumentError : it is not "mean", "sum" or "none".
    """
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")


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
    check_reduction(reduction)
    return losses
