"""How many numbers are drawn from the default generator while something runs, and for what; draws as constants."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

from common.core import mode
from common.core.switching import Change, Setting, Switching
from common.tensor.base import TensorBase


class counted(Switching):
    """Context manager that counts what this thread draws from the default generator; a Dim in a trace.

    Attributes
    ----------
    count : how many numbers so far.
    """

    def __init__(self) -> None:
        self.count: Any = 0

    def _change(self) -> Change:
        before = _counters.get()
        return Change((partial(_counters.set, (*before, self)),), (partial(_counters.set, before),), self)


class uncounted(Setting):
    """Context manager inside which nothing is counted, because it runs another number of times than once."""

    def __init__(self) -> None:
        super().__init__(_counters, ())


class _Refusing:
    """A count that nothing can be added to."""

    __slots__ = ()
    count: Any = property(lambda self: 0)


class refuse_draws(Switching):
    """Context manager inside which drawing from the default generator raises AttributeError, and draws nothing."""

    def _change(self) -> Change:
        before = _counters.get()
        return Change((partial(_counters.set, (*before, _Refusing())),), (partial(_counters.set, before),))


def note_drawn(count: Any) -> None:
    """Count numbers that have been drawn from the default generator: an int, a Dim, or a traced value."""
    for counter in _counters.get():
        counter.count = counter.count + count


_counters: ContextVar[tuple[counted | _Refusing, ...]] = ContextVar("counted", default=())


def constant_in(drawn: Any, *parameters: Any) -> Any:
    """A draw as a function of its parameters whose derivatives are zero; an op says so where one is asked for."""
    level = mode.dual_level.get() if mode.tracing else None
    for x in parameters:
        if not isinstance(x, TensorBase):
            continue
        if (x.requires_grad and mode.is_grad_enabled()) or (level is not None and level.tangent(x) is not None):
            from common.ops.math.compare import where

            drawn = where(True, drawn, x)
    return drawn


def drawn_by(*parameters: Any, into: Any = None) -> None:
    """Tell what interprets the program of a draw: the tensors that say how, and the one that takes the numbers."""
    trace = mode.current_trace()
    if trace is not None and trace.drawn_by is not None:
        trace.drawn_by([x for x in parameters if not isinstance(x, (int, float))], into)
