"""Elementwise ops that ONNX has no operator for, as formulas of those that it has.

A model has one function for each, in the domain "twingrad"; `import_onnx` takes the op itself instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from static.export.onnx_ops import MADE, RULES, OnnxRule, Writer
from static.graph import Node


class OnnxTerm:
    """A result in a formula: operators add nodes to the function that is being written."""

    def __init__(self, w: Writer, dtype: Any, name: str) -> None:
        self.w, self.dtype, self.name = w, dtype, name

    def of(self, kind: str, *others: Any, first: Any = None, **attrs: Any) -> OnnxTerm:
        """An operator on this term, after `first`, and on others, numbers in this dtype."""
        x = [t for t in (first, self, *others) if t is not None]
        names = [t.name if isinstance(t, OnnxTerm) else self.w.constant(np.asarray(t, self.dtype)) for t in x]
        return OnnxTerm(self.w, self.dtype, self.w.add(kind, names, **attrs))

    def __add__(self, b: Any) -> OnnxTerm:
        return self.of("Add", b)

    def __radd__(self, a: Any) -> OnnxTerm:
        return self.of("Add", first=a)

    def __sub__(self, b: Any) -> OnnxTerm:
        return self.of("Sub", b)

    def __rsub__(self, a: Any) -> OnnxTerm:
        return self.of("Sub", first=a)

    def __mul__(self, b: Any) -> OnnxTerm:
        return self.of("Mul", b)

    __rmul__ = __mul__

    def __truediv__(self, b: Any) -> OnnxTerm:
        return self.of("Div", b)

    def __neg__(self) -> OnnxTerm:
        return self.of("Neg")

    def __abs__(self) -> OnnxTerm:
        return self.of("Abs")

    def __lt__(self, b: Any) -> OnnxTerm:
        return self.of("Less", b)

    def __le__(self, b: Any) -> OnnxTerm:
        return self.of("LessOrEqual", b)

    def __gt__(self, b: Any) -> OnnxTerm:
        return self.of("Greater", b)

    def same(self, b: Any) -> OnnxTerm:
        """Where it equals b."""
        return self.of("Equal", b)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *others: self.of(name[0].upper() + name[1:], *others)


Formula = Callable[..., OnnxTerm]


def either(condition: OnnxTerm, yes: Any, no: Any, like: OnnxTerm) -> OnnxTerm:
    """`yes` where the condition holds, else `no`."""
    parts = [t if isinstance(t, OnnxTerm) else like * 0 + t for t in (yes, no)]
    return condition.of("Where", *parts)


def _expm1(x: Any) -> Any:
    """(u - 1) x / log u, u = e^x: the errors of u cancel. Source: Kahan; Higham, Accuracy, 1.14.1."""
    u = x.exp()
    near = (u - 1) * x / either(u.same(1), 2, u, x).log()
    return either(u.same(1), x, either(abs(x) < 1, near, u - 1, x), x)


def _log1p(x: Any) -> Any:
    u = x + 1
    near = u.log() * x / either(u.same(1), 1, u - 1, x)
    return either(u.same(1), x, either(abs(x) < 1, near, u.log(), x), x)


def _atan2(a: Any, b: Any) -> Any:
    flat = (a / either(b.same(0), 1, b, b)).atan()
    turned = flat + either(a < 0, -math.pi, math.pi, a)
    upright = either(a.same(0), a * 0, either(a < 0, -math.pi / 2, math.pi / 2, a), a)
    return either(b.same(0), upright, either(b < 0, turned, flat, a), a)


def _floored(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return (a / b).floor()
    whole = a / b
    rest = a - whole * b
    return whole - either((rest.same(0)).of("Not").of("And", (rest < 0).of("Xor", b < 0)), 1, 0, a)


def _remainder(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return a.of("Mod", b)
    rest = a.of("Mod", b, fmod=1)
    return either(rest.same(0).of("Not").of("And", (rest < 0).of("Xor", b < 0)), rest + b, rest, a)


def _softplus(x: Any) -> Any:
    return x.max(x * 0) + _log1p((-abs(x)).exp())


def _logaddexp(a: Any, b: Any) -> Any:
    return either(a.same(b), a + math.log(2), a.max(b) + _log1p((-abs(a - b)).exp()), a)


def _sign_of(b: Any) -> Any:
    """-1 for -0 and what is less."""
    return either((b < 0).of("Or", b.of("Reciprocal") < 0), -1, 1, b)


def _lerp(a: Any, b: Any, w: Any) -> Any:
    way = b - a
    return either(abs(w) < 0.5, a + w * way, b - way * (1 - w), a)


def _nan_to_num(x: Any, nan: Any, high: Any, low: Any) -> Any:
    top = either(x.same(math.inf), high, either(x.same(-math.inf), low, x, x), x)
    return either(x.same(x), top, nan, x)


def _smooth_l1(d: Any, beta: Any) -> Any:
    return either(abs(d) < beta, d * d / (beta + beta), abs(d) - beta * 0.5, d)


FORMULAS: dict[str, Formula] = {
    "square": lambda x: x * x, "rsqrt": lambda x: x.sqrt().reciprocal(), "silu": lambda x: x * x.sigmoid(),
    "log1p": _log1p, "expm1": _expm1, "clamp": lambda x, low, high: x.max(low).min(high),
    "trunc": lambda x: x.sign() * abs(x).floor(),
    "frac": lambda x: x - x.sign() * abs(x).floor() + either(abs(x).same(math.inf), math.nan, 0, x),
    "leaky_scaled": lambda x, slope: either(x > 0, x, x * slope, x),
    "gelu_erf": lambda x: x * 0.5 * ((x * 0.5**0.5).erf() + 1),
    "gelu_tanh": lambda x: x * 0.5 * (((x + x * x * x * 0.044715) * (2 / math.pi) ** 0.5).tanh() + 1),
    "addcdiv": lambda x, a, b, value: x + value * a / b, "addcmul": lambda x, a, b, value: x + value * a * b,
    "atan2": _atan2, "celu_scaled": lambda x, alpha: either(x > 0, x, alpha * _expm1(x / alpha), x),
    "elu_scaled": lambda x, alpha: either(x > 0, x, alpha * _expm1(x), x),
    "copysign": lambda a, b: abs(a) * _sign_of(b), "erfc": lambda x: 1 - x.erf(), "exp2": lambda x: (x * 0 + 2).pow(x),
    "floor_divide": _floored, "fmax": lambda a, b: either(a.isNaN(), b, either(b.isNaN(), a, a.max(b), a), a),
    "fmin": lambda a, b: either(a.isNaN(), b, either(b.isNaN(), a, a.min(b), a), a),
    "hardshrink_by": lambda x, low: either(abs(x) <= low, 0, x, x),
    "hardsigmoid": lambda x: (x + 3).max(x * 0).min(x * 0 + 6) / 6,
    "hardtanh_between": lambda x, low, high: x.max(low).min(high),
    "heaviside": lambda a, b: either(a.same(0), b, either(a > 0, 1, 0, a), a),
    "hypot": lambda a, b: (a * a + b * b).sqrt(), "lerp": _lerp,
    "isclose": lambda a, b, rtol, atol: (a.same(b)).of("Or", (abs(a - b) <= atol + abs(rtol * b)).of(
        "And", (abs(a - b) < math.inf))),
    "isfinite": lambda x: abs(x) < math.inf if x.dtype.kind == "f" else x.same(x),
    "log10": lambda x: x.log() * (1 / math.log(10)), "log2": lambda x: x.log() * (1 / math.log(2)),
    "logaddexp": _logaddexp, "logaddexp2": lambda a, b: _logaddexp(a * math.log(2), b * math.log(2)) / math.log(2),
    "logsigmoid": lambda x: -_softplus(-x), "nan_to_num": _nan_to_num, "remainder": _remainder,
    "round_decimals": lambda x, scale: (x * scale).round() / scale,
    "round_tens": lambda x, scale: (x / scale).round() * scale,
    "huber_piece": lambda d, delta: either(
        abs(d) <= delta, d * d * 0.5, delta * (abs(d) - delta * 0.5), d),
    "huber_slope": lambda up, d, delta: either(abs(d) <= delta, up * d, up * delta * d.sign(), up),
    "smooth_l1_piece": _smooth_l1,
    "smooth_l1_slope": lambda up, d, beta: either(abs(d) < beta, up * d / beta, up * d.sign(), up),
    "softplus_scaled": lambda x, beta, limit: either(x * beta > limit, x, _softplus(x * beta) / beta, x),
    "softshrink_by": lambda x, low: either(x > low, x - low, either(x < -low, x + low, 0, x), x),
    "trunc_divide": lambda a, b: _trunc(a / b) if a.dtype.kind == "f" else a / b,
    "entr": lambda x: either(x.same(0), 0, either(x < 0, -math.inf, -x * x.log(), x), x),
    "xlog1py": lambda a, b: either(a.same(0).of("And", b.same(b)), 0, a * _log1p(b), a),
    "xlogy": lambda a, b: either(a.same(0).of("And", b.same(b)), 0, a * b.log(), a),
    "signbit": lambda x: x < 0 if x.dtype.kind != "f" else (x < 0).of("Or", x.of("Reciprocal") < 0),
}  # fmt: skip


def _trunc(x: Any) -> Any:
    return x.sign() * abs(x).floor()


def _rule(formula: Formula) -> OnnxRule:
    def write(w: Writer, node: Node, x: list[str]) -> str:
        dtypes = w.wanted(node)
        return formula(*(OnnxTerm(w, dtype, name) for name, dtype in zip(x, dtypes, strict=True))).name

    return write


RULES.update({name: _rule(formula) for name, formula in FORMULAS.items()})
MADE.update(FORMULAS)
