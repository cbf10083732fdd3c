"""Arithmetic: exact by IEEE 754, integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.primitives import absolute, by_number, constant, dtype_of, select
from common.core.op import Op
from common.core.python_numbers import weak
from common.kernels.math import elementary as e
from common.kernels.math.power import known_power
from common.ops._define import elementwise
from common.ops._samples import Rng, of_elementwise, positive


def _is_bool(x: Any) -> bool:
    return dtype_of(x).kind == "b"


add = elementwise(
    "add", lambda a, b: a | b if _is_bool(a) else a + b,
    (lambda g: g,
     lambda g: g),
    doc="a + b; bools add as logical or. d/da = 1, d/db = 1.",
)  # fmt: skip

sub = elementwise(
    "sub", lambda a, b: a - b,
    (lambda g: g,
     lambda g: -g),
    doc="a - b. d/da = 1, d/db = -1.", domain="number", refuses="B",
    refusals=(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.",
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.",
    ),
)  # fmt: skip

mul = elementwise(
    "mul", lambda a, b: a & b if _is_bool(a) else a * b,
    (lambda g, b: g * b,
     lambda g, a: g * a),
    doc="a * b; bools multiply as logical and. d/da = b, d/db = a.", neutral=((1, 1), (0, 1)),
)  # fmt: skip

div = elementwise(
    "div", lambda a, b: a / b,
    (lambda g, b: g / b,
     lambda g, a, b: -g * (a / b / b)),
    costly=True, doc="a / b, true division; ints become float32. d/da = 1 / b, d/db = -(a / b) / b.", domain="float",
    neutral=((1, 1),),
)  # fmt: skip

neg = elementwise(
    "neg", lambda x: -x, (lambda g: -g,), doc="-x. d/dx = -1.", domain="number", involution=True, refuses="B",
    refusals=(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.",
    ),
)  # fmt: skip

abs = elementwise(
    "abs", absolute, (lambda g, x: g * sign(x),), doc="Magnitude of x. d/dx = sign(x), so 0 at 0.", refuses="b"
)

sign: Op = elementwise(
    "sign", lambda x: x if _is_bool(x) else e.sign(x), (lambda g: zeros_like(g),),
    doc="-1, 0 or 1; sign(-0) = -0, sign(nan) = nan. d/dx = 0.",
)  # fmt: skip

zeros_like: Op = elementwise(
    "zeros_like", lambda x: select(x == x, constant(0, x), constant(0, x)), (lambda g: zeros_like(g),),
    doc="+0 in the shape and dtype of x. d/dx = 0.", fill=0,
)  # fmt: skip

ones_like = elementwise(
    "ones_like", lambda x: select(x == x, constant(1, x), constant(1, x)), (lambda g: zeros_like(g),),
    doc="1 in the shape and dtype of x. d/dx = 0.", fill=1,
)  # fmt: skip

square = elementwise("square", lambda x: x * x, (lambda g, x: g * (2 * x),), doc="x * x. d/dx = 2 x.",
                     domain="number", node_name="Pow")  # fmt: skip

sqrt = elementwise(
    "sqrt", e.sqrt, (lambda g, y: g / (2 * y),),
    draw=positive,
    costly=True, doc="Square root, correctly rounded; nan below 0. d/dx = 1 / (2 y), so inf at 0.", domain="float",
)  # fmt: skip

rsqrt = elementwise(
    "rsqrt", e.rsqrt, (lambda g, y: g * (-0.5 * (y * y * y)),),
    draw=positive,
    costly=True, doc="1 / sqrt(x): two roundings. d/dx = -y^3 / 2.", domain="float",
)  # fmt: skip

reciprocal = elementwise(
    "reciprocal", e.reciprocal, (lambda g, y: -g * (y * y),), costly=True, doc="1 / x. d/dx = -y^2.", domain="float"
)


def _pow_base(g: Any, a: Any, b: Any) -> Any:
    from common.ops.math.compare import eq, where

    if isinstance(b, (int, float)):
        if b == 0.5:
            return g / (2 * sqrt(a))
        if b == -0.5:
            return g * (-0.5 * pow(rsqrt(a), 3))
        return zeros_like(g) if b == 0 else g * (b * pow(a, b - 1))
    # the factor is 0 too: its product with a cotangent of 0 has to be, where the rule is differentiated for a tangent
    return where(eq(b, 0), 0, g * where(eq(b, 0), 0, b * pow(a, b - 1)))


def _pow_exponent(g: Any, y: Any, a: Any, b: Any) -> Any:
    from common.ops.math.compare import eq, ge, logical_and, where
    from common.ops.math.transcendental import log

    # the logarithm of a number is a number too: rounded once, to the dtype of y
    factor = log(weak(+a)) if isinstance(a, (int, float)) else log(a)
    zero = logical_and(eq(a, 0), ge(b, 0))
    return where(zero, 0, g * where(zero, 0, y * factor))


def _powers(rng: Rng, dtype: Any) -> list[Any]:
    exponents = np.asarray([-15, -6, -3, -2, -1, -0.5, 0.5, 1, 2, 3, 4, 5, 7, 12, 15], dtype)
    bases = np.asarray(rng.uniform(0.6, 1.6, exponents.shape), dtype)
    return [*of_elementwise(("a", "b"), positive)(rng, dtype), ((bases, exponents), {})]


pow = elementwise(
    "pow", by_number(lambda a, b: e.pow(a, b), known_power), (_pow_base, _pow_exponent),
    samples=_powers, versions=(1, 2, 3, 4, 0.5, -0.5, -1, -2), neutral=((1, 1),),
    costly=True, doc="a ** b. Exponents 2, 3, 4, 1, 0, -1, -2, 0.5, -0.5 are x*x, (x*x)*x, (x*x)*(x*x), x, 1, 1/x, "
        "1/(x*x), sqrt(x), 1/sqrt(x), decided by value; of float32 others below 16 are products, rounded once. "
        "d/da = b a^(b-1), 0 where b = 0; d/db = y log(a), 0 where a = 0 and b >= 0.", refuses="b",
)  # fmt: skip


__all__ = [
    "abs", "mul", "neg", "pow", "reciprocal", "rsqrt", "sign", "sqrt", "square",
]  # fmt: skip
