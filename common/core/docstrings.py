"""Docstrings of functions and classes that take the parameters of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

_FIRST = re.compile(r"\n\n *(?:Parameters|Returns|Raises|Attributes)\n *--")
_AFTER = re.compile(r"\n\n *(?:Examples|Notes|References)\n *--")


def sections_of(documented: Callable[..., Any]) -> Callable[[Documented], Documented]:
    """Give a function or class the sections of another's docstring: parameters, results, errors, attributes."""
    first = _FIRST.search(text := (documented.__doc__ or "").rstrip())
    after = _AFTER.search(text)
    sections = text[first.start() if first else len(text) : after.start() if after else len(text)]

    def give(own: Documented) -> Documented:
        examples = _AFTER.search(text := (own.__doc__ or "").rstrip())
        end = examples.start() if examples else len(text)
        own.__doc__ = f"{text[:end]}{sections}{text[end:]}\n    "
        return own

    return give
