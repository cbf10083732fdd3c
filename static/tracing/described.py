"""The options and names of a function that its traces depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from static.graph import Source
from static.lowering.ir.options import CompileOptions
from static.passes import Pass


class Described(Protocol):
    """A function to trace, and how its programs are made.

    Attributes
    ----------
    target : what is traced.
    home : file, line and name of its definition.
    options : how its programs are compiled.
    interpret : whether they are interpreted instead.
    control_flow : "guard" or "convert", where Python may decide on elements; see `static.tracing.decisions`.
    memory_budget : bytes for temporaries, or None.
    donate_argnums : arguments whose arrays may be overwritten by results.
    passes : in place of the default ones, or None.
    """

    __name__: str
    target: Callable[..., Any]
    home: Source
    options: CompileOptions
    interpret: bool
    control_flow: str | None
    memory_budget: int | None
    donate_argnums: tuple[int, ...]
    passes: tuple[Pass, ...] | None
