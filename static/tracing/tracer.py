"""Traced tensors: they stand for a value that exists only when the program runs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from common.api import surface
from common.core import mode
from common.core.errors import EscapedTracerError, TraceError
from common.core.op import REGISTRY
from common.core.operators import install
from common.core.sizes import Dim
from common.methods.numpy_functions import operator_of, torch_name
from common.tensor.base import NUMBERS, TensorBase
from static.graph import Value


class Tracer(TensorBase):
    """A tensor inside a trace; its `payload` is a `static.graph.Value`.

    Attributes
    ----------
    trace : the trace that made it.
    """

    __slots__ = ("__dict__", "trace")
    __op_priority__ = 3

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Answer numpy's operators, which are the tracer's own, and functions of numbers; refuse other functions."""
        found = operator_of(self, ufunc, method, inputs, {})
        if found is not NotImplemented:
            return found
        numbers = [x if not isinstance(x, (Tracer, Dim)) else self._weak_number(x) for x in inputs]
        if not any(x is None for x in numbers):
            return getattr(ufunc, method)(*numbers, **options)
        raise self.refuse_numpy(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")

    def __array_function__(self, function: Any, kinds: Any, args: Any, options: Any) -> Any:
        """Answer what numpy asks of the form alone; refuse its other functions, which need elements."""
        if function in (np.shape, np.ndim) and len(args) == 1 and not options:
            return tuple(self.shape) if function is np.shape else self.ndim
        raise self.refuse_numpy(
            f"{function.__module__.removeprefix('numpy').lstrip('.')}.{function.__name__}".lstrip(".")
        )

    def refuse_numpy(self, name: str) -> TraceError:
        """The error for a function of numpy: with what to call instead."""
        bare = torch_name(name)
        if bare in surface.FUNCTIONS:
            instead = f"use static.{bare}"
            instead += f" or x.{bare}()" if callable(getattr(TensorBase, bare, None)) else ""
        else:
            instead = "call it through static.pure_callback, or on the result of the traced function"
        return TraceError(
            f"np.{name} needs the elements of a traced value ({self.payload.spec} in {self.trace.name}), which exist "
            f"only when the compiled program runs: {instead}"
        )

    def __init__(self, data: Value, trace: Any) -> None:
        self.payload, self.trace = data, trace
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = None

    def describe_escape(self) -> EscapedTracerError:
        """The error for a tracer that is used after its trace."""
        file, line, function = self.payload.node.source
        return EscapedTracerError(
            f"a traced value ({self.payload.spec} from {self.payload.node.name} at {file}:{line} in {function}) is "
            f"used after its trace of {self.trace.name} has ended. It has no elements. Return it from the traced "
            "function instead of storing it in a global, an attribute or a list."
        )

    def known_number(self, x: Any) -> Any:
        """The Python number that an operand is in this call, None if it is not a number or depends on arrays."""
        if isinstance(x, (Tracer, Dim)):
            is_open: bool = self.trace is mode.current_trace()
            if not is_open:
                return None
            return int(x) if isinstance(x, Dim) else self.trace.known_number(x.payload)
        return x if isinstance(x, NUMBERS) else None

    def python_number(self, x: Any) -> Any:
        """The Python number that an operand is, decided now if that depends on arrays; None if it is no number."""
        number = self.known_number(x)
        decide = self.trace.decide
        if number is None and decide is not None and isinstance(x, Tracer) and x.payload.spec.weak:
            number = decide.number(x)
        return number

    def _weak_number(self, x: Any) -> Any:
        return None if isinstance(x, Tracer) and not x.payload.spec.weak else self.python_number(x)

    def __hash__(self) -> int:
        number = self.python_number(self) if self.trace.decide is not None and self.payload.spec.weak else None
        return object.__hash__(self) if number is None else hash(number)

    def __format__(self, spec: str) -> str:
        number = self.known_number(self) if spec and self.payload.spec.weak else None
        if number is not None:
            return format(number, spec)
        if not spec or self.trace.decide is None:
            return super().__format__(spec)
        raise self.trace.no_text(self, spec)


def _in_python(name: str, function: Callable[..., Any]) -> None:
    """Let numbers among the arguments be used as Python numbers: then the trace serves calls with these only."""
    general = getattr(TensorBase, name, lambda *operands: NotImplemented)

    def method(self: Tracer, *others: Any) -> Any:
        find = self.known_number if name in ("__bool__", "__int__") else self.python_number  # not all bits are decided
        numbers = [find(x) for x in (self, *others)] if self.payload.spec.weak else [None]
        return general(self, *others) if any(x is None for x in numbers) else function(*numbers)

    method.__name__ = name
    setattr(Tracer, name, method)


def _power_in_python(name: str, function: Callable[..., Any]) -> None:
    """Powers that the eager engine leaves to Python, because no float argument takes part."""
    general = getattr(TensorBase, name)

    def method(self: Tracer, other: Any) -> Any:
        values = [x.payload if isinstance(x, Tracer) else x for x in (self, other)]
        if not self.payload.spec.weak or any(map(self.trace.comes_from_float, values)):
            return general(self, other)
        numbers = [self.python_number(x) for x in (self, other)]
        return general(self, other) if any(x is None for x in numbers) else function(*numbers)

    method.__name__ = name
    setattr(Tracer, name, method)


def _division(name: str, divisor: int) -> None:
    """Division of numbers raises for a divisor of zero where Python does."""
    general = getattr(TensorBase, name)

    def method(self: Tracer, other: Any) -> Any:
        by = (self, other)[divisor]
        numbers = all(isinstance(x, NUMBERS) or (isinstance(x, Tracer) and x.payload.spec.weak) for x in (self, other))
        if numbers and self.trace.decide is not None and isinstance(by, Tracer):
            is_zero: Any = by == 0  # type: ignore[comparison-overlap]
            values = [x.payload if isinstance(x, Tracer) else x for x in (self, other)]
            if not any(map(self.trace.comes_from_float, values)) and is_zero:
                raise ZeroDivisionError("division by zero")
        return general(self, other)

    method.__name__ = name
    setattr(Tracer, name, method)


_PYTHON: dict[str, Callable[..., Any]] = {
    "__bool__": bool, "__int__": int, "__float__": float, "__index__": operator.index, "__round__": round,
    "__trunc__": math.trunc, "__floor__": math.floor, "__ceil__": math.ceil, "__floordiv__": operator.floordiv,
    "__mod__": operator.mod, "__divmod__": divmod,
    "__rfloordiv__": lambda a, b: b // a, "__rmod__": lambda a, b: b % a, "__rdivmod__": lambda a, b: divmod(b, a),
}  # fmt: skip
for _name, _function in _PYTHON.items():
    _in_python(_name, _function)
_division("__truediv__", 1)
_division("__rtruediv__", 0)
_power_in_python("__pow__", operator.pow)
_power_in_python("__rpow__", lambda a, b: b**a)
install(Value, REGISTRY, comparisons=False)
