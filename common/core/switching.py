"""Context managers that an interrupt cannot leave half done.

Ctrl-C raises between two instructions of Python code: inside ``__enter__`` after its effect, and nobody calls
``__exit__``; or at the beginning of ``__exit__``, which then has no effect. It never raises inside a builtin. So the
two methods of a `Switching` are builtins, made of builtins: Python code prepares them when a `with` statement looks
them up, which is before either is called, and while nothing has changed.

What no manager can promise: an interrupt between ``__init__`` and the statement it is for, where ``__init__`` has an
effect (`set_grad_enabled`); or in Python code that calls the two methods in place of a `with` statement, such as
`contextlib.ExitStack`.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial, wraps
from itertools import compress, repeat
from operator import call, itemgetter, not_
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

Effect = Callable[[], Any]
_truth = partial(bool, True)
_call: Any = call
_first: Any = itemgetter(0)
_NEVER = object()
P = ParamSpec("P")


class Change(NamedTuple):
    """The change that a manager is about to make.

    Attributes
    ----------
    on, off : callables without arguments, in order: the effects of entering and of leaving. Builtins, and partials of
        these; Python functions only behind all of them.
    value : what ``with ... as`` gives.
    """

    on: tuple[Effect, ...]
    off: tuple[Effect, ...]
    value: Any = None


class Ending(io.IOBase):
    """Calls its attribute `close`, whatever it is given: the only such ``__exit__`` among builtins.

    Attributes
    ----------
    ends : the exits of a manager, one per time that it has been entered.
    """

    __slots__ = ("close", "ends")

    closed = True  # else it would be closed when it is freed


def _all(effects: Iterable[Effect]) -> Effect:
    """A builtin that calls all of them, once; its result is empty, so false."""
    return partial(deque, map(_call, effects), 0)


#: Called with a manager and the error that its preparation raised: raises what is to leave instead, if anything.
refusals: list[Callable[[Any, Exception], None]] = []


class _Method:
    """A method that is looked up where it is needed.

    Whoever only looks finds a method, as `hasattr` does: what refuses to be prepared refuses when it is called.

    Parameters
    ----------
    prepared : gives it, as a builtin.
    """

    def __init__(self, prepared: Callable[[Any], Callable[..., Any]]) -> None:
        self._prepared = prepared

    def __get__(self, manager: Any, owner: type) -> Callable[..., Any]:
        if manager is None:
            return lambda manager, *exc: self._prepared(manager)(*exc)
        try:
            return self._prepared(manager)
        except Exception:
            return lambda *exc: self._refused(manager)(*exc)

    def _refused(self, manager: Any) -> Callable[..., Any]:
        try:
            return self._prepared(manager)
        except Exception as error:
            for refuse in refusals:
                refuse(manager, error)
            raise


class Switching:
    """A context manager that changes something, and changes it back, wherever an interrupt lands.

    A subclass has a method ``_change()``, which says what to do and does nothing.
    """

    _ending: Any = None

    if TYPE_CHECKING:  # a subclass has it

        def _change(self) -> Change: ...

    def _enter(self) -> Callable[..., Any]:
        change = self._change()
        begin = _all((*change.on, partial(self._entered().append, _all(change.off))))
        return partial(next, compress(repeat(change.value), map(_call, (begin, _truth))))

    def _exit(self) -> Callable[..., None]:
        self._entered()
        leave: Callable[..., None] = self._ending.__exit__
        return leave

    def _leave(self, last: Iterator[Any]) -> Iterator[Any]:
        """A generator that leaves when it is asked for its next item; false, or exceptions would be caught."""
        return map(_call, last)

    def _entered(self) -> list[Any]:
        """The exits of a manager, one per time that it has been entered."""
        if self._ending is None:
            ending: Any = Ending()
            ending.ends = []
            ending.close = self._leave(iter(ending.ends.pop, _NEVER)).__next__
            vars(self).setdefault("_ending", ending)  # of threads that come here at once, all take that of one
        ends: list[Any] = self._ending.ends
        return ends

    def _is_on(self, *off: Effect) -> None:
        """Say that the effects of entering are there already; leaving has these."""
        self._entered().append(_all(off))

    __enter__ = _Method(lambda manager: manager._enter())
    __exit__ = _Method(lambda manager: manager._exit())


class Switched(Switching, ContextDecorator):
    """A `Switching` made by a function, see `switching`; it decorates functions too."""

    def __init__(self, change: Callable[[], Change]) -> None:
        self._made = change

    def _change(self) -> Change:
        return self._made()

    def _recreate_cm(self) -> Switched:
        """A manager of each call of a decorated function: calls in several threads end in any order."""
        return Switched(self._made)


def switching(change: Callable[P, Change]) -> Callable[P, Switched]:
    """Decorator: a function that says what to do, and does nothing, makes a context manager that does it."""

    @wraps(change)
    def make(*args: P.args, **kwargs: P.kwargs) -> Switched:
        return Switched(partial(change, *args, **kwargs))

    return make


def when(effect: Effect, *conditions: Effect) -> Effect:
    """An effect, a builtin, that is there only if builtins say so at the time; to be called once."""
    return _all(compress((effect,), map(all, (map(_call, conditions),))))


class Setting(Switching):
    """A `Switching` of one variable of the context, which takes a third of the time.

    Parameters
    ----------
    variable, value : what is set, and to what.
    """

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable, self._value = variable, value

    def _enter(self) -> Callable[..., Any]:
        variable = self._variable
        before = map(self._entered().append, (variable.get(),))
        return map(_first, zip(before, map(variable.set, (self._value,)))).__next__

    def _leave(self, last: Iterator[Any]) -> Iterator[Any]:
        return map(not_, map(self._variable.set, last))
