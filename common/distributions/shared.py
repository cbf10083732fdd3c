"""Functions that PyTorch's distributions share, under the names by which users' own distributions import them."""

from __future__ import annotations

from typing import Any

from common.distributions.distribution import Shape, normal
from common.distributions.transforms import sum_rightmost as _sum_rightmost

__all__ = ["_standard_normal", "_sum_rightmost"]


def _standard_normal(shape: Shape, dtype: Any, device: Any = None) -> Any:
    """Standard normal draws, (shape): the noise of `rsample`."""
    return normal(shape, dtype)
