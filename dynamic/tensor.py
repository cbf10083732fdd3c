"""The eager tensor: an array, its place in the tape, and a short path for the commonest ops.

The short path handles two tensors of one shape and dtype, or one tensor: a native builtin computes, and a node
is put on the tape by plain assignments. Everything else takes `common.tensor.record`, with the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from common import eager_kernels, mode
from common import tensor as base
from common.methods import install_methods
from common.op import REGISTRY, Op
from common.ops._define import compute_dtypes
from common.spec import Spec
from common.tape import PACKAGES, Node, next_number, user_frame
from common.tensor import TensorBase, record


class Tensor(TensorBase):
    """A multi-dimensional array whose operations are recorded as they run.

    Parameters
    ----------
    data : (...) ndarray; used as it is, not copied.
    requires_grad : record operations on it.

    Raises
    ------
    DTypeError : `requires_grad` for a dtype that is not floating point.
    """

    __slots__ = ()

    def __init__(self, data: np.ndarray, requires_grad: bool = False) -> None:
        self.data = data
        self.requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = self._sink = None
        if requires_grad:
            self.requires_grad_()


_new = object.__new__
_getframe = sys._getframe
_grad_enabled = mode.grad_mode.get
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def _builtins(op: Op) -> list[Callable[..., Any]]:
    """Callables for float32 and float64 operands that compile at first use; None as result: not applicable."""

    def lazy(position: int, dtype: np.dtype) -> Callable[..., Any]:
        def first(*arrays: np.ndarray) -> Any:
            if any(x.dtype != dtype for x in arrays):
                return None
            specs = [Spec((1,), dtype)] * len(op.inputs)
            builtin = eager_kernels.fast(op.name, (dtype,) * len(op.inputs), compute_dtypes(op, specs)[1])
            table[position] = builtin
            return builtin(*arrays)

        return first

    table: list[Callable[..., Any]] = []
    table.extend(lazy(i, dtype) for i, dtype in enumerate(FLOATS))
    return table


def _binary(op: Op) -> Callable[[Any, Any], Any]:
    """The operator of a binary op, specialised for tensors of one shape and dtype."""
    table = _builtins(op)
    left, right, output = 0 in op.saved_inputs, 1 in op.saved_inputs, op.saves_output
    differentiable = op.differentiable

    def operator(a: Tensor, b: Any) -> Any:
        if not mode.tracing and isinstance(b, TensorBase):
            x, z = a.data, b.data
            y = table[0](x, z)
            if y is None:
                y = table[1](x, z)
            if y is not None and y.__class__ is np.ndarray and x.shape == z.shape:
                t = _new(Tensor)
                t.data = y
                t.output_nr = 0
                t._grad = t._sink = None
                if differentiable and (a.requires_grad or b.requires_grad) and _grad_enabled():
                    node = _new(Node)
                    node.number = next_number()
                    node.op = op
                    node.attrs = None
                    node.edges = (a.edge, b.edge)
                    node.saved = (((x, z) if right else (x,)) if left else ((z,) if right else ())) + (
                        (y,) if output else ()
                    )
                    node.fit = node.freed_by = None
                    frame = _getframe(1)
                    if frame.f_code.co_filename.startswith(PACKAGES):
                        node.code, node.lasti = user_frame(2)
                    else:
                        node.code, node.lasti = frame.f_code, frame.f_lasti
                    t.grad_fn = node
                    t.requires_grad = True
                else:
                    t.grad_fn = None
                    t.requires_grad = False
                return t
        return general(a, b)

    general = getattr(TensorBase, f"__{_METHOD.get(op.name, op.name)}__")
    return operator


_METHOD = {"div": "truediv"}


def _unary(op: Op) -> Callable[[Any], Any]:
    """The method of a unary op, specialised for floating-point tensors."""
    table = _builtins(op)
    operand, output, shapes = bool(op.saved_inputs), op.saves_output, bool(op.saved_shapes)

    def method(a: Tensor) -> Any:
        if not mode.tracing and not shapes:
            x = a.data
            y = table[0](x)
            if y is None:
                y = table[1](x)
            if y is not None:
                t = _new(Tensor)
                t.data = y
                t.output_nr = 0
                t._grad = t._sink = None
                if a.requires_grad and _grad_enabled():
                    node = _new(Node)
                    node.number = next_number()
                    node.op = op
                    node.attrs = None
                    node.edges = (a.edge,)
                    node.saved = ((x, y) if output else (x,)) if operand else ((y,) if output else ())
                    node.fit = node.freed_by = None
                    node.code, node.lasti = user_frame(2)
                    t.grad_fn = node
                    t.requires_grad = True
                else:
                    t.grad_fn = None
                    t.requires_grad = False
                return t
        return record(op, (a,), {})

    return method


install_methods(TensorBase)
for _name in ("add", "sub", "mul", "div"):
    setattr(Tensor, f"__{_METHOD.get(_name, _name)}__", _binary(REGISTRY[_name]))
for _name in ("exp", "log", "tanh", "sigmoid", "relu", "sin", "cos", "sqrt", "square"):
    setattr(Tensor, _name, _unary(REGISTRY[_name]))
Tensor.__neg__ = _unary(REGISTRY["neg"])  # type: ignore[attr-defined]
base.eager_class = Tensor
