"""Copies and pickles of callables that functions make: they are made again, of the same arguments.

A compiled function, a `function` of the eager engine and what a transform returns hold traces, machine code and locks.
None of these is copied. Where the callable is what its module has under its name, a pickle holds that name, as it does
for every function of Python. Otherwise it holds the function that made the callable, and the arguments: the other side
makes it again, and compiles it when it is called, from the disk cache if it can.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, cast

from common.core.errors import PickleError

_PICKLERS: tuple[type[Any], ...] = (pickle.Pickler, vars(pickle)["_Pickler"])
_OWN_PICKLERS = ("pickle", "_pickle", "multiprocessing.")


#: How a callable is pickled whose function no pickle can hold: each gives what `__reduce_ex__` returns, or None.
otherwise: list[Callable[[Any], Any]] = []


class MadeCallable:
    """A callable that one of our functions makes of another.

    Attributes
    ----------
    _maker : the module of the function that made it and its name there, its arguments, and its keyword arguments.
    """

    _maker: tuple[str, str, tuple[Any, ...], Mapping[str, Any]]

    def look_like(self, target: Callable[..., Any]) -> None:
        """Take a callable's name, module, docstring and attributes, but for attributes that this class has itself."""
        update_wrapper(cast("Any", self), target, updated=())
        for name, value in getattr(target, "__dict__", {}).items():
            if not hasattr(type(self), name):
                self.__dict__[name] = value

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        module, name, args, kwargs = self._maker
        new_args, new_kwargs = copy.deepcopy((args, dict(kwargs)), memo)
        if new_args is args and all(new_kwargs[key] is kwargs[key] for key in kwargs):
            return self  # a plain function is its own copy
        return make_again(module, name, new_args, new_kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if is_global(self):
            return self.__qualname__  # type: ignore[attr-defined]
        module, name, args, kwargs = self._maker
        try:
            for x in (*args, *kwargs.values()):
                refuse_local(x, f"{module}.{name}(...)")
        except PickleError:
            for reduce in otherwise:
                if (found := reduce(self)) is not None:
                    return found
            raise
        return make_again, (module, name, args, dict(kwargs))


class FunctionHolder:
    """An object that keeps functions of its users: pickled, it names the first that no pickle can hold."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        if sys._getframe(1).f_code.co_filename != copy.__file__:  # a copy takes any function
            for name, x in vars(self).items():
                refuse_local(list(x.values()) if isinstance(x, dict) else x, f"a {type(self).__name__} ({name})")
        return super().__reduce_ex__(protocol)


def make_again(module: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call what a module of ours has under a name."""
    return getattr(importlib.import_module(module), name)(*args, **kwargs)


def is_global(x: Any) -> bool:
    """Whether an object is what its module has under its qualified name, so that a pickle can hold the name."""
    names = getattr(x, "__dict__", {})
    name, module = names.get("__qualname__", getattr(x, "__qualname__", None)), getattr(x, "__module__", None)
    if not isinstance(name, str):
        return False
    first, *rest = name.split(".")
    holders: list[Any]
    if module is None:  # made where no module has a name, such as in `exec`: pickle looks in all of them
        holders = [m for m in list(sys.modules.values()) if first in getattr(m, "__dict__", ())]
    else:
        holders = [sys.modules.get(module)] if isinstance(module, str) else []
    return x is not None and any(_inside(holder, first, *rest) is x for holder in holders)


def _inside(found: Any, *path: str) -> Any:
    for part in path:
        found = getattr(found, part, None)
    return found


def refuse_local(x: Any, what: str) -> None:
    """Refuse a function that a pickle cannot hold, in words that say what to do.

    Parameters
    ----------
    x : a function, a partial one, or a list or tuple that may have some; anything else is taken.
    what : what is being pickled.

    Raises
    ------
    PickleError : a lambda, a function defined inside another, or one that its module has lost; unless the pickler is
        one that takes them, such as cloudpickle's.
    """
    if isinstance(x, (list, tuple)):
        for part in x:
            refuse_local(part, what)
    elif isinstance(x, partial):
        refuse_local((x.func, *x.args, *x.keywords.values()), what)
    elif isinstance(x, FunctionType) and not is_global(x) and not _takes_functions():
        place = ".".join(filter(None, (x.__module__, x.__qualname__)))
        if "<lambda>" in x.__qualname__:
            why = "a lambda has no name by which another process could find it"
        elif "<locals>" in x.__qualname__:
            why = "it is defined inside another function, where another process cannot find it"
        else:
            why = f"{x.__module__ or 'no module'} has {'something else' if x.__module__ else 'it'} under that name"
        raise PickleError(
            f"cannot pickle {what}: its function {place} cannot be pickled, because {why}. Define it with `def` at the "
            "top level of a module (functools.partial of such a function works too), make the object on the other "
            "side, pickle with cloudpickle, or call a compiled function once: it is then pickled as its program"
        )


def _takes_functions() -> bool:
    """Whether the pickler that is running belongs to another package: those take functions by value."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        pickler = frame.f_locals.get("self") if frame.f_code.co_name in ("dump", "save") else None
        if isinstance(pickler, _PICKLERS):
            return not type(pickler).__module__.startswith(_OWN_PICKLERS)
        frame = frame.f_back
    return False


class Bound:
    """An object that is part of something larger, and can be neither copied nor pickled.

    Attributes
    ----------
    _instead : what to do instead.
    """

    _instead = ""
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise PickleError(f"cannot copy or pickle a {type(self).__name__}: {self._instead}")

    def __copy__(self) -> Any:
        return self.__reduce_ex__(4)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.__reduce_ex__(4)
