"""Short paths for the commonest ops of tensors, which are put in the place of the general methods.

The short path handles two tensors of one shape and dtype, or one tensor: a native builtin computes, and a node
is put on the tape by plain assignments. A little longer is the way of two other tensors, or a tensor and a number, for
whose forms there is a recipe. Everything else takes `common.tensor.record.record`, with the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from common.autograd import backward_pass
from common.core import mode
from common.core.dispatch import NO_ATTRS, Attrs
from common.core.dtypes import float32, float64
from common.core.members import give
from common.core.op import REGISTRY, Op, rules_changed
from common.core.source_lines import user_files, user_frame
from common.evaluate import kernels as eager_kernels
from common.evaluate import specialise as eager
from common.evaluate.straight_line import straight_rules
from common.ops.linalg import matmul
from common.tensor import inference, tape_garbage
from common.tensor.base import NUMBERS, Tensor, TensorBase
from common.tensor.external_writes import exposed, seal
from common.tensor.leaf import Leaf
from common.tensor.node import Edge, Node, next_number
from common.tensor.record import record

_new = object.__new__
_getframe = sys._getframe
_users = user_files
_grad_enabled = mode.grad_mode.get
_next_number = next_number
FLOATS: tuple[np.dtype, ...] = (float32, float64)


#: What a number is on the tape: a tensor that takes no gradient.
_NUMBER = Tensor(np.zeros(()))


class _Short:
    """The short path of one op: per float dtype a builtin for operands of one shape, and the rules to go with it."""

    __slots__ = ("op", "builtins", "numbers", "rules")

    def __init__(self, op: Op) -> None:
        self.op = op
        positions = range(len(FLOATS))
        self.builtins: list[Callable[..., Any]] = [self._first("builtins", i) for i in positions]
        #: The same for a tensor and a number behind it.
        self.numbers: list[Callable[..., Any]] = [self._first("numbers", i) for i in positions]
        self.rules: list[Any] = [None] * len(FLOATS)
        rules_changed.append(self._derive)

    def _first(self, kind: str, position: int) -> Callable[..., Any]:
        """Compiles at first use, then takes itself out of the way."""
        dtype, make = FLOATS[position], eager_kernels.same_shape if kind == "builtins" else eager_kernels.fast

        def compile_and_run(x: Any, *others: Any) -> Any:
            if type(x) is np.ndarray and x.dtype != dtype:  # a program of the other dtype comes here every time
                return None
            if any(type(z) is not np.ndarray or z.dtype != dtype for z in (x, *(others if kind == "builtins" else ()))):
                return None
            builtin = getattr(self, kind)[position] = make(self.op.name, (dtype,) * (1 + len(others)), dtype)
            self.rules[position] = self.rules[position] or self._lazily(position, dtype)
            return builtin(x, *others)

        return compile_and_run

    def _lazily(self, position: int, dtype: np.dtype) -> Callable[..., Any]:
        """The rules, written down when a gradient first asks for them: that compiles kernels."""
        written: list[Callable[..., Any]] = []

        def write_and_run(*arguments: Any) -> Any:
            if not written:  # nodes that were recorded before come here every time
                written.append(straight_rules(self.op, dtype))
                if self.rules[position] is write_and_run:
                    self.rules[position] = written[0]
            return written[0](*arguments)

        return write_and_run

    def _derive(self, op: Op) -> None:
        if op is self.op:
            self.rules[:] = [rule and self._lazily(i, FLOATS[i]) for i, rule in enumerate(self.rules)]


def _binary(short: _Short, depth: int = 1) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The operator of a binary op, and that for a left operand that is no tensor; user code is `depth` frames up."""
    op, builtins, numbers, rules = short.op, short.builtins, short.numbers, short.rules
    left, right, output = 0 in op.saved_inputs, 1 in op.saved_inputs, op.saves_output

    def operator(a: Tensor, b: Any) -> Any:
        if mode.tracing:
            return general(a, b)
        x = a.payload
        position = 0
        if isinstance(b, TensorBase):
            z = b.payload
            if (y := builtins[0](x, z)) is None:
                if x.dtype is not float64 or (y := builtins[1](x, z)) is None:
                    return wider(a, b)
                position = 1
        elif type(b) in NUMBERS:
            z = b
            if (y := numbers[0](x, z)) is None:
                if x.dtype is not float64 or (y := numbers[1](x, z)) is None:
                    return wider(a, b)
                position = 1
            b = _NUMBER
        else:
            return general(a, b)
        t = _new(Tensor)
        t.payload = y
        t.output_nr = 0
        t._grad = t._family = None
        if (a._requires_grad or b._requires_grad) and _grad_enabled():
            e: Edge = a.grad_fn
            if e is None:
                e = a if a._requires_grad else None
            elif a.output_nr:
                e = a.edge
            f: Edge = b.grad_fn
            if f is None:
                f = b if b._requires_grad else None
            elif b.output_nr:
                f = b.edge
            node = _new(Node)
            node.number = number = _next_number()
            if number >= tape_garbage.due:
                tape_garbage.look(number)
            node.op = op
            node.backward = rules[position]
            node.edges = (e, f)
            if left:
                node.saved = (x, z) if right else (x, y) if output else (x,)
            elif right:
                node.saved = (z, y) if output else (z,)
            else:
                node.saved = (y,) if output else ()
            node.attrs = node.fit = node.freed_by = None
            frame = _getframe(depth)
            code = frame.f_code
            if code.co_filename in _users:
                node.code = code
                node.lasti = frame.f_lasti
            else:
                node.code, node.lasti = user_frame(depth + 1)
            if exposed:
                seal(node)
            t.grad_fn = node
            t._requires_grad = True
        else:
            t.grad_fn = None
            t._requires_grad = False
        return t

    def reflected(a: Tensor, b: Any) -> Any:
        return wider(b, a) if type(b) in NUMBERS and not mode.tracing else general_reflected(a, b)

    assert not (left and right and output), f"the short path does not save all of {op.name}'s operands and result"
    wider = _known(op, NO_ATTRS, lambda a, b: record(op, (a, b), NO_ATTRS), depth + 1)
    general = getattr(TensorBase, f"__{_METHOD.get(op.name, op.name)}__")
    general_reflected = getattr(TensorBase, f"__r{_METHOD.get(op.name, op.name)}__")
    return operator, reflected


def _known(op: Op, attrs: Attrs, otherwise: Callable[[Any, Any], Any], depth: int) -> Callable[[Any, Any], Any]:
    """An op of two operands, tensors or numbers, for whose forms there is a recipe; `otherwise` what takes all."""

    def run(a: Any, b: Any) -> Any:
        x = a.payload if isinstance(a, TensorBase) else a
        z = b.payload if isinstance(b, TensorBase) else b
        found = eager.find(op, attrs, x, z)
        if found is None or found.builtin is None or mode.tracing:
            return otherwise(a, b)
        try:
            if (y := found.builtin(x, z)) is None:
                y = found.run(x, z)
        except (MemoryError, ValueError):
            return otherwise(a, b)  # which says what is wrong
        if x is a:
            a = _NUMBER
        elif z is b:
            b = _NUMBER
        t = _new(Tensor)
        t.payload = y
        t.output_nr = 0
        t._grad = t._family = None
        if (a._requires_grad or b._requires_grad) and _grad_enabled():
            e: Edge = a.grad_fn
            if e is None:
                e = a if a._requires_grad else None
            elif a.output_nr:
                e = a.edge
            f: Edge = b.grad_fn
            if f is None:
                f = b if b._requires_grad else None
            elif b.output_nr:
                f = b.edge
            node = _new(Node)
            node.number = number = _next_number()
            if number >= tape_garbage.due:
                tape_garbage.look(number)
            node.op = op
            node.attrs = attrs
            node.backward = found.backward
            node.fit = found.forms
            node.edges = (e, f)
            keeps = found.keeps
            node.saved = (x, z) if keeps == 2 else () if keeps == 0 else op.save((x, z), y)
            node.freed_by = None
            frame = _getframe(depth)
            code = frame.f_code
            if code.co_filename in _users:
                node.code = code
                node.lasti = frame.f_lasti
            else:
                node.code, node.lasti = user_frame(depth + 1)
            if exposed:
                seal(node)
            t.grad_fn = node
            t._requires_grad = True
        else:
            t.grad_fn = None
            t._requires_grad = False
        return t

    return run


_METHOD = {"div": "truediv"}


def _unary(short: _Short, depth: int = 1) -> Callable[[Any], Any]:
    """The method of a unary op; user code is `depth` frames up."""
    op, builtins, rules = short.op, short.builtins, short.rules
    operand, output = bool(op.saved_inputs), op.saves_output

    def method(a: Tensor) -> Any:
        if mode.tracing:
            return record(op, (a,), NO_ATTRS)
        x = a.payload
        y = builtins[0](x)
        position = 0
        if y is None:
            if x.dtype is not float64 or (y := builtins[1](x)) is None:
                return record(op, (a,), NO_ATTRS)
            position = 1
        t = _new(Tensor)
        t.payload = y
        t.output_nr = 0
        t._grad = t._family = None
        if a._requires_grad and _grad_enabled():
            e: Edge = a.grad_fn
            node = _new(Node)
            node.number = number = _next_number()
            if number >= tape_garbage.due:
                tape_garbage.look(number)
            node.op = op
            node.backward = rules[position]
            node.edges = (a if e is None else (e, a.output_nr) if a.output_nr else e,)
            node.saved = ((x, y) if output else (x,)) if operand else ((y,) if output else ())
            node.attrs = node.fit = node.freed_by = None
            frame = _getframe(depth)
            code = frame.f_code
            if code.co_filename in _users:
                node.code = code
                node.lasti = frame.f_lasti
            else:
                node.code, node.lasti = user_frame(depth + 1)
            if exposed:
                seal(node)
            t.grad_fn = node
            t._requires_grad = True
        else:
            t.grad_fn = None
            t._requires_grad = False
        return t

    method.__name__, method.__doc__ = op.name, op.doc
    return method


def _named(name: str, operator: Callable[[Any, Any], Any], doc: Any) -> Callable[..., Any]:
    """The method of a binary op: the operator, unless arguments are named."""

    def method(self: Tensor, *others: Any, **options: Any) -> Any:
        if len(others) == 1 and not options:
            y = operator(self, others[0])
            if y is not NotImplemented:
                return y
        return getattr(TensorBase, name)(self, *others, **options)

    method.__name__, method.__doc__ = name, doc
    return method


_UNARY = ("abs", "exp", "log", "tanh", "sigmoid", "relu", "sin", "cos", "sqrt", "square", "neg")
_METHODS: dict[str, Any] = {}
#: The short paths of public functions, which are called from a frame of their own.
SHORT: dict[str, Any] = {}
for _name in _UNARY:
    _short = _Short(REGISTRY[_name])
    _METHODS[_name], SHORT[_name] = _unary(_short), _unary(_short, 2)
_METHODS["__neg__"], _METHODS["__abs__"] = _METHODS["neg"], _METHODS["abs"]
for _name in ("add", "sub", "mul", "div"):
    _short, _dunder = _Short(REGISTRY[_name]), _METHOD.get(_name, _name)
    _METHODS[f"__{_dunder}__"], _METHODS[f"__r{_dunder}__"] = _binary(_short)
    SHORT[_name] = _binary(_short, 2)[0]
    _METHODS[_name] = _named(_name, SHORT[_name], REGISTRY[_name].doc)
    if _name == "add":
        backward_pass.add_with(_short.builtins)
for _name in ("matmul", "mm"):
    SHORT[_name] = _known(REGISTRY["mm"], matmul.PLAIN, getattr(matmul, _name), 2)
    _method = _known(REGISTRY["mm"], matmul.PLAIN, lambda a, b: NotImplemented, 2)
    _METHODS[_name] = _named(_name, _method, getattr(matmul, _name).__doc__)
_METHODS["__matmul__"] = _known(REGISTRY["mm"], matmul.PLAIN, getattr(TensorBase, "__matmul__"), 1)  # noqa: B009
for _class in (Tensor, Leaf):
    give(_class, _METHODS)
_BINARY = [name for name in _METHODS if name not in (*_UNARY, "__neg__", "__abs__", "sum", "mean")]


def _look_at_operands() -> None:
    inference.look_at_operands((Tensor, Leaf), _BINARY)


if mode.inference_seen:
    _look_at_operands()
else:
    mode.on_inference.append(_look_at_operands)
