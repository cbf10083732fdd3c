"""Operators on elements, reductions, and products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from common.core.op import REGISTRY
from common.ops import functional as F
from common.ops.math.cast import converted
from common.random.generator import dropout
from common.tools.onnx.applied import MEANINGS, Applied, OnnxMeaning, axis_of, is_known, meaning, of_tensors
from common.tools.onnx.host_values import FOLDED, MOST, arange, fold, full, number, sizes, tensor
from common.tools.onnx.records import dtype_of

_ONE = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "IsNaN": "isnan", "Log": "log", "Neg": "neg", "Not": "logical_not", "Reciprocal": "reciprocal", "Relu": "relu",
    "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan",
    "Tanh": "tanh", "BitwiseNot": "bitwise_not", "Softsign": "softsign", "HardSwish": "hardswish", "Mish": "mish",
    "Add": "add", "Sub": "sub", "Mul": "mul", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "Det": "det",
}  # fmt: skip
"""Operators that are a function here."""


def _plain(name: str, function: str) -> OnnxMeaning:
    def apply(a: Applied, *x: Any) -> Any:
        if name in FOLDED and is_known(x):
            made = fold(name, x)
            if made is not None:
                return made
        return getattr(F, function)(*map(tensor, x))

    return apply


MEANINGS.update({name: _plain(name, function) for name, function in _ONE.items()})


def _folding(name: str) -> Callable[[OnnxMeaning], OnnxMeaning]:
    """Decorator: a rule for tensors; known operands are folded."""

    def register(made: OnnxMeaning) -> OnnxMeaning:
        def apply(a: Applied, *x: Any) -> Any:
            if is_known(x) and (folded := fold(name, x)) is not None:
                return folded
            return made(a, *map(tensor, x))

        MEANINGS.update({name: apply})
        return made

    return register


@_folding("Div")
def _div(a: Applied, x: Any, y: Any) -> Any:
    return F.div(x, y) if x.dtype.kind == "f" else F.div(x, y, rounding_mode="trunc")


@_folding("Where")
def _where(a: Applied, condition: Any, x: Any, y: Any) -> Any:
    return F.where(condition, x, y)


@_folding("Max")
def _max(a: Applied, *x: Any) -> Any:
    return _joined("maximum", x)


@_folding("Min")
def _min(a: Applied, *x: Any) -> Any:
    return _joined("minimum", x)


def _joined(op: str, x: Sequence[Any]) -> Any:
    total = x[0]
    for each in x[1:]:
        total = getattr(F, op)(total, each)
    return total


@of_tensors("Sum")
def _sum(a: Applied, *x: Any) -> Any:
    return _joined("add", x)


@of_tensors("Mean")
def _mean(a: Applied, *x: Any) -> Any:
    return F.div(_joined("add", x), len(x))


@of_tensors("Pow")
def _pow(a: Applied, x: Any, y: Any) -> Any:
    return converted(F.pow(x, y), x.dtype)


@meaning("Mod")
def _mod(a: Applied, x: Any, y: Any) -> Any:
    if is_known((x, y)) and not a.get("fmod", 0) and "f" not in (x.dtype.kind, y.dtype.kind):
        return np.asarray(x % y)
    return (F.fmod if a.get("fmod", 0) else F.remainder)(tensor(x), tensor(y))


@of_tensors("BitShift")
def _shift(a: Applied, x: Any, y: Any) -> Any:
    return (F.bitwise_left_shift if a.need("direction", str) == "LEFT" else F.bitwise_right_shift)(x, y)


@meaning("Identity")
def _identity(a: Applied, x: Any) -> Any:
    return x


@meaning("Cast", "CastLike")
def _cast(a: Applied, x: Any, like: Any = None) -> Any:
    dtype = dtype_of(a.need("to", int), "the result") if a.node.kind == "Cast" else like.dtype
    a.sizes.pop(a.node.outputs[0], None)
    if isinstance(x, np.ndarray):
        if x.dtype == object:
            if dtype.kind == "i":
                return x
            a.sizes[a.node.outputs[0]] = x
            return converted(tensor(x), dtype)
        if x.size <= MOST and not (x.dtype.kind == "f" and dtype.kind in "iu"):
            return x.astype(dtype)
    return converted(tensor(x), dtype)


@of_tensors("IsInf")
def _isinf(a: Applied, x: Any) -> Any:
    kinds = [(a.get("detect_positive", 1), np.inf), (a.get("detect_negative", 1), -np.inf)]
    found = [F.eq(x, value) for wanted, value in kinds if wanted]
    return F.isinf(x) if len(found) == 2 else found[0] if found else F.ne(x, x) & F.eq(x, x)


# ------------------------------------------------------------------ activations

MEANINGS.update({"Swish": lambda a, x: tensor(x) * F.sigmoid(a.get("alpha", 1.0) * tensor(x))})
MEANINGS.update({"Elu": lambda a, x: F.elu(tensor(x), a.get("alpha", 1.0))})
MEANINGS.update({"Celu": lambda a, x: F.celu(tensor(x), a.get("alpha", 1.0))})
MEANINGS.update({"LeakyRelu": lambda a, x: F.leaky_relu(tensor(x), a.get("alpha", 0.01))})
MEANINGS.update({"Gelu": lambda a, x: F.gelu(tensor(x), approximate=a.get("approximate", "none"))})


@of_tensors("Selu")
def _selu(a: Applied, x: Any) -> Any:
    if "alpha" not in a.node.attrs and "gamma" not in a.node.attrs:
        return F.selu(x)
    alpha, gamma = a.get("alpha", 1.67326319217681884765625), a.get("gamma", 1.05070102214813232421875)
    return gamma * F.where(x > 0, x, alpha * F.expm1(x))


@of_tensors("Softplus")
def _softplus(a: Applied, x: Any) -> Any:
    return F.softplus(x, 1.0, 20.0 if x.dtype == np.float32 else 40.0)


@of_tensors("HardSigmoid")
def _hard_sigmoid(a: Applied, x: Any) -> Any:
    return F.clamp(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0.0, 1.0)


@of_tensors("Shrink")
def _shrink(a: Applied, x: Any) -> Any:
    limit, bias = a.get("lambd", 0.5), a.get("bias", 0.0)
    zeros = F.zeros_like(x)
    return F.where(x < -limit, converted(x + bias, x.dtype), F.where(x > limit, converted(x - bias, x.dtype), zeros))


@of_tensors("ThresholdedRelu")
def _thresholded(a: Applied, x: Any) -> Any:
    return F.where(x > a.get("alpha", 1.0), x, 0.0)


@of_tensors("PRelu")
def _prelu(a: Applied, x: Any, slope: Any) -> Any:
    if a.opset < 7 and slope.ndim == 1 and slope.shape[0] != 1:
        slope = F.reshape(slope, (-1, *[1] * (x.ndim - 2)))
    return F.where(x < 0, slope * x, x)


@meaning("Clip")
def _clip(a: Applied, x: Any, low: Any = None, high: Any = None) -> Any:
    x = tensor(x)
    for op, limit in (
        ("maximum", a.get("min") if low is None else low),
        ("minimum", a.get("max") if high is None else high),
    ):
        if limit is not None:
            x = getattr(F, op)(x, tensor(limit))
    return x


@meaning("Dropout")
def _dropout(a: Applied, x: Any, ratio: Any = None, training: Any = None) -> Any:
    x = tensor(x)
    if training is None or not number(training, "training_mode"):
        return [x, F.eq(x, x) | F.ne(x, x)] if a.wants(1) else x
    p = 0.5 if ratio is None else float(number(ratio, "ratio"))
    if not a.wants(1):
        return dropout(x, p)
    kept = dropout(F.ones_like(x), p)
    return [x * kept, F.ne(kept, 0)]


# ------------------------------------------------------------------ reductions


def _axes(a: Applied, rank: int, given: Any) -> list[int] | None:
    """The dimensions of a reduction; None if nothing is reduced."""
    listed = a.get("axes") if given is None else sizes(given, "axes")
    if not listed:
        return None if a.get("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({axis_of(int(d), rank, "axis") for d in listed})


def _reduced(function: Any) -> OnnxMeaning:
    def apply(a: Applied, x: Any, axes: Any = None) -> Any:
        x = tensor(x)
        dims = _axes(a, x.ndim, axes)
        if dims is None or x.ndim == 0:
            return x if function in (_total, _product, _extreme_max, _extreme_min, _average) else function(x, [], True)
        return converted(function(x, dims, bool(a.get("keepdims", 1))), x.dtype)

    return apply


def _total(x: Any, dims: list[int], keep: bool) -> Any:
    return F.sum(x, dims, keep, dtype=x.dtype) if dims else x


def _product(x: Any, dims: list[int], keep: bool) -> Any:
    return REGISTRY["prod"](x, dim=tuple(dims), keepdim=keep) if dims else x


def _extreme_max(x: Any, dims: list[int], keep: bool) -> Any:
    return F.amax(_not_empty(x, dims, -1), dims, keep)


def _extreme_min(x: Any, dims: list[int], keep: bool) -> Any:
    return F.amin(_not_empty(x, dims, 1), dims, keep)


def _not_empty(x: Any, dims: list[int], sign: int) -> Any:
    """x, or what is above or below everything where there is nothing to be compared."""
    if all(not (type(x.shape[d]) is int and x.shape[d] == 0) for d in dims):
        return x
    shape = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    if x.dtype.kind in "iu":
        return full(shape, int(np.iinfo(x.dtype).max if sign > 0 else np.iinfo(x.dtype).min), x.dtype)
    return full(shape, sign > 0 if x.dtype.kind == "b" else sign * np.inf, x.dtype)


def _average(x: Any, dims: list[int], keep: bool) -> Any:
    if x.dtype.kind == "f":
        return F.mean(x, dims, keep)
    count: Any = 1
    for d in dims:
        count = count * x.shape[d]
    return F.div(_total(x, dims, keep), count, rounding_mode="trunc")


MEANINGS.update({
    "ReduceSum": _reduced(_total), "ReduceMean": _reduced(_average), "ReduceProd": _reduced(_product),
    "ReduceMax": _reduced(_extreme_max), "ReduceMin": _reduced(_extreme_min),
    "ReduceL1": _reduced(lambda x, dims, keep: _total(F.abs(x), dims, keep)),
    "ReduceL2": _reduced(lambda x, dims, keep: F.sqrt(_total(F.square(x), dims, keep))),
    "ReduceLogSum": _reduced(lambda x, dims, keep: F.log(_total(x, dims, keep))),
    "ReduceLogSumExp": _reduced(lambda x, dims, keep: F.logsumexp(x, dims, keep) if dims else x),
    "ReduceSumSquare": _reduced(lambda x, dims, keep: _total(F.square(x), dims, keep)),
})  # fmt: skip

_known_prod = MEANINGS["ReduceProd"]


@meaning("ReduceProd")
def _reduce_prod(a: Applied, x: Any, axes: Any = None) -> Any:
    if not isinstance(x, np.ndarray) or x.dtype.kind == "f":
        return _known_prod(a, x, axes)
    dims, kept = _axes(a, x.ndim, axes), cast("Any", bool(a.get("keepdims", 1)))  # the stubs' overloads want a literal
    return x if dims is None else np.asarray(np.prod(x, tuple(dims), keepdims=kept))


@of_tensors("ArgMax", "ArgMin")
def _arg(a: Applied, x: Any) -> Any:
    find = F.argmax if a.node.kind == "ArgMax" else F.argmin
    axis, keep = axis_of(a.get("axis", 0), x.ndim, "axis"), bool(a.get("keepdims", 1))
    if not a.get("select_last_index", 0):
        return find(x, axis, keep)
    return x.shape[axis] - 1 - find(F.flip(x, (axis,)), axis, keep)


@meaning("CumSum")
def _cumsum(a: Applied, x: Any, axis: Any) -> Any:
    x = tensor(x)
    d = axis_of(int(number(axis, "axis")), x.ndim, "axis")
    back = bool(a.get("reverse", 0))
    y = REGISTRY["cumsum"](x, dim=d, reverse=back) if back else F.cumsum(x, d, dtype=x.dtype)
    if not a.get("exclusive", 0):
        return y
    zero = F.mul(F.narrow(y, d, 0, 1), 0)
    rest = F.narrow(y, d, 1, y.shape[d] - 1) if back else F.narrow(y, d, 0, y.shape[d] - 1)
    return F.cat([rest, zero] if back else [zero, rest], d)


@meaning("TopK")
def _topk(a: Applied, x: Any, k: Any = None) -> Any:
    count = a.need("k", int) if k is None else number(k, "k")
    x = tensor(x)
    values, places = F.topk(x, count, axis_of(a.get("axis", -1), x.ndim, "axis"), bool(a.get("largest", 1)))
    return [values, places]


@of_tensors("Softmax", "LogSoftmax", "Hardmax")
def _softmax(a: Applied, x: Any) -> Any:
    apply = {"Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Hardmax": _hardmax}[a.node.kind]
    if a.opset >= 13:
        return apply(x, axis_of(a.get("axis", -1), x.ndim, "axis"))
    axis = axis_of(a.get("axis", 1), x.ndim, "axis")
    if axis == x.ndim - 1:
        return apply(x, axis)
    return F.reshape(apply(F.reshape(x, (*x.shape[:axis], -1)), axis), tuple(x.shape))


def _hardmax(x: Any, dim: int) -> Any:
    places = F.argmax(x, dim, True)
    steps = [1] * x.ndim
    steps[dim] = x.shape[dim]
    return converted(F.eq(F.reshape(arange(x.shape[dim]), steps), places), x.dtype)


# ------------------------------------------------------------------ products


@of_tensors("MatMul")
def _matmul(a: Applied, x: Any, y: Any) -> Any:
    return F.matmul(x, y)


@of_tensors("Gemm")
def _gemm(a: Applied, x: Any, y: Any, z: Any = None) -> Any:
    product = F.matmul(F.t(x) if a.get("transA", 0) else x, F.t(y) if a.get("transB", 0) else y)
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    product = product if alpha == 1 else product * alpha
    if z is None or beta == 0:
        return product
    return (z if beta == 1 else z * beta) + product


@of_tensors("Einsum")
def _einsum(a: Applied, *x: Any) -> Any:
    return F.einsum(a.need("equation", str), *x)


@meaning("Constant")
def _constant(a: Applied) -> Any:
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64),
                        ("value_ints", np.int64)):  # fmt: skip
        if (found := a.get(name)) is not None:
            return np.asarray(found, dtype)
    return a.need("value", np.ndarray)


@of_tensors("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _nll(a: Applied, x: Any, target: Any, weight: Any = None) -> Any:
    options = {"ignore_index": a.get("ignore_index", -100), "reduction": a.get("reduction", "mean")}
    scores = x if a.node.kind[0] == "N" else F.log_softmax(x, 1)
    loss = F.nll_loss(scores, converted(target, np.int64), weight, **options)
    return [loss, scores] if a.wants(1) else loss
