"""Modes that take every public function over while they last, as PyTorch's `TorchFunctionMode`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Self

from common.core.errors import NotDefinedError
from common.methods.own_classes import asking_method, methods_that_do_not_ask
from common.methods.torch_function import ask, in_thread
from common.tensor.base import Tensor

Function = Callable[..., Any]


class TorchFunctionMode:
    """A block in which each public function is called by `__torch_function__`, while that itself is outside of it."""

    def __torch_function__(
        self, func: Function, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Give the result of a function.

        Parameters
        ----------
        func : a public function, or a method of `Tensor`.
        types : classes of the arguments that take functions over.
        args, kwargs : its arguments.

        Raises
        ------
        NotDefinedError : a subclass has not defined it.
        """
        raise NotDefinedError(f"{type(self).__name__} has to define __torch_function__")

    def __enter__(self) -> Self:
        """Begin the block."""
        ask()
        _methods_ask(+1)
        in_thread.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        """End the block."""
        in_thread.modes.remove(self)
        _methods_ask(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function as it is."""

    def __torch_function__(
        self, func: Function, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function."""
        return func(*args, **(kwargs or {}))


_own: dict[str, Any] = {}
_entered = 0


def _methods_ask(more: int) -> None:
    """Let methods of `Tensor` itself ask from the first mode on that is entered, in any thread, until the last ends."""
    global _entered
    _entered += more
    if _entered == more == 1:
        asking = {name: x for name, x in methods_that_do_not_ask().items() if isinstance(x, FunctionType)}
        _own.update({name: vars(Tensor).get(name) for name in asking})
        for name, method in asking.items():
            type.__setattr__(Tensor, name, asking_method(name, method))
    elif not _entered:
        for name, method in _own.items():
            if method is None:
                type.__delattr__(Tensor, name)
            else:
                type.__setattr__(Tensor, name, method)
        _own.clear()
