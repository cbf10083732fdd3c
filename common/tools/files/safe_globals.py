"""PyTorch's list of classes that its files may make: files here hold no classes, so all are accepted, none is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Accept classes; `load` needs none.

    Parameters
    ----------
    safe_globals : classes and functions.
    """


def clear_safe_globals() -> None:
    """Do nothing: the list is empty."""


def get_safe_globals() -> list[Any]:
    """The empty list."""
    return []


@contextlib.contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """A block in which classes are accepted; `load` needs none.

    Parameters
    ----------
    safe_globals : classes and functions.
    """
    yield
