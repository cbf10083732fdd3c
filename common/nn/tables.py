"""The tables in which a module keeps its parameters, buffers and modules, by their names."""

from __future__ import annotations

from typing import Any

from common.tensor.hook_handles import NotesChanges

TABLES = ("_parameters", "_buffers", "_modules")


class Table(NotesChanges, dict[str, Any]):
    """What a module keeps under names, also where programs write past the module's methods."""


def held(module: Any) -> dict[str, Any]:
    """Everything in a module's tables, by name."""
    return {**module._parameters, **module._buffers, **module._modules}


def join(prefix: str, name: str) -> str:
    """The qualified name of what a module of the name `prefix`, perhaps "", has under a name."""
    return f"{prefix}.{name}" if prefix else name
