"""Operators by namespace and name, as in `torch.ops`: the engine's functions under `aten`, and users' own."""

import sys
from typing import Any

from common.api.operator_namespaces import Namespace
from common.api.operator_namespaces import load_library as load_library

__all__ = ["load_library"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = Namespace(name, sys.modules[__name__.partition(".")[0]])
    return made
