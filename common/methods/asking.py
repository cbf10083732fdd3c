"""Whether public functions ask classes and modes before they run: once a program has one, see `torch_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: ``called(function, plain, args, kwargs)``: what a public function gives that does `plain` itself; None if none asks.
called: Callable[..., Any] | None = None
_followers: list[Callable[[], None]] = []


def begin(by: Callable[..., Any]) -> None:
    """From here on ``by(function, plain, args, kwargs)`` gives what the functions do."""
    global called
    called = by
    for follow in _followers:
        follow()


def when_begun(follow: Callable[[], None]) -> Callable[[], None]:
    """Decorator: the function is called when functions begin to ask, or now if they do."""
    _followers.append(follow)
    if called is not None:
        follow()
    return follow
