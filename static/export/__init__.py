"""Programs that leave: as a networkx DAG, as a file, as a module of numba, as a C library, as ONNX.

The module is also the function ``static.export(f, *args)``, see `static.export.program_file.export`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A module that can be called, as `torch.export` has the function that it is about."""

    def __call__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """`static.export.program_file.export`."""
        from static.export.program_file import export

        return _published(export)(f, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("Dim", "export", "load", "save"):
            from static.export import exported_program

            return _published(getattr(exported_program, name))
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def _published(function: Callable[..., Any]) -> Callable[..., Any]:
    from common.tensor import boundary

    made: Callable[..., Any] = boundary.published(function)
    return made


sys.modules[__name__].__class__ = _Room
