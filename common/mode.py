"""What is switched on in the running context: recording of gradients, and the trace that is open, if any."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

grad_mode: ContextVar[bool] = ContextVar("twingrad_grad_mode", default=True)
#: The profile that is open in this context, see `common.profiler`; read only while `tracing` is not 0.
profiling: ContextVar[Any] = ContextVar("twingrad_profile", default=None)
_trace: ContextVar[Any] = ContextVar("twingrad_trace", default=None)

#: Number of open traces, profiles and other observers in the process; the eager engine's hot path reads this before the
#: ContextVars.
tracing = 0


def current_trace() -> Any:
    """The trace that records ops in this context, or None."""
    return _trace.get() if tracing else None


class activate_trace:
    """Context manager: ops in this context are recorded by `trace`; None suspends tracing."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace

    def __enter__(self) -> Any:
        global tracing
        tracing += 1
        self.token = _trace.set(self.trace)
        return self.trace

    def __exit__(self, *exc: object) -> None:
        global tracing
        tracing -= 1
        _trace.reset(self.token)


class set_grad_enabled:
    """Context manager and decorator that switches the recording of gradients.

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
        self.mode = bool(mode)
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(grad_mode.set(self.mode))

    def __exit__(self, *exc: object) -> None:
        grad_mode.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        """Decorate: every call of `function` runs in a context of its own."""
        mode = self.mode

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with set_grad_enabled(mode):
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


class no_grad(set_grad_enabled):
    """Context manager and decorator: ops inside are not recorded."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(False)
        if function is not None:
            raise TypeError("no_grad is used as `@no_grad()` or `with no_grad():`")


class enable_grad(set_grad_enabled):
    """Context manager and decorator: ops inside are recorded, also within `no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)


_inference: ContextVar[bool] = ContextVar("twingrad_inference_mode", default=False)


class inference_mode(set_grad_enabled):
    """Context manager and decorator for programs that never ask for a gradient; records as little as `no_grad`.

    Parameters
    ----------
    mode : False ends the mode inside a block, and records again; or the function, as in ``@inference_mode``.

    Notes
    -----
    PyTorch refuses to record tensors made in this mode later on. Here they are plain tensors, as those of `no_grad`:
    a mark on each would cost time in every program.

    Examples
    --------
    >>> with inference_mode():
    ...     is_inference_mode_enabled(), is_grad_enabled()
    (True, False)
    """

    def __new__(cls, mode: Any = True) -> Any:
        """The context; used as ``@inference_mode``, the decorated function."""
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        super().__init__(not mode)
        self._inference: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._inference.append(_inference.set(not self.mode))
        super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        _inference.reset(self._inference.pop())

    def __call__(self, function: F) -> F:
        """Decorate: every call of `function` runs in a context of its own."""
        enabled = not self.mode

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with inference_mode(enabled):
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this context."""
    return _inference.get()


def is_grad_enabled() -> bool:
    """Whether ops are recorded in this context."""
    return grad_mode.get()
