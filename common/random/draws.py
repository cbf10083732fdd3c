"""How many numbers are drawn from the default generator while something runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any


class counted:
    """Context manager that counts what this thread draws from the default generator; a Dim in a trace.

    Attributes
    ----------
    count : how many numbers so far.
    """

    def __init__(self) -> None:
        self.count: Any = 0

    def __enter__(self) -> counted:
        self._token = _counters.set((*_counters.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _counters.reset(self._token)


class uncounted:
    """Context manager inside which nothing is counted, because it runs another number of times than once."""

    def __enter__(self) -> None:
        self._token = _counters.set(())

    def __exit__(self, *exc: object) -> None:
        _counters.reset(self._token)


def note_drawn(count: Any) -> None:
    """Count numbers that have been drawn from the default generator: an int, a Dim, or a traced value."""
    for counter in _counters.get():
        counter.count = counter.count + count


_counters: ContextVar[tuple[counted, ...]] = ContextVar("counted", default=())
