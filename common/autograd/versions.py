"""PyTorch's `_version`, `_base` and `_is_view`: a tensor's count of writes, and the tensor it is a view of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from common.core.errors import GradientError
from common.core.source_lines import user_frame
from common.tensor.base import TensorBase
from common.tensor.inference import is_inference
from common.tensor.write_log import log_write, writes_to


def version(x: TensorBase) -> int:
    """How many writes there have been to the memory of a tensor, its views' and aliases' among them.

    Raises
    ------
    GradientError : it is an inference tensor.
    """
    if is_inference(x):
        raise GradientError("Inference tensors do not track version counter.")
    return writes_to(x.payload) if isinstance(x.payload, np.ndarray) else 0


def increment_version(tensor: TensorBase | Iterable[TensorBase]) -> None:
    """Say that the memory of a tensor has been written to by means that nobody notices.

    Parameters
    ----------
    tensor : one, or several; nothing is said of inference tensors, whose writes nobody counts.
    """
    several: Any = (tensor,) if isinstance(tensor, TensorBase) else tensor
    for x in several:
        if is_inference(x):
            continue
        log_write(x.payload, *user_frame(2))


def base_of(x: TensorBase) -> Any:
    """The tensor whose memory a view shows; None for a tensor that is no view, and for an inference tensor."""
    if is_inference(x):
        return None
    place = getattr(x, "_family", None)
    return place[1] if type(place) is tuple else None


def is_view(x: TensorBase) -> bool:
    """Whether a tensor is a view of another one."""
    return base_of(x) is not None


METHODS = {"_version": property(version), "_base": property(base_of), "_is_view": is_view}
