"""Ops in ONNX: one rule per op, a function of the writer, the node and the names of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.sizes import hint
from static.graph import Node

Writer = Any
"""A `static.export.onnx_model.OnnxWriter`."""
OnnxRule = Callable[[Writer, Node, list[str]], str | list[str]]
"""Adds nodes and returns the names of the results."""

RULES: dict[str, OnnxRule] = {}
MADE: set[str] = set()
"""Ops that several operators make: the model has a function of each."""

_SAME = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "abs": "Abs", "sign": "Sign", "sqrt": "Sqrt",
    "reciprocal": "Reciprocal", "pow": "Pow", "eq": "Equal",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not",
    "isnan": "IsNaN", "maximum": "Max", "minimum": "Min", "clone": "Identity",
    "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh", "sigmoid": "Sigmoid",
    "erf": "Erf", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "floor": "Floor", "ceil": "Ceil", "round": "Round", "isinf": "IsInf",
    "clamp_min": "Max", "clamp_max": "Min", "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor", "bitwise_not": "BitwiseNot", "hardswish": "HardSwish", "mish": "Mish",
}  # fmt: skip
_REDUCTIONS = {"sum": "ReduceSum", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin", "mean": "ReduceMean"}


def rule(name: str) -> Callable[[OnnxRule], OnnxRule]:
    """Decorator: the rule of an op."""

    def register(made: OnnxRule) -> OnnxRule:
        RULES[name] = made
        return made

    return register


#: Operators that take no bools, and those that do the same with them.
_OF_TRUTH = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}


def _same(kind: str) -> OnnxRule:
    return lambda w, node, x: w.add(_OF_TRUTH.get(kind, kind) if node.outputs[0].dtype.kind == "b" else kind, x)


def _reduced(kind: str) -> OnnxRule:
    def reduce(w: Writer, node: Node, x: list[str]) -> str:
        axes = w.constant(np.array(node.attrs["dim"], np.int64))
        dtype = node.outputs[0].dtype
        taken = np.dtype(np.int32) if dtype.char in "?h" else dtype  # no operator reduces bools and int16
        value = w.cast(x[0], node.operands[0].dtype, taken)
        made = w.add(kind, [value, axes], keepdims=int(node.attrs["keepdim"]), noop_with_empty_axes=1)
        return str(w.cast(made, taken, dtype))

    return reduce


RULES.update({name: _same(kind) for name, kind in _SAME.items()})
RULES.update({name: _reduced(kind) for name, kind in _REDUCTIONS.items()})


def chosen(w: Writer, node: Node, x: list[str]) -> str:
    """Elements of one or the other array; bools by logic, for which runtimes need no Where of bools."""
    if node.outputs[0].dtype.kind == "b":
        kind, x = "Or", [w.add("And", x[:2]), w.add("And", [w.add("Not", x[:1]), x[2]])]
    else:
        kind = "Where"
    made: str = w.add(kind, x)
    return made


RULES["where"] = chosen


def _compared(kind: str) -> OnnxRule:
    def compare(w: Writer, node: Node, x: list[str]) -> str:
        dtypes = {operand.dtype for operand in node.operands if hasattr(operand, "dtype")}
        if dtypes == {np.dtype(bool)}:  # no operator orders bools
            x = [w.cast(name, np.dtype(bool), np.dtype(np.int32)) for name in x]
        made: str = w.add(kind, x)
        return made

    return compare


_ORDERS = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
RULES.update({name: _compared(kind) for name, kind in _ORDERS.items()})
RULES["relu"] = lambda w, node, x: w.add("Identity" if node.outputs[0].dtype.kind == "u" else "Relu", x)
RULES["neg"] = lambda w, node, x: (
    w.add("Sub", [w.number(0, node), *x]) if node.outputs[0].dtype.kind == "u" else w.add("Neg", x)
)
RULES["ne"] = lambda w, node, x: w.add("Not", [w.add("Equal", x)])
RULES["to"] = lambda w, node, x: w.cast(x[0], node.operands[0].dtype, node.outputs[0].dtype)
RULES["zeros_like"] = lambda w, node, x: w.add("Expand", [w.number(0, node), w.add("Shape", x)])
RULES["ones_like"] = lambda w, node, x: w.add("Expand", [w.number(1, node), w.add("Shape", x)])
RULES["fmod"] = lambda w, node, x: w.add("Mod", x, fmod=1)
RULES["constant"] = lambda w, node, x: w.scalar(node.attrs["value"], node.outputs[0].dtype)


@rule("any")
@rule("all")
def _truth(w: Writer, node: Node, x: list[str]) -> str:
    axes = w.constant(np.array(node.attrs["dim"], np.int64))
    given = w.cast(x[0], node.operands[0].dtype, np.dtype(bool))
    value = w.cast(given, np.dtype(bool), np.dtype(np.int32))
    kind = "ReduceMax" if node.name == "any" else "ReduceMin"
    made = w.add(kind, [value, axes], keepdims=int(node.attrs["keepdim"]), noop_with_empty_axes=1)
    return str(w.cast(made, np.dtype(np.int32), np.dtype(bool)))


@rule("softmax")
@rule("log_softmax")
def _softmax(w: Writer, node: Node, x: list[str]) -> str:
    dim = node.attrs["dim"]
    axis = int(dim[0] if isinstance(dim, tuple) else dim)
    made: str = w.add("Softmax" if node.name == "softmax" else "LogSoftmax", x, axis=axis)
    return made


# ------------------------------------------------------------------ shapes

RULES["reshape"] = lambda w, node, x: w.add("Reshape", [x[0], w.sizes(node.attrs["new_shape"])], allowzero=1)
RULES["expand"] = lambda w, node, x: w.add("Expand", [x[0], w.sizes(node.attrs["new_shape"])])
RULES["permute"] = lambda w, node, x: w.add("Transpose", x, perm=[int(d) for d in node.attrs["dims"]])


def _sliced(w: Writer, node: Node, x: str) -> str:
    attrs = node.attrs
    if not attrs["sizes"]:
        return x
    steps = w.sizes(attrs["steps"])
    starts = w.sizes(attrs["starts"])
    reach = w.add("Mul", [w.sizes(attrs["sizes"]), steps])
    axes = w.constant(np.arange(len(attrs["sizes"]), dtype=np.int64))
    made: str = w.add("Slice", [x, starts, w.add("Add", [starts, reach]), axes, steps])
    return made


@rule("slice")
def _slice(w: Writer, node: Node, x: list[str]) -> str:
    return _sliced(w, node, x[0])


@rule("select")
def _select(w: Writer, node: Node, x: list[str]) -> str:
    made: str = w.add("Reshape", [_sliced(w, node, x[0]), w.sizes(node.outputs[0].shape)], allowzero=1)
    return made


@rule("full")
def _full(w: Writer, node: Node, x: list[str]) -> str:
    value = w.scalar(node.attrs["value"], node.outputs[0].dtype)
    made: str = w.add("Expand", [value, w.sizes(node.attrs["shape"])])
    return made


@rule("arange")
def _arange(w: Writer, node: Node, x: list[str]) -> str:
    start, step, count = (w.scalar(node.attrs[name], np.dtype(np.int64)) for name in ("start", "step", "count"))
    made: str = w.add("Range", [start, w.add("Add", [start, w.add("Mul", [step, count])]), step])
    return made


def _concatenated(w: Writer, node: Node, x: list[str]) -> str:
    made: str = w.add("Concat", x, axis=int(node.attrs["dim"]))
    return made


def _stacked(w: Writer, node: Node, x: list[str]) -> str:
    axis = int(node.attrs["dim"])
    axes = w.constant(np.array([axis], np.int64))
    made: str = w.add("Concat", [w.add("Unsqueeze", [each, axes]) for each in x], axis=axis)
    return made


def _split(w: Writer, node: Node, x: list[str]) -> list[str]:
    made = w.add("Split", [x[0], w.sizes(node.attrs["sizes"])], len(node.outputs), axis=int(node.attrs["dim"]))
    return [made] if isinstance(made, str) else list(made)


@rule("flip")
@rule("reverse")
def _flip(w: Writer, node: Node, x: list[str]) -> str:
    dims = np.array(node.attrs["dims"], np.int64)
    ends = (np.full_like(dims, n) for n in (-1, np.iinfo(np.int64).min))
    first, last, axes, steps = map(w.constant, (*ends, dims, np.full_like(dims, -1)))
    made: str = w.add("Slice", [x[0], first, last, axes, steps]) if len(dims) else x[0]
    return made


@rule("cumsum")
def _cumsum(w: Writer, node: Node, x: list[str]) -> str:
    value = w.cast(x[0], node.operands[0].dtype, node.outputs[0].dtype)
    axis = w.constant(np.array(node.attrs["dim"], np.int64))
    made: str = w.add("CumSum", [value, axis], reverse=int(node.attrs["reverse"]))
    return made


# ------------------------------------------------------------------ indices and products

RULES["index_select"] = lambda w, node, x: w.add("Gather", x, axis=int(node.attrs["dim"]))
RULES["gather"] = lambda w, node, x: w.add("GatherElements", x, axis=int(node.attrs["dim"]))
RULES["argmax"] = lambda w, node, x: w.add("ArgMax", x, axis=int(node.attrs["dim"]), keepdims=0)
RULES["argmin"] = lambda w, node, x: w.add("ArgMin", x, axis=int(node.attrs["dim"]), keepdims=0)


@rule("pick")
def _pick(w: Writer, node: Node, x: list[str]) -> str:
    last = w.constant(np.array([-1], np.int64))
    found = w.add("GatherElements", [x[0], w.add("Unsqueeze", [x[1], last])], axis=-1)
    made: str = w.add("Squeeze", [found, last])
    return made


@rule("spread")
def _spread(w: Writer, node: Node, x: list[str]) -> str:
    last = w.constant(np.array([-1], np.int64))
    zeros = w.add("Expand", [w.scalar(0, node.outputs[0].dtype), w.sizes(node.outputs[0].shape)])
    made: str = w.add("ScatterElements", [zeros, w.add("Unsqueeze", [x[1], last]), w.add("Unsqueeze", [x[0], last])],
                      axis=-1)  # fmt: skip
    return made


def _turned(w: Writer, x: str, node: Node, operand: int, flag: str) -> str:
    if not node.attrs[flag]:
        return x
    order = list(range(len(node.operands[operand].shape)))
    order[-2:] = order[:-3:-1]
    made: str = w.add("Transpose", [x], perm=order)
    return made


@rule("mm")
@rule("bmm")
def _product(w: Writer, node: Node, x: list[str]) -> str:
    made: str = w.add("MatMul", [_turned(w, x[0], node, 0, "trans_a"), _turned(w, x[1], node, 1, "trans_b")])
    return made


@rule("addmm")
def _addmm(w: Writer, node: Node, x: list[str]) -> str:
    product = w.add("MatMul", [_turned(w, x[1], node, 1, "trans_a"), _turned(w, x[2], node, 2, "trans_b")])
    made: str = w.add("Add", [x[0], product])
    return made


def fixed(node: Node, name: str) -> list[int]:
    """Numbers among the attributes.

    Raises
    ------
    ArgumentError : they depend on sizes, which ONNX does not allow there.
    """
    numbers = node.attrs[name]
    if any(not isinstance(n, int) for n in numbers):
        file, line, _ = node.source
        raise ArgumentError(f"export_onnx(): {name} of {node.name!r} ({file}:{line}) depends on sizes; ONNX fixes it")
    return list(numbers)


def _max_pool(w: Writer, node: Node, x: list[str], results: int) -> Any:
    """The maxima of windows, and if 2 results are wanted where they are."""
    pads, size, stride, dilation = (fixed(node, name) for name in ("padding", "size", "stride", "dilation"))
    reach = list(zip(node.operands[0].shape[2:], pads, size, stride, dilation, node.attrs["count"], strict=True))
    whole = [hint(n) + 2 * pad - d * (k - 1) - 1 for n, pad, k, _, d, _ in reach]
    ceil = any(n // step + 1 != hint(count) for n, (*_, step, _, count) in zip(whole, reach, strict=True))
    if ceil and any(-(-n // step) + 1 != hint(count) for n, (*_, step, _, count) in zip(whole, reach, strict=True)):
        file, line, _ = node.source
        raise ArgumentError(f"export_onnx(): {node.name!r} ({file}:{line}) has windows that reach over the end")
    return w.add("MaxPool", x, results, pads=pads + pads, kernel_shape=size, strides=stride, dilations=dilation,
                 ceil_mode=int(ceil))  # fmt: skip


@rule("window_amax")
def _window_amax(w: Writer, node: Node, x: list[str]) -> str:
    made: str = _max_pool(w, node, x, 1)
    return made


@rule("window_max")
def _window_max(w: Writer, node: Node, x: list[str]) -> str:
    _, places = _max_pool(w, node, x, 2)
    plane: Any = 1
    for n in node.operands[0].shape[2:]:
        plane = plane * n
    made: str = w.add("Mod", [places, w.scalar(plane, np.dtype(np.int64))])
    return made


def known(name: str) -> OnnxRule | None:
    """The rule of an op; None if it has none."""
    stem = name.rstrip("0123456789")
    return RULES.get(name) or (FAMILIES.get(stem) if stem != name else None)


#: Ops whose names end in the number of their operands or results.
FAMILIES: dict[str, OnnxRule] = {"cat": _concatenated, "stack": _stacked, "split": _split, "slices": _split}
