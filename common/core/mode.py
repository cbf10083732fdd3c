"""What is switched on in the running context: recording of gradients, and the trace that is open, if any."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

from common.core.locks import after_fork
from common.core.switching import Change, Effect, Setting, Switching

F = TypeVar("F", bound=Callable[..., Any])

grad_mode: ContextVar[bool] = ContextVar("twingrad_grad_mode", default=True)
#: The profile that is open in this context, see `common.tools.profiling.profiler`; read only while `tracing` is not 0.
profiling: ContextVar[Any] = ContextVar("twingrad_profile", default=None)
_trace: ContextVar[Any] = ContextVar("twingrad_trace", default=None)

#: Open traces, profiles and other observers in the process, and the threads that opened them; the eager engine's hot
#: path asks whether there are any before it reads the ContextVars.
tracing: dict[object, int] = {}

#: Number of changes so far of Python state on which compiled programs rely, see `static.tracing.assumptions`.
changes = 0


def note_change() -> None:
    """Say that such state has changed: compiled programs look again at what they rely on."""
    global changes
    changes += 1


def current_trace() -> Any:
    """The trace that records ops in this context, or None."""
    return _trace.get() if tracing else None


def replayed() -> bool:
    """Whether what runs is traced, for calls to repeat it; what builds a `static.Graph` is not: it runs once."""
    trace = current_trace()
    return trace is not None and trace.replays


def outside_graphs() -> AbstractContextManager[Any]:
    """Context manager: what a `static.Graph` would record runs at once; a trace still records."""
    return nullcontext() if replayed() else activate_trace(None)


def watched() -> tuple[Effect, Effect]:
    """What makes ops look at the ContextVars, and what ends that."""
    key = object()
    return partial(tracing.__setitem__, key, get_ident()), partial(tracing.pop, key, None)


def _forget_other_threads() -> None:
    for key in [key for key, thread in tracing.items() if thread != get_ident()]:
        del tracing[key]


after_fork(_forget_other_threads)


class activate_trace(Switching):
    """Context manager: ops in this context are recorded by `trace`; None suspends tracing."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace

    def _change(self) -> Change:
        begin, end = watched()
        return Change((begin, partial(_trace.set, self.trace)), (partial(_trace.set, _trace.get()), end), self.trace)


class GradSwitch(Setting):
    """Context manager, and decorator, that switches the recording of gradients.

    A decorated generator or coroutine runs in the context whenever it goes on, and only then.

    Parameters
    ----------
    mode : whether ops on tensors that require gradients are recorded.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        super().__init__(grad_mode, self.mode)

    def _again(self) -> GradSwitch:
        """Another context of the same kind: every call of a decorated function has its own."""
        return GradSwitch(self.mode)

    def __call__(self, function: F) -> F:
        """Decorate: every call of `function` runs in a context of its own."""
        return decorated(function, self._again)


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

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before = grad_mode.get()
        self._entered().append(self._before)
        try:
            grad_mode.set(self.mode)
        except BaseException:
            grad_mode.set(self._before)
            raise

    def _enter(self) -> Callable[..., Any]:
        return partial(self._entered().append, self._before)

    def __call__(self, function: F) -> F:
        """Decorate: nothing is switched until `function` is called."""
        grad_mode.set(self._before)
        return super().__call__(function)


class _Decorating(type):
    """Makes ``@no_grad`` the same as ``@no_grad()``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], bool):
            return super().__call__()(args[0])
        return super().__call__(*args, **kwargs)


class no_grad(GradSwitch, metaclass=_Decorating):
    """Context manager and decorator: ops inside are not recorded."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(GradSwitch, metaclass=_Decorating):
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)


_inference: ContextVar[bool] = ContextVar("twingrad_inference_mode", default=False)
#: Whether there may be inference tensors: only then anybody looks for them.
inference_seen = False
#: Called when the mode is entered first.
on_inference: list[Callable[[], None]] = []


class inference_mode(GradSwitch, metaclass=_Decorating):
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
        super().__init__(not mode)

    def _change(self) -> Change:
        global inference_seen
        enabled, before = not self.mode, _inference.get()
        if enabled and not inference_seen:
            inference_seen = True
            for call in on_inference:
                call()
        begin, end = watched()
        return Change(
            (partial(_inference.set, enabled), *([begin] if enabled else ()), partial(grad_mode.set, self.mode)),
            (partial(grad_mode.set, grad_mode.get()), end, partial(_inference.set, before)),
        )

    _enter, _leave = Switching._enter, Switching._leave

    def _again(self) -> GradSwitch:
        again: GradSwitch = inference_mode(not self.mode)
        return again


def decorated(function: F, context: Callable[[], Any]) -> F:
    """A function whose every call, or step, runs in a context of its own.

    Parameters
    ----------
    function : plain, a generator, a coroutine, or an asynchronous generator.
    context : makes the context.
    """
    wrapper: Any
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with context():
                inner = function(*args, **kwargs)
                step = functools.partial(next, inner)
            while True:
                with context():
                    try:
                        given = step()
                    except StopIteration as stopped:
                        return stopped.value
                try:
                    sent = yield given
                    step = functools.partial(inner.send, sent)
                except GeneratorExit:
                    with context():
                        inner.close()
                    raise
                except BaseException as error:
                    step = functools.partial(inner.throw, error)

    elif inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with context():
                return await function(*args, **kwargs)

    elif inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            inner = function(*args, **kwargs)
            while True:
                with context():
                    try:
                        given = await anext(inner)
                    except StopAsyncIteration:
                        return
                yield given

    else:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with context():
                return function(*args, **kwargs)

    made: F = wrapper
    return made


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this context."""
    return _inference.get()


def is_grad_enabled() -> bool:
    """Whether ops are recorded in this context."""
    return grad_mode.get()
