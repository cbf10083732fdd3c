"""Attributes of modules that are computed of others whenever they are read, such as weights that have been normalised.

A traced program computes them as one that runs eagerly does, and no call has to bring them up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.nn.module import Module


def computed(module: Module) -> Mapping[str, Callable[[Module], Any]]:
    """What computes the attributes of a module, by their names."""
    found: Mapping[str, Callable[[Module], Any]] = module.__dict__.get("_computed_parameters", {})
    return found


def compute(module: Module, name: str, function: Callable[[Module], Any]) -> None:
    """Let an attribute be what a function makes of the module, whenever it is read."""
    object.__setattr__(module, "_computed_parameters", {**computed(module), name: function})


def compute_no_more(module: Module, name: str) -> None:
    """Take such an attribute away."""
    object.__setattr__(module, "_computed_parameters", {key: x for key, x in computed(module).items() if key != name})
