"""Switches of the running context: recording of gradients, and the open trace, if any."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from itertools import repeat
from operator import itemgetter, not_
from sys import getrefcount
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from common.core.decorated import decorated as decorated
from common.core.errors import ArgumentError
from common.core.int_arguments import shown
from common.core.interpretation import OpenTrace
from common.core.locks import after_fork
from common.core.switching import Change, Ending, Setting, Switching
from common.core.weak import forgetting

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

grad_mode: ContextVar[bool] = ContextVar("twingrad_grad_mode", default=True)
#: The profile that is open in this context, see `common.tools.profiling.profiler`; read only while `tracing` is not 0.
profiling: ContextVar[Any] = ContextVar("twingrad_profile", default=None)
#: The level of forward-mode derivatives that is open, see `common.autograd.forward_level`; read as `profiling` is.
dual_level: ContextVar[Any] = ContextVar("twingrad_dual_level", default=None)
_trace: ContextVar[OpenTrace | None] = ContextVar("twingrad_trace", default=None)
open_trace = _trace.get
switch_trace = _trace.set  # inside an `activate_trace`, whose end undoes it

#: Open traces, profiles and other observers in the process, and the threads that opened them, and views that
#: `inference.mark_result` watches; the eager engine's hot path asks whether there are any before it reads the
#: ContextVars.
tracing: dict[Any, Any] = {}
#: Number of changes so far of Python state on which compiled programs rely, see `static.tracing.assumptions`.
changes = 0


def stay_on_generic_path(x: object) -> None:
    """Keep the eager engine off its hot path while an object lives."""
    tracing[id(x)] = forgetting(x, tracing, id(x))


def leave(key: Any) -> Any:
    """Take an observer out for a while; what it was, for `come_back`, None if it was not there."""
    return tracing.pop(key, None)


def come_back(key: Any, observer: Any) -> None:
    """Put back what `leave` took out."""
    if observer is not None:
        tracing[key] = observer


def note_change() -> None:
    """Say that such state has changed: compiled programs look again at what they rely on."""
    global changes
    changes += 1


def current_trace() -> OpenTrace | None:
    """The trace that records ops in this context, or None."""
    return _trace.get() if tracing else None


def tangents_around() -> Any:
    """The open level of tangents, be it around calls of `vmap`; None if there is none."""
    level, trace = dual_level.get() if tracing else None, current_trace()
    while level is None and trace is not None:
        level, trace = getattr(trace, "level", None), getattr(trace, "outer", None)
    return level


def replayed() -> bool:
    """Whether a trace is recorded for later calls; the trace of a `static.Graph` is not, because it runs once."""
    trace = current_trace()
    return trace is not None and trace.replays


def outside_graphs() -> AbstractContextManager[Any]:
    """Context manager: what a `static.Graph` would record runs at once; a trace still records."""
    return nullcontext() if not tracing or replayed() else activate_trace(None)


class WatchKey:
    """A key of `tracing`; `ends` are the ways out of the manager that has made it."""

    __slots__ = ("ends",)

    def __init__(self, ends: list[Any]) -> None:
        self.ends = ends


def watched(ends: list[Any] | None = None) -> tuple[partial[Any], partial[Any]]:
    """Two effects: one makes ops look at the ContextVars, one ends that."""
    key = WatchKey([] if ends is None else ends)
    return partial(tracing.__setitem__, key, get_ident()), partial(tracing.pop, key, None)


def by_itself(function: Callable[[Any], T], x: Any) -> T:
    """Call a function by itself. A context that it only enters ends with it; one that it only leaves has ended."""
    thread = get_ident()
    before = {key: len(key.ends) for key, own in tracing.copy().items() if type(key) is WatchKey and own == thread}
    try:
        return function(x)
    finally:
        for key, own in [*tracing.copy().items()][::-1]:
            if type(key) is WatchKey and own == thread and key not in before and key.ends:
                key.ends.pop()()
        for key, entered in before.items():
            key.ends += [tuple] * (entered - len(key.ends))  # where its own end comes, there is nothing left to do


def _forget_other_threads() -> None:
    for key in [key for key, thread in tracing.items() if type(thread) is int and thread != get_ident()]:
        del tracing[key]


after_fork(_forget_other_threads)


class activate_trace(Switching):
    """Context manager: ops in this context are recorded by `trace`; None suspends tracing."""

    def __init__(self, trace: OpenTrace | None) -> None:
        self.trace = trace
        #: The key of `tracing`, once it is entered.
        self.key: Any = None

    def _change(self) -> Change:
        begin, end = watched()
        self.key = begin.args[0]
        return Change((begin, partial(_trace.set, self.trace)), (partial(_trace.set, _trace.get()), end), self.trace)


class activate_dual_level(Setting):
    """Context manager: tangents are carried on by `level`; None leaves them behind.

    Parameters
    ----------
    level : a `common.autograd.forward_level.Level`, or None.
    """

    def __init__(self, level: Any) -> None:
        super().__init__(dual_level, level)


class _Decorator:
    """Decorates functions with contexts; a subclass has ``_again()``, which makes one of the same kind."""

    __slots__ = ()

    if TYPE_CHECKING:  # a subclass has it

        def _again(self) -> Any: ...

    def __call__(self, function: F) -> F:
        """Decorate: every call of `function` runs in a context of its own.

        A generator or coroutine runs in the context whenever it goes on, and only then.
        """
        return decorated(function, self._again)


class _Prepared(type):
    """Lets a class whose instances hold their ``__enter__`` answer for it, as `contextlib.ExitStack` asks."""

    __enter__ = property(lambda cls: lambda manager: manager.__enter__())
    __exit__ = property(lambda cls: lambda manager, *raised: manager.__exit__(*raised))


_NEVER = object()
_before: Any = iter(grad_mode.get, _NEVER)
_first: Any = itemgetter(0)
_new = object.__new__
_set: dict[bool, Any] = {mode: map(grad_mode.set, repeat(mode)) for mode in (False, True)}


class GradSwitch(_Decorator, metaclass=_Prepared):
    """Context manager, and decorator, that switches the recording of gradients.

    Its two methods are prepared builtins, so that an interrupt finds it entered or not, see `common.core.switching`:
    ``__enter__`` keeps what was set before and sets `mode`, ``__exit__`` sets what was kept last.

    Parameters
    ----------
    mode : whether ops on tensors that require gradients are recorded.
    """

    __slots__ = ("mode", "_entered", "__enter__", "__exit__")
    #: The last managers made, by mode: one that nobody uses is used again, for to make one takes twice as long as to
    #: use it, see benchmarks/gates/test_views.py. A manager knows nothing of them, so it is in no cycle.
    _known: dict[bool, list[Any]] = {True: [], False: []}

    mode: bool

    def __new__(cls, mode: bool) -> Any:  # noqa: D102
        return _manager(cls, bool(mode))

    def _again(self) -> GradSwitch:
        again: GradSwitch = GradSwitch(self.mode)
        return again

    def __reduce__(self) -> Any:
        return type(self), (self.mode,)

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...

        def __exit__(self, *raised: object) -> None: ...


def _prepare(manager: Any, mode: bool) -> Any:
    """Give a manager its methods."""
    entered: list[bool] = []
    manager.mode, manager._entered = mode, entered
    manager.__enter__ = map(_first, zip(map(entered.append, _before), _set[mode])).__next__
    ending: Any = Ending()
    ending.close = map(not_, map(grad_mode.set, iter(entered.pop, _NEVER))).__next__
    manager.__exit__ = ending.__exit__
    return manager


def _references(known: list[Any]) -> int:
    """How many references there are to a manager that only a list has, as `_manager` counts them."""
    for manager in known:
        return getrefcount(manager)
    return 0


_ALONE = _references([_prepare(_new(GradSwitch), True)])
_KNOWN_MANAGERS = 8


def _manager(cls: Any, mode: bool) -> Any:
    """A manager: one that was used before, if nobody else has it."""
    known = cls._known[mode]
    for manager in known:
        if getrefcount(manager) == _ALONE and manager.__class__ is cls and not manager._entered:
            return manager
    manager = _prepare(_new(cls), mode)
    known.insert(0, manager)
    del known[_KNOWN_MANAGERS:]
    return manager


def _decorating(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Decorate a function by ``@no_grad``, as ``@no_grad()`` does."""
    if len(args) != 1 or kwargs or not callable(args[0]) or isinstance(args[0], bool):
        given = ", ".join([*map(shown, args), *(f"{name}=" for name in kwargs)])
        raise ArgumentError(f"{kind.__name__}(): takes no arguments, or a function to decorate, but got {given}")
    return decorated(args[0], kind)


class set_grad_enabled(GradSwitch):
    """Switch the recording of gradients at once; as a context manager, until the end of the block; or as a decorator.

    Parameters
    ----------
    mode : whether ops on tensors that require gradients are recorded.

    Examples
    --------
    >>> with set_grad_enabled(False):
    ...     grad_mode.get()
    False
    """

    __slots__ = ("_before",)

    _before: bool

    def __new__(cls, mode: bool) -> Any:  # noqa: D102
        self: Any = _new(cls)
        return self

    def __init__(self, mode: bool) -> None:
        _prepare(self, bool(mode))
        self._before = before = grad_mode.get()
        entered: Any = self
        entered._entered.append(before)
        entered.__enter__ = partial(entered._entered.append, before)
        try:
            grad_mode.set(self.mode)
        except BaseException:
            grad_mode.set(before)
            raise

    def __call__(self, function: F) -> F:
        """Decorate: nothing is switched until `function` is called."""
        grad_mode.set(self._before)
        return super().__call__(function)


class no_grad(GradSwitch):
    """Context manager and decorator: ops inside are not recorded."""

    __slots__ = ()
    _known: dict[bool, list[Any]] = {True: [], False: []}

    def __new__(cls, *function: Any, **others: Any) -> Any:  # noqa: D102
        return _decorating(cls, function, others) if function or others else _manager(cls, False)

    def __reduce__(self) -> Any:
        return type(self), ()


class enable_grad(GradSwitch):
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    __slots__ = ()
    _known: dict[bool, list[Any]] = {True: [], False: []}

    def __new__(cls, *function: Any, **others: Any) -> Any:  # noqa: D102
        return _decorating(cls, function, others) if function or others else _manager(cls, True)

    def __reduce__(self) -> Any:
        return type(self), ()


class _Decorating(type):
    """Makes ``@inference_mode`` the same as ``@inference_mode()``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs.keys() <= {"mode"} else ()
        if len(given) == 1 and callable(given[0]) and not isinstance(given[0], bool):
            return super().__call__()(given[0])
        return super().__call__(*args, **kwargs)


_inference: ContextVar[bool] = ContextVar("twingrad_inference_mode", default=False)
#: Whether there may be inference tensors: only then anybody looks for them.
inference_seen = False


class inference_mode(_Decorator, Switching, metaclass=_Decorating):
    """Context manager and decorator for programs that never ask for a gradient.

    What is made inside is marked, see `Tensor.is_inference`: outside it is neither saved for backward nor overwritten.

    Parameters
    ----------
    mode : False ends the mode inside a block, and records again; or the function, as in ``@inference_mode``.

    Notes
    -----
    Nothing is recorded, as under `no_grad`. Marking takes ops the general path, so many ops on small tensors are
    slower here than under `no_grad`; programs without this mode pay nothing for it.

    Examples
    --------
    >>> with inference_mode():
    ...     is_inference_mode_enabled(), is_grad_enabled()
    (True, False)
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode = not mode

    def _change(self) -> Change:
        global inference_seen
        enabled, before = not self.mode, _inference.get()
        if enabled and not inference_seen:
            inference_seen = True
        begin, end = watched()
        return Change(
            (partial(_inference.set, enabled), *([begin] if enabled else ()), partial(grad_mode.set, self.mode)),
            (partial(grad_mode.set, grad_mode.get()), end, partial(_inference.set, before)),
        )

    def _again(self) -> inference_mode:
        return inference_mode(not self.mode)


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this context."""
    return _inference.get()


def is_grad_enabled() -> bool:
    """Whether ops are recorded in this context."""
    return grad_mode.get()
