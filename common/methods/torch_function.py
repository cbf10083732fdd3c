"""`__torch_function__`: classes and modes that take a public function over before it runs, as in PyTorch.

Nothing asks for them until a program makes a class of its own of `Tensor` (`own_classes`), enters a mode
(`function_modes`), or hands a function an object of a class that has `__torch_function__`. From then on the public
functions, which `engine_functions.bind` makes, look at the classes of their arguments first.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from common.core.errors import ArgumentError
from common.methods import asking
from common.tensor.base import Tensor, TensorBase

Function = Callable[..., Any]


class _InThread(threading.local):
    """What holds in a thread: how often classes are disabled, and the modes, innermost last."""

    disabled = 0

    def __init__(self) -> None:
        self.modes: list[Any] = []


in_thread = _InThread()


def disabled(func: Function, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """The `__torch_function__` of a class that takes nothing over: call the function."""
    return func(*args, **(kwargs or {}))


_disabled_torch_function_impl = disabled


class _TakesOver(dict[type, bool]):
    """Whether a class takes functions over."""

    def __missing__(self, kind: type) -> bool:
        found = getattr(kind, "__torch_function__", None)
        ours = issubclass(kind, TensorBase) and not hasattr(kind, "_of_program")
        asked = found is not None and found is not disabled and not ours
        self[kind] = asked
        return asked


takes_over = _TakesOver()


def _arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Arguments, and the items of those that are sequences."""
    for x in (*args, *kwargs.values()):
        yield x
        if type(x) in (tuple, list):
            yield from x


def overloaded(args: Sequence[Any], kwargs: Mapping[str, Any] = {}) -> list[Any]:
    """One argument of each class that takes functions over, in the order in which they are asked.

    That is from left to right, but a subclass before the classes that it inherits from.
    """
    found: list[Any] = []
    for x in _arguments(args, kwargs):
        kind = type(x)
        if takes_over[kind] and all(type(other) is not kind for other in found):
            place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
            found.insert(place, x)
    return found


def called(function: Function, plain: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a public function: by the innermost mode, by a class of an argument, or its own.

    Parameters
    ----------
    function : as a program knows it.
    plain : what it does itself.

    Raises
    ------
    ArgumentError : every class that was asked answered NotImplemented.
    """
    if in_thread.modes:
        return by_mode(function, args, kwargs)
    if not in_thread.disabled:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if takes_over[type(x)] or type(x) in (tuple, list):
                if found := overloaded(args, kwargs):
                    return taken_over(function, found, args, kwargs)
                break
    return plain(*args, **kwargs)


def without_asking(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function, while the classes of its arguments are not asked."""
    in_thread.disabled += 1
    try:
        return function(*args, **kwargs)
    finally:
        in_thread.disabled -= 1


def taken_over(function: Function, found: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function by the first of the arguments `found` whose class answers."""
    types = tuple(type(x) for x in found)
    for x in found:
        result = x.__torch_function__(function, types, tuple(args), dict(kwargs))
        if result is not NotImplemented:
            return result
    raise ArgumentError(
        f"no implementation found for '{getattr(function, '__name__', function)}' on types that implement "
        f"__torch_function__: {[kind.__name__ for kind in types]}"
    )


def by_mode(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a function by the innermost mode, which is not in force meanwhile."""
    mode = in_thread.modes.pop()
    try:
        types = tuple(type(x) for x in overloaded(args, kwargs))
        result = mode.__torch_function__(function, types, tuple(args), dict(kwargs))
    finally:
        in_thread.modes.append(mode)
    if result is NotImplemented:
        raise ArgumentError(f"{type(mode).__name__} does not implement {getattr(function, '__name__', function)}")
    return result


class DisableTorchFunctionSubclass:
    """A block in which no class of the arguments is asked before a function runs; modes are."""

    def __enter__(self) -> None:
        """Begin the block."""
        in_thread.disabled += 1

    def __exit__(self, *error: object) -> None:
        """End the block."""
        in_thread.disabled -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither classes nor modes are asked before a function runs."""

    def __enter__(self) -> None:
        """Begin the block."""
        super().__enter__()
        self._modes, in_thread.modes = in_thread.modes, []

    def __exit__(self, *error: object) -> None:
        """End the block."""
        super().__exit__()
        in_thread.modes = self._modes


def has_torch_function(args: Sequence[Any]) -> bool:
    """Whether one of the arguments, or a mode, takes functions over."""
    return bool(in_thread.modes or (not in_thread.disabled and overloaded(args)))


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether one of the arguments, or a mode, takes functions over."""
    return has_torch_function(args)


has_torch_function_unary = has_torch_function_variadic


def get_default_nowrap_functions() -> set[Function]:
    """Functions whose results keep their class: what reads a gradient."""
    return {vars(TensorBase)["grad"].__get__}


def handle_torch_function(public_api: Function, relevant_args: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function of a program by the class of one of `relevant_args`, or by a mode.

    Raises
    ------
    ArgumentError : none of them takes it over.
    """
    if in_thread.modes:
        return by_mode(public_api, args, kwargs)
    return taken_over(public_api, overloaded(relevant_args), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor, or of a class that takes functions over."""
    return isinstance(inp, TensorBase) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Function) -> bool:
    """Whether a function is a method of `Tensor`, or reads one of its properties."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func or func.__name__ == "__get__"


def resolve_name(f: Function) -> str:
    """The name of a function with its module, or with `Tensor`'s."""
    home = "torch.Tensor" if is_tensor_method_or_property(f) else getattr(f, "__module__", "")
    return f"{home}.{f.__name__}"


def wrap_torch_function(dispatcher: Callable[..., Sequence[Any]]) -> Callable[[Function], Function]:
    """Decorator: let a function of a program be taken over.

    Parameters
    ----------
    dispatcher : gives those of the function's arguments whose classes are asked; it takes what the function takes.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


@cache
def ask() -> None:
    """From here on public functions look at the classes of their arguments."""
    asking.begin(called)
