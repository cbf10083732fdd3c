"""Utilities around differentiation and training: checkpointing, data, TensorBoard."""

import importlib
from typing import TYPE_CHECKING, Any

from common.core import absent
from common.tensor import boundary
from static.utils import checkpoint

__all__ = ["checkpoint", "data"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "data":  # loaded when it is first asked for
            return importlib.import_module("static.utils.data")
        return absent.refuse(__name__, name)


boundary.close(__name__)
