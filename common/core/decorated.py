"""Functions whose every call, or step, runs in a context of its own: the part of a manager that decorates."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from common.core.source_lines import warn_user

F = TypeVar("F", bound=Callable[..., Any])


def decorated(function: F, context: Callable[[], Any]) -> F:
    """A function whose every call, or step, runs in a context of its own.

    Parameters
    ----------
    function : plain, a generator, a coroutine, or an asynchronous generator.
    context : makes the context.
    """
    wrapper: Any
    if inspect.isclass(function):
        warn_user(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods: decorate `__init__`, which is what this does.",
            FutureWarning,
        )
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


__all__ = ["decorated"]
