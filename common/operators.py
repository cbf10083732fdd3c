"""Python's operators on tensors and on values of a graph: each is one op of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.apply import apply
from common.dim import Dim
from common.op import Op

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "and": "logical_and", "or": "logical_or",
    "xor": "logical_xor",
}  # fmt: skip
_COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_UNARY = {"neg": "neg", "abs": "abs", "invert": "logical_not"}


def _accepts(x: Any) -> bool:
    return isinstance(x, (bool, int, float, np.ndarray, np.generic, Dim)) or hasattr(type(x), "__op_priority__")


def _forward(op: Op) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return apply(op, (self, as_operand(other))) if _accepts(other) else NotImplemented

    return operator


def _reflected(op: Op) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return apply(op, (as_operand(other), self)) if _accepts(other) else NotImplemented

    return operator


def _unary(op: Op) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return apply(op, (self,))

    return operator


def as_operand(x: Any) -> Any:
    """A numpy scalar as a 0-d array; a symbolic size as the number it stands for; anything else as it is."""
    if isinstance(x, np.generic):
        return np.asarray(x)
    return x.scope.constant(x) if isinstance(x, Dim) else x


def install(cls: type, registry: dict[str, Op], *, comparisons: bool = True) -> None:
    """Give `cls` the operators; values of a graph keep Python's own equality."""
    for name, op in _BINARY.items():
        setattr(cls, f"__{name}__", _forward(registry[op]))
        setattr(cls, f"__r{name}__", _reflected(registry[op]))
    for name, op in _COMPARE.items() if comparisons else ():
        setattr(cls, f"__{name}__", _forward(registry[op]))
    for name, op in _UNARY.items():
        setattr(cls, f"__{name}__", _unary(registry[op]))
