"""`__torch_function__`: classes and modes that take a public function over before it runs, as in PyTorch.

Nothing asks for them until a program makes a class of its own of `Tensor`, enters a mode, or hands a function an object
of a class that has `__torch_function__`. From then on the public functions, which `engine_functions.bind` makes, look
at the classes of their arguments first. Methods of the program's own classes do so always, those of `Tensor` in a mode.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any, Self

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError, TraceError
from common.core.operators import accepts
from common.methods import asking, engine_functions
from common.ops import functional
from common.tensor.base import Tensor, TensorBase

Function = Callable[..., Any]


class _State(threading.local):
    """What holds in a thread: how often classes are disabled, and the modes, innermost last."""

    disabled = 0

    def __init__(self) -> None:
        self.modes: list[TorchFunctionMode] = []


_state = _State()


def disabled(func: Function, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
    """The `__torch_function__` of a class that takes nothing over: call the function."""
    return func(*args, **(kwargs or {}))


_disabled_torch_function_impl = disabled


def _references(new: Any) -> int:
    return sys.getrefcount(new)


_NEW = _references(object())
"""References to an argument that nobody else holds."""


class _TakesOver(dict[type, bool]):
    """Whether a class takes functions over."""

    def __missing__(self, kind: type) -> bool:
        found = getattr(kind, "__torch_function__", None)
        asked = found is not None and found is not disabled and (
            issubclass(kind, OfProgram) or not issubclass(kind, TensorBase)
        )  # fmt: skip
        self[kind] = asked
        return asked


_takes_over = _TakesOver()


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
        if _takes_over[kind] and all(type(other) is not kind for other in found):
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
    if _state.modes:
        return _by_mode(function, args, kwargs)
    if not _state.disabled:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if _takes_over[type(x)] or type(x) in (tuple, list):
                if found := overloaded(args, kwargs):
                    return taken_over(function, found, args, kwargs)
                break
    return plain(*args, **kwargs)


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


def _by_mode(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    mode = _state.modes.pop()
    try:
        types = tuple(type(x) for x in overloaded(args, kwargs))
        result = mode.__torch_function__(function, types, tuple(args), dict(kwargs))
    finally:
        _state.modes.append(mode)
    if result is NotImplemented:
        raise ArgumentError(f"{type(mode).__name__} does not implement {getattr(function, '__name__', function)}")
    return result


class DisableTorchFunctionSubclass:
    """A block in which no class of the arguments is asked before a function runs; modes are."""

    def __enter__(self) -> None:
        """Begin the block."""
        _state.disabled += 1

    def __exit__(self, *error: object) -> None:
        """End the block."""
        _state.disabled -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither classes nor modes are asked before a function runs."""

    def __enter__(self) -> None:
        """Begin the block."""
        super().__enter__()
        self._modes, _state.modes = _state.modes, []

    def __exit__(self, *error: object) -> None:
        """End the block."""
        super().__exit__()
        _state.modes = self._modes


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
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Begin the block."""
        ask()
        _state.modes.append(self)
        if len(_state.modes) == 1:
            _methods_ask(True)
        return self

    def __exit__(self, *error: object) -> None:
        """End the block."""
        _state.modes.remove(self)
        if not _state.modes:
            _methods_ask(False)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function as it is."""

    def __torch_function__(
        self, func: Function, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function."""
        return func(*args, **(kwargs or {}))


def as_subclass(self: TensorBase, cls: type) -> Any:
    """The tensor as one of a program's own class: a view with history, over the same memory.

    Parameters
    ----------
    cls : a subclass of `Tensor`.

    Raises
    ------
    ArgumentError : `cls` is none.
    NotDefinedError : `cls` has `__torch_dispatch__`.
    TraceError : in a traced program, whose tensors are all of one class.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentError(f"as_subclass(): cls must be a subclass of Tensor, not {cls}")
    if getattr(cls, "__torch_dispatch__", None) is not None:
        raise NotDefinedError(
            f"{cls.__name__}.__torch_dispatch__ would not be called: what runs below the public functions is not "
            "dispatched by classes; __torch_function__ takes over the public ones"
        )
    if not isinstance(self.payload, np.ndarray):
        raise TraceError(
            f"as_subclass({cls.__name__}): tensors of a traced program are all of one class; make the tensor outside, "
            "and hand the compiled function plain tensors"
        )
    with DisableTorchFunction():
        alias = functional.view(self, self.shape) if self.requires_grad else self.detach()
    alias.__class__ = cls
    return alias


def make_subclass(cls: type, data: TensorBase, require_grad: bool = False) -> Any:
    """A leaf of a program's own class over the memory of `data`."""
    made = as_subclass(data.detach(), cls)
    return made.requires_grad_() if require_grad else made


def torch_function(
    cls: type, func: Function, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Call a function; tensors among its results become tensors of the class.

    Parameters
    ----------
    func : a public function, or a method of `Tensor`.
    types : classes of the arguments that take functions over; NotImplemented if one of them is not above `cls`.
    args, kwargs : its arguments.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    _state.disabled += 1
    try:
        return _converted(func(*args, **(kwargs or {})), cls)
    finally:
        _state.disabled -= 1


def _converted(result: Any, cls: type) -> Any:
    if isinstance(result, TensorBase):
        if cls is Tensor or isinstance(result, cls) or type(result.payload) is not np.ndarray:
            return result
        if type(result) is Tensor and sys.getrefcount(result) <= _NEW:
            result.__class__ = cls
            return result
        return as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        items = [_converted(x, cls) for x in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


class OfProgram(Tensor, own=True):
    """The class from which a program's own classes inherit in place of `Tensor`: its methods are taken over."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Print the tensors under the name of their class."""
        super().__init_subclass__(**options)
        cls._shown_as = cls.__name__

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A tensor of the arguments that `Tensor` takes."""
        made = object.__new__(cls)
        Tensor.__init__(made, *args, **kwargs)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`__new__` has read the arguments."""


#: Operators, and the methods of `Tensor` that a class is asked about in their place; those below swap their operands.
_OPERATORS = {
    "__abs__": "abs", "__add__": "add", "__ge__": "ge", "__gt__": "gt", "__iadd__": "add_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__imul__": "mul_", "__ipow__": "pow_",
    "__isub__": "sub_", "__itruediv__": "div_", "__le__": "le", "__lt__": "lt", "__matmul__": "matmul",
    "__mod__": "remainder", "__mul__": "mul", "__ne__": "ne", "__neg__": "neg", "__pos__": "positive", "__pow__": "pow",
    "__rtruediv__": "__rdiv__", "__sub__": "sub", "__truediv__": "div",
}  # fmt: skip
_SWAPPED = {
    "__radd__": "add", "__rand__": "bitwise_and", "__rmul__": "mul", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor"
}  # fmt: skip
#: What is the same for every class.
_NOT_ASKED = frozenset(
    ["__array_namespace__", "__array_ufunc__", "__buffer__", "__copy__", "__deepcopy__", "__dir__", "__dlpack__",
     "__dlpack_device__", "__init__", "__reduce_ex__", "_backward_hooks", "_cdata", "_grad_fn", "_is_view",
     "as_subclass", "edge", "grad"]
)  # fmt: skip


def _asking(name: str, found: Any) -> Any:
    """A method, operator or property of `Tensor` that asks classes and modes first."""
    if isinstance(found, property):
        read = found.__get__
        return property(lambda self: called(read, read, (self,), {}), found.fset, found.fdel, found.__doc__)
    other = _OPERATORS.get(name) or _SWAPPED.get(name)
    known = getattr(Tensor, other) if other else found
    found.__name__ = name  # by which a class knows what it is asked about

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if other and args and not (accepts(args[0]) or _takes_over[type(args[0])]):
            return found(self, *args)
        given = (*args, self) if name in _SWAPPED else (self, *args)
        return called(known, found if given[0] is self else known, given, kwargs)

    method.__name__, method.__doc__ = name, found.__doc__
    return method


def _asked() -> dict[str, Any]:
    """Methods, operators and properties of `Tensor` that do not ask themselves, as public functions do."""
    found = {name: inspect.getattr_static(Tensor, name) for name in dir(Tensor)}
    bound = set(map(id, engine_functions.made))
    return {
        name: x
        for name, x in found.items()
        if isinstance(x, (FunctionType, property)) and name not in _NOT_ASKED and id(x) not in bound
    }


def _methods_ask(asking: bool) -> None:
    """Let methods of `Tensor` itself ask, in the first mode that is entered, or no longer, after the last."""
    for name, method in (_patched() if asking else _own).items():
        if method is None:
            type.__delattr__(Tensor, name)
        else:
            type.__setattr__(Tensor, name, method)


_own: dict[str, Any] = {}


def _patched() -> dict[str, Any]:
    made = {name: _asking(name, x) for name, x in _asked().items() if isinstance(x, FunctionType)}
    _own.clear()
    _own.update({name: vars(Tensor).get(name) for name in made})
    return made


@cache
def of_program() -> type:
    """The class from which a program's own classes of `Tensor` inherit; from here on functions look at classes."""
    ask()
    for name, found in _asked().items():
        setattr(OfProgram, name, _asking(name, found))
    return OfProgram


def has_torch_function(args: Sequence[Any]) -> bool:
    """Whether one of the arguments, or a mode, takes functions over."""
    return bool(_state.modes or (not _state.disabled and overloaded(args)))


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
    if _state.modes:
        return _by_mode(public_api, args, kwargs)
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
