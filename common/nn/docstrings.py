"""Docstrings of classes that take the parameters of another class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


def sections_of(documented: type) -> Callable[[Kind], Kind]:
    """Give a class, whose docstring is one line, the sections of another's: parameters, attributes, errors."""
    sections = (documented.__doc__ or "").partition("\n")[2]

    def give(kind: Kind) -> Kind:
        kind.__doc__ = f"{kind.__doc__}\n{sections}"
        return kind

    return give
