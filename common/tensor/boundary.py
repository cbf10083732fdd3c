"""The boundary of the library: every error that leaves a public call is one of `common.core.errors`.

Public functions are wrapped where an engine publishes them, by `close`, and tensors' functions where they are bound
(`common.api.surface.bind`). A wrapper costs nothing but a frame while nothing goes wrong: arguments are looked at when
an error of Python or numpy comes out of the function. Then `common.tensor.diagnose` says which of them is to blame.
What the user's own code raises, in a callback, a hook, an iterator or a method of an object, goes through as it is.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, GeneratorType
from typing import Any, TypeVar

from common.core.errors import ArgumentError
from common.core.int_arguments import shown
from common.core.source_lines import PACKAGES
from common.core.switching import refusals
from common.tensor.diagnose import call_place, translated

F = TypeVar("F", bound=Callable[..., Any])

_GENERATOR, _STARRED = inspect.CO_GENERATOR, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
#: Special methods that users reach by syntax.
_SYNTAX = frozenset(
    ["__init__", "__call__", "__enter__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__",
     "__array__", "__float__", "__int__", "__bool__", "__index__", "__neg__", "__pos__", "__abs__",
     "__invert__", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__isub__", "__mul__", "__rmul__",
     "__imul__", "__truediv__", "__rtruediv__", "__itruediv__", "__floordiv__", "__rfloordiv__", "__ifloordiv__",
     "__mod__", "__rmod__", "__imod__", "__divmod__", "__rdivmod__", "__pow__", "__rpow__", "__ipow__", "__matmul__",
     "__rmatmul__", "__and__", "__rand__", "__iand__", "__or__", "__ror__", "__ior__", "__xor__", "__rxor__",
     "__ixor__", "__lshift__", "__rlshift__", "__ilshift__", "__rshift__", "__rrshift__", "__irshift__", "__eq__",
     "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__setattr__", "__delattr__", "__setstate__", "__len__"]
)  # fmt: skip
_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
#: The wrapper of each function, so that both engines publish the same one.
_guards: dict[Any, Any] = {}
_done: set[Any] = set()


def guarded(function: Any, name: str | None = None) -> Any:
    """A function whose errors are the library's; one that has nothing to be given is left as it is.

    Parameters
    ----------
    name : what errors call it; by default its own.
    """
    if type(function) is not FunctionType or hasattr(function, "__guarded__"):
        return function
    code = function.__code__
    if not (
        code.co_argcount or code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    ):
        return function
    made = getattr(function, "__wrapped__", None)
    if made is not None and code is _CONTEXT:  # a context manager runs when it is entered
        guard: Any = contextlib.contextmanager(_guard(made, name or function.__name__))
    else:
        guard = _guard(function, name or function.__name__)
    guard.__guarded__ = function
    return guard


_CONTEXT = contextlib.contextmanager(lambda: iter(())).__code__


def _guard(function: Any, name: str) -> Any:
    if function.__code__.co_flags & _GENERATOR:

        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Any:
            try:
                return (yield from function(*args, **kwargs))
            except Exception as error:
                refuse(error, function, name, *args, **kwargs)
                raise

        return steps

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            refuse(error, function, name, *args, **kwargs)
            raise
        return result if type(result) is not GeneratorType else _steps(result, function, name, args, kwargs)

    return call


def _steps(result: Any, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Yield a generator's items, with its errors translated."""
    try:
        return (yield from result)
    except Exception as error:
        refuse(error, function, name, *args, **kwargs)
        raise


def guard_class(cls: type, anew: bool = False) -> None:
    """Wrap the public methods of a class and of the package's classes that it inherits from, in place.

    A class whose short paths a frame would slow down has `__guards_itself__`; a method that translates errors in its
    own body is marked by `guards_itself`.

    Parameters
    ----------
    anew : also if that was done before, since the class has got other methods.
    """
    for kind in cls.__mro__:
        if (kind in _done and not anew) or not _is_ours(kind.__module__) or "__guards_itself__" in vars(kind):
            continue
        _done.add(kind)
        for name, value in list(vars(kind).items()):
            if name == "forward" or (name.startswith("_") and name not in _SYNTAX):
                continue  # a module's forward is called by its `__call__`
            guard = _guarded_member(kind, name, value)
            if guard is not value:
                type.__setattr__(kind, name, guard)


def _guarded_member(kind: type, name: str, value: Any) -> Any:
    shown = kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}"
    if type(value) is FunctionType:
        return guarded(value, shown)
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(guarded(value.__func__, shown))
    if isinstance(value, property) and value.fset is not None:
        return property(value.fget, guarded(value.fset, shown), value.fdel, value.__doc__)
    return value


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in ("common", "dynamic", "static")


def published(value: Any) -> Any:
    """The public form of an object: a function that is guarded, or a class whose methods are."""
    if isinstance(value, type):
        if _is_ours(value.__module__) and not issubclass(value, BaseException):
            guard_class(value)
        return value
    if type(value) is FunctionType and not hasattr(value, "__guarded__") and _is_own_code(value):
        guard = _guards.get(value)
        if guard is None:
            guard = _guards[value] = guarded(value)
        home, name = vars(sys.modules.get(value.__module__, sys)), value.__name__
        if home.get(name) is value:  # so that it is found under its own name, by pickle too
            home[name] = guard
        return guard
    return value


def _is_own_code(function: FunctionType) -> bool:
    return inspect.unwrap(function).__code__.co_filename.startswith(PACKAGES)


def guards_itself(function: F) -> F:
    """Mark a function that calls `refuse` where it catches an error: it is published as it is."""
    function.__guarded__ = function  # type: ignore[attr-defined]
    return function


def refuse(error: Exception, function: Any, name: str, /, *args: Any, **kwargs: Any) -> None:
    """Raise what is to leave a public function instead of an error that came out of it; return if that is the error."""
    ours = translated(error, call_place, function, name, args, kwargs)
    try:
        if ours is not error:
            raise ours from ours.__cause__
    finally:
        del ours, error  # a frame that an error knows must not know the error


def _refuse_manager(manager: Any, error: Exception) -> None:
    """`refuse` for what a context manager was made with, which is looked at when it is entered."""
    made = getattr(manager, "_made", None)
    if isinstance(made, functools.partial):
        refuse(error, made.func, made.func.__qualname__, *made.args, **made.keywords)
    else:
        given = {key: x for key, x in getattr(manager, "__dict__", {}).items() if not key.startswith("_")}
        refuse(error, type(manager), type(manager).__name__, **given)


refusals.append(_refuse_manager)


def close(package: str) -> None:
    """Guard everything that a package and the modules below it list in ``__all__`` and have loaded."""
    for module in [m for name, m in sys.modules.copy().items() if name == package or name.startswith(f"{package}.")]:
        if module is None or module in _done:
            continue
        _done.add(module)
        space = vars(module)
        for name in space.get("__all__", ()):
            value = space.get(name)
            if value is None:
                continue
            if (guard := published(value)) is not value:
                space[name] = guard
            if type(guard) is FunctionType and not _is_found(guard):
                guard.__module__, guard.__name__, guard.__qualname__ = module.__name__, name, name


def _is_found(function: FunctionType) -> bool:
    """Whether a pickle finds a function by its names; one that a function has made, it does not."""
    home = sys.modules.get(function.__module__)
    return home is None or vars(home).get(function.__qualname__) is function


def guard_operators(cls: type) -> None:
    """Operators of tensors: an operand of Python's own types that no operator takes is refused here."""
    for name, symbol in _SYMBOLS.items():
        for dunder, swapped in ((f"__{name}__", False), (f"__r{name}__", True)):
            setattr(cls, dunder, _refusing(vars(cls)[dunder], name, symbol, swapped))
        if (in_place := vars(cls).get(f"__i{name}__")) is not None:
            setattr(cls, f"__i{name}__", _refusing(in_place, name, f"{symbol}=", swapped=False))


def _refusing(operator: Any, name: str, symbol: str, swapped: bool) -> Any:
    reflected = f"__{name}__" if swapped else f"__r{name}__"

    @functools.wraps(operator)
    def method(self: Any, *others: Any) -> Any:
        result = operator(self, *others)
        if result is NotImplemented and type(others[0]).__module__ == "builtins":
            other = others[0]
            if swapped or not hasattr(other, reflected):
                kinds = [type(self).__name__, type(other).__name__]
                left, right = kinds[::-1] if swapped else kinds
                raise ArgumentError(
                    f"unsupported operand type(s) for {symbol}: {left!r} and {right!r}; "
                    f"the operand is {shown(other)}, a tensor or a number is needed"
                )
        return result

    return method
