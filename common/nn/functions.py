"""The public functions that modules call, bound as methods are: an engine that remembers their ops does so here.

Each is bound when a module first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.methods import named

_bound: dict[str, Callable[..., Any]] = {}


def _forget() -> None:
    for name in _bound:
        del globals()[name]
    _bound.clear()


named.extended.append(_forget)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    _bound[name] = globals()[name] = named.bound(name)
    return _bound[name]
