"""What is switched on in the running context: recording of gradients, and the trace that is open, if any."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

grad_mode: ContextVar[bool] = ContextVar("twingrad_grad_mode", default=True)
_trace: ContextVar[Any] = ContextVar("twingrad_trace", default=None)

#: Number of open traces in the process; the eager engine's hot path reads this before the ContextVar.
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


def is_grad_enabled() -> bool:
    """Whether ops are recorded in this context."""
    return grad_mode.get()
