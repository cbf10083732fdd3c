"""The squared difference of `mse_loss` and its reduction as one op."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from common.core.dispatch import Attrs
from common.core.dtypes import refuse
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import away_from_zero
from common.ops.loss.reduction import reduced


def _squared(x: Any, target: Any, *, reduction: str) -> Any:
    difference = x - target
    refuse("mse_loss", difference)
    return reduced(difference * difference, reduction)


def _squared_rule(g: Any, x: Any, target: Any, reduction: str) -> Any:
    difference = x - target
    half = (g / numel(difference.shape) if reduction == "mean" else g) * difference
    return half + half


def _squared_samples(rng: Any, dtype: Any) -> list[Any]:
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,))]
    return [(tuple(away_from_zero(rng, shape, dtype) for shape in both), {"reduction": reduction})
            for both in shapes for reduction in ("mean", "sum", "none")]  # fmt: skip


squared_ = composite(
    "mse_loss", _squared, (_squared_rule, lambda g, x, target, reduction: -_squared_rule(g, x, target, reduction)),
    inputs=("x", "target"), samples=_squared_samples,
    doc="d d, d = x - target, then reduced. d/dx = d + d, divided by their number for a mean; d/dtarget = -d/dx.",
)  # fmt: skip


@lru_cache
def known_reduction(reduction: str) -> Attrs:
    """The attributes of `squared_`."""
    return Attrs(reduction=reduction)
