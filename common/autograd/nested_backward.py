"""Backward passes inside backward passes, however deep: some levels share a thread, and so a stack, of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

#: Levels per stack: Python takes about ten frames for each, besides the user's, and allows a thousand.
LEVELS = 24


class _Level(threading.local):
    """How deep this thread is."""

    depth = 0


_level = _Level()


def depth() -> int:
    """How many functions of users run in each other in this thread."""
    return _level.depth


def nested(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's `backward`, which may start a pass that calls the next one."""
    if _level.depth >= LEVELS:
        return _elsewhere(function, args)
    _level.depth += 1
    try:
        return function(*args)
    finally:
        _level.depth -= 1


def _elsewhere(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a function in a thread with the modes of this one, and wait for it."""
    outcome: list[Any] = [None, None]

    def run() -> None:
        try:
            outcome[0] = nested(function, *args)
        except BaseException as error:
            outcome[1] = error

    thread = threading.Thread(target=copy_context().run, args=(run,), name="twingrad-backward")
    thread.start()
    thread.join()
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]
