"""A program's own classes of `Tensor`: what is computed from their tensors is of their class, as in PyTorch.

They inherit from `OfProgram` where the program says `Tensor`: its methods, operators and properties ask the class
first, see `torch_function`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError, TraceError
from common.core.operators import accepts
from common.methods import engine_functions
from common.methods.torch_function import DisableTorchFunction, ask, called, takes_over, without_asking
from common.ops import functional
from common.tensor.base import Tensor, TensorBase

Function = Callable[..., Any]


def _references(new: Any) -> int:
    return sys.getrefcount(new)


_NEW = _references(object())
"""References to an argument that nobody else holds."""


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
    """A leaf of a program's own class over the memory of `data`.

    Raises
    ------
    ArgumentError : `data` is no tensor, or `cls` no subclass of `Tensor`.
    """
    if not isinstance(data, TensorBase):
        raise ArgumentError(f"_make_subclass(): data must be a Tensor, not {type(data).__name__}")
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
    return _converted(without_asking(func, args, kwargs or {}), cls)


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
    _of_program = True

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


def asking_method(name: str, found: Any) -> Any:
    """A method, operator or property of `Tensor` that asks classes and modes first."""
    if isinstance(found, property):
        read = found.__get__
        return property(lambda self: called(read, read, (self,), {}), found.fset, found.fdel, found.__doc__)
    other = _OPERATORS.get(name) or _SWAPPED.get(name)
    known = getattr(Tensor, other) if other else found
    found.__name__ = name  # by which a class knows what it is asked about

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if other and args and not (accepts(args[0]) or takes_over[type(args[0])]):
            return found(self, *args)
        given = (*args, self) if name in _SWAPPED else (self, *args)
        return called(known, found if given[0] is self else known, given, kwargs)

    method.__name__, method.__doc__ = name, found.__doc__
    return method


def methods_that_do_not_ask() -> dict[str, Any]:
    """Methods, operators and properties of `Tensor` that do not ask themselves, as public functions do."""
    found = {name: inspect.getattr_static(Tensor, name) for name in dir(Tensor)}
    bound = set(map(id, engine_functions.made))
    return {
        name: x
        for name, x in found.items()
        if isinstance(x, (FunctionType, property)) and name not in _NOT_ASKED and id(x) not in bound
    }


@cache
def of_program() -> type:
    """The class from which a program's own classes of `Tensor` inherit; from here on functions look at classes."""
    ask()
    for name, found in methods_that_do_not_ask().items():
        setattr(OfProgram, name, asking_method(name, found))
    return OfProgram
