"""Python's operators on tensors and on values of a graph: each is one op of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.dispatch import apply
from common.core.dtypes import bool_
from common.core.op import Op
from common.core.python_numbers import OF_NUMPY, is_foreign, taken
from common.core.sizes import Dim

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
_LOGICAL = {"and": ("logical_and", "bitwise_and"), "or": ("logical_or", "bitwise_or"),
            "xor": ("logical_xor", "bitwise_xor")}  # fmt: skip
_COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_UNARY = {"neg": "neg", "abs": "abs"}


def accepts(x: Any) -> bool:
    """Whether an operand of an operator is of a kind that ops take."""
    return (
        isinstance(x, (bool, int, float, np.ndarray, np.generic, Dim))
        or hasattr(type(x), "__op_priority__")
        or is_foreign(x)
    )


def _forward(op: Op) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if (kind := type(other)) is type(self) or kind is float or kind is int:
            return apply(op, (self, other))
        return apply(op, (self, as_operand(other))) if accepts(other) else NotImplemented

    return operator


def _reflected(op: Op) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if (kind := type(other)) is float or kind is int:
            return apply(op, (other, self))
        return apply(op, (as_operand(other), self)) if accepts(other) else NotImplemented

    return operator


def _logical(op: Op, bits: Op, *, swapped: bool = False) -> Callable[..., Any]:
    """The op on truth values, or that on the bits of integers."""

    def operator(self: Any, *other: Any) -> Any:
        if not all(accepts(x) for x in other):
            return NotImplemented
        operands = (self, *map(as_operand, other))
        truths = all(getattr(x, "dtype", type(x)) in (bool_, bool) for x in operands)
        return apply(op if truths else bits, operands[::-1] if swapped else operands)

    return operator


def _unary(op: Op) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return apply(op, (self,))

    return operator


def as_operand(x: Any) -> Any:
    """A numpy scalar as a number of Python's; a symbolic size as the number it stands for; others as they are."""
    if isinstance(x, np.generic):
        return x.item() if type(x) in OF_NUMPY else np.asarray(x)
    if isinstance(x, Dim):
        return x.scope.constant(x)
    return taken(x) if not isinstance(x, _USUAL) and is_foreign(x) else x


_USUAL = (bool, int, float, np.ndarray)


def install(cls: type, registry: dict[str, Op], *, comparisons: bool = True) -> None:
    """Give `cls` the operators; values of a graph keep Python's own equality."""
    for name, op in _BINARY.items():
        setattr(cls, f"__{name}__", _forward(registry[op]))
        setattr(cls, f"__r{name}__", _reflected(registry[op]))
    for name, (op, bits) in _LOGICAL.items():
        setattr(cls, f"__{name}__", _logical(registry[op], registry[bits]))
        setattr(cls, f"__r{name}__", _logical(registry[op], registry[bits], swapped=True))
    invert = _logical(registry["logical_not"], registry["bitwise_not"])
    setattr(cls, "__invert__", invert)  # noqa: B010  the class has no such attribute yet
    for name, op in _COMPARE.items() if comparisons else ():
        setattr(cls, f"__{name}__", _forward(registry[op]))
    for name, op in _UNARY.items():
        setattr(cls, f"__{name}__", _unary(registry[op]))
