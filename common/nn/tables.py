"""The tables in which a module keeps its parameters, buffers and modules, by their names."""

from __future__ import annotations

from typing import Any

from common.core import mode
from common.tensor.hook_handles import NotesChanges

TABLES = ("_parameters", "_buffers", "_modules")


class Table(NotesChanges, dict[str, Any]):
    """What a module keeps under names, also where programs write past the module's methods."""


class TableAttribute:
    """A table as an attribute of a module: a trace that reads it relies on the module, be it called or not."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, kind: type) -> Any:
        if module is None:
            return self
        try:
            table = module.__dict__[self.name]
        except KeyError:
            raise AttributeError(self.name) from None  # the module's __getattr__ says more
        if mode.tracing and (trace := mode.current_trace()) is not None:
            trace.note_module(module, whole=False)
        return table

    def __set__(self, module: Any, value: Any) -> None:
        module.__dict__[self.name] = value


def held(module: Any) -> dict[str, Any]:
    """Everything in a module's tables, by name; no trace takes note."""
    tables = module.__dict__
    return {**tables["_parameters"], **tables["_buffers"], **tables["_modules"]}


def within(module: Any, seen: set[int]) -> list[Any]:
    """A module and all below it that are not among `seen` ids, to which they are added; no trace takes note."""
    if id(module) in seen:
        return []
    seen.add(id(module))
    below = [m for m in module.__dict__["_modules"].values() if m is not None]
    return [module, *(x for m in below for x in within(m, seen))]


def join(prefix: str, name: str) -> str:
    """The qualified name of what a module of the name `prefix`, perhaps "", has under a name."""
    return f"{prefix}.{name}" if prefix else name
