"""Utilities around differentiation and training: checkpointing, data, TensorBoard."""

import importlib
from typing import TYPE_CHECKING, Any

from common.api.places import open_places
from common.core import absent
from common.tensor import boundary
from common.tensor.swapping import swap_tensors
from static.utils import checkpoint

open_places(__name__)

__all__ = ["benchmark", "checkpoint", "data", "swap_tensors"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("benchmark", "data"):  # loaded when it is first asked for
            return importlib.import_module(f"{__name__}.{name}")
        return absent.refuse(__name__, name)


boundary.close(__name__)
