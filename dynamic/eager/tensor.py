"""Short paths for the commonest ops of tensors, which are put in the place of the general methods.

One native call finds the recipe, computes, and records (`common.runtime.apply_text`). Where it declines, the general
method of all tensors has the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.autograd import backward_pass
from common.core.dispatch import NO_ATTRS
from common.core.dtypes import float32, float64
from common.core.members import give
from common.core.op import REGISTRY, Op
from common.evaluate import kernels
from common.evaluate import specialise as eager
from common.ops.linalg import matmul
from common.tensor import boundary
from common.tensor.base import NUMBERS, Tensor, TensorBase
from common.tensor.leaf import Leaf
from common.tensor.record import record
from dynamic.eager.remembered import Memory


def _binary(op: Op, attrs: Any = NO_ATTRS, otherwise: Any = None) -> Callable[[Any, Any], Any]:
    """The operator of a binary op; `otherwise` takes the operands that the op does not."""
    general = otherwise or getattr(TensorBase, f"__{_OPERATOR.get(op.name, op.name)}__")

    def operator(a: Any, b: Any) -> Any:
        y = eager.applied(op, attrs, a, b)
        return general(a, b) if y is None else y

    return operator


def _reflected(op: Op) -> Callable[[Any, Any], Any]:
    """The operator for a left operand that is no tensor."""
    general = getattr(TensorBase, f"__r{_OPERATOR.get(op.name, op.name)}__")

    def operator(a: Any, b: Any) -> Any:
        y = eager.applied(op, NO_ATTRS, b, a) if type(b) in NUMBERS else None
        return general(a, b) if y is None else y

    return operator


def _remembered(name: str) -> Callable[..., Any]:
    """An operator whose op, or ops, depend on the forms of its operands: they are remembered, as a function's are."""
    general = boundary.guarded(getattr(TensorBase, name), name)
    memory = Memory()

    def operator(*operands: Any) -> Any:
        y = eager.recalled(memory, *operands)
        if y is None:
            y = memory.meet(operands, general)
        return general(*operands) if y is NotImplemented else y

    return operator


def _unary(op: Op) -> Callable[[Any], Any]:
    """The method of a unary op."""

    def method(a: Any) -> Any:
        y = eager.applied(op, NO_ATTRS, a)
        return record(op, (a,), NO_ATTRS) if y is None else y

    method.__name__, method.__doc__ = op.name, op.doc
    return method


def _named(name: str, op: Op, attrs: Any) -> Callable[..., Any]:
    """The method of a binary op: the op itself, unless arguments are named."""

    def method(self: Any, *others: Any, **options: Any) -> Any:
        if len(others) == 1 and not options:
            y = eager.applied(op, attrs, self, others[0])
            if y is not None:
                return y
        return getattr(TensorBase, name)(self, *others, **options)

    method.__name__, method.__doc__ = name, getattr(matmul, name).__doc__ if attrs else op.doc
    return method


def _adder(dtype: np.dtype) -> Callable[[Any, Any], Any]:
    """Adds arrays of one shape and dtype, or declines with None; compiled at first use, then out of the way."""

    def compile_and_run(x: Any, z: Any) -> Any:
        if x.dtype != dtype or z.dtype != dtype:  # a program of the other dtype comes here every time
            return None
        builtin = _ADDERS[_FLOATS.index(dtype)] = kernels.same_shape("add", (dtype, dtype), dtype)
        return builtin(x, z)

    return compile_and_run


_OPERATOR = {"div": "truediv", "mm": "matmul"}
_MORE_OPERATORS = ("pow", "eq", "ne", "lt", "le", "gt", "ge")
_FLOATS = (float32, float64)
_ADDERS = [_adder(dtype) for dtype in _FLOATS]
backward_pass.add_with(_ADDERS)

#: Functions that come to one op unless arguments are given besides its operands: the op and its attributes.
ONE_OP: dict[str, tuple[Op, Any]] = {name: (REGISTRY[name], NO_ATTRS) for name in ("add", "sub", "mul", "div")}
_PRODUCTS = dict.fromkeys(("matmul", "mm"), (REGISTRY["mm"], matmul.PLAIN))
_UNARY = ("abs", "exp", "log", "tanh", "sigmoid", "relu", "sin", "cos", "sqrt", "square", "neg")
_METHODS: dict[str, Any] = {name: _unary(REGISTRY[name]) for name in _UNARY}
_METHODS |= {"__neg__": _METHODS["neg"], "__abs__": _METHODS["abs"]}
_METHODS |= {f"__{name}__": _remembered(f"__{name}__") for name in ("floordiv", "mod", "and", "or", "xor", "invert")}
_METHODS["__matmul__"] = _binary(*_PRODUCTS["matmul"], _remembered("__matmul__"))
for _name, (_op, _attrs) in ONE_OP.items():
    _METHODS[f"__{_OPERATOR.get(_name, _name)}__"] = _binary(_op)
    _METHODS[f"__r{_OPERATOR.get(_name, _name)}__"] = _reflected(_op)
_METHODS |= {f"__{name}__": _binary(REGISTRY[name]) for name in _MORE_OPERATORS}
ONE_OP |= _PRODUCTS
_METHODS |= {name: _named(name, op, attrs) for name, (op, attrs) in ONE_OP.items()}
for _class in (Tensor, Leaf):
    give(_class, _METHODS)
