"""The public functions, engine-neutral: what they compute follows from their operands.

They are what the modules of `common.ops` name in their `__all__`; a new file there is found by its place.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

from common import ops
from common.ops._node_names import shown

_MODULES = [
    import_module(found.name) for found in walk_packages(ops.__path__, f"{ops.__name__}.") if found.name != __name__
]

_PUBLIC = {name: shown(name, getattr(module, name)) for module in _MODULES for name in getattr(module, "__all__", ())}

globals().update(_PUBLIC)

__all__ = list(dict(sorted(_PUBLIC.items())))

if TYPE_CHECKING:  # the names are collected, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...
