"""Scalar definitions that are exact, or one rounding away from it."""

from __future__ import annotations

import math

import numpy as np

from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    ceil,
    constant,
    copysign,
    dtype_of,
    floor,
    from_bits,
    is_float,
    rint,
    select,
    sqrt,
    trunc,
)

__all__ = [
    "abs", "ceil", "clamp", "copysign", "fmax", "fmin", "floor", "frac", "heaviside", "isfinite", "isinf", "maximum",
    "minimum", "reciprocal", "rint", "rsqrt", "sign", "signbit", "sqrt", "square", "trunc",
]  # fmt: skip


def abs(x: Value) -> Value:
    """Return the magnitude (exact); the most negative integer is its own magnitude."""
    return absolute(x)


def sign(x: Value) -> Value:
    """Return -1, 0 or 1 (exact); a zero of either sign and NaN give themselves."""
    positive = select(x > 0, constant(1, x), x)
    return positive if dtype_of(x).kind == "u" else select(x < 0, constant(-1, x), positive)


def signbit(x: Value) -> Value:
    """Tell whether a number is negative, -0 included; a NaN counts as positive."""
    if not is_float(x):
        return x < 0
    return (bits(x) < 0) & (x == x)


def maximum(x: Value, y: Value) -> Value:
    """Return the larger (exact): NaN if either is NaN, and +0 is above -0."""
    larger = select(x > y, x, y)
    if not is_float(x):
        return larger
    # equal numbers have equal bits, except for the two zeros: the common bits are those of +0
    equal = select(x == y, from_bits(bits(x) & bits(y)), larger)
    return select(x != x, x, equal)


def minimum(x: Value, y: Value) -> Value:
    """Return the smaller (exact): NaN if either is NaN, and -0 is below +0."""
    smaller = select(x < y, x, y)
    if not is_float(x):
        return smaller
    equal = select(x == y, from_bits(bits(x) | bits(y)), smaller)
    return select(x != x, x, equal)


def fmax(x: Value, y: Value) -> Value:
    """Return the larger (exact): NaN only if both are, and +0 is above -0."""
    return maximum(select(x == x, x, y), select(y == y, y, x)) if is_float(x) else maximum(x, y)


def fmin(x: Value, y: Value) -> Value:
    """Return the smaller (exact): NaN only if both are, and -0 is below +0."""
    return minimum(select(x == x, x, y), select(y == y, y, x)) if is_float(x) else minimum(x, y)


def isinf(x: Value) -> Value:
    """Tell whether a number is an infinity; integers never are."""
    return absolute(x) == math.inf if is_float(x) else x != x


def isfinite(x: Value) -> Value:
    """Tell whether a number is neither an infinity nor NaN; integers always are."""
    return absolute(x) < math.inf if is_float(x) else x == x


def heaviside(x: Value, y: Value) -> Value:
    """Return 0 below 0, 1 above 0, y at 0 (exact); 0 for a NaN, as PyTorch does."""
    return select(x == 0, y, select(x > 0, constant(1, x), constant(0, x)))


def frac(x: Value) -> Value:
    """Return x - trunc(x) (exact); NaN for the infinities."""
    return x - trunc(x)


def clamp(x: Value, low: Value, high: Value) -> Value:
    """Return ``minimum(maximum(x, low), high)``; ``high`` wins where low > high.

    What zeros and NaN of the bounds ask for is a number of each bound, which a loop with constant bounds makes once.
    """
    if not is_float(x):
        return minimum(maximum(x, low), high)
    nothing, least = -0.0, float(np.finfo(dtype_of(x)).smallest_subnormal)
    added = select(low == low, select(bits(low) == 0, constant(0.0, x), nothing), low)  # +0 raises -0
    raised = select(x < low, low, x + added)
    border = select((high == 0.0) & (bits(high) < 0), constant(-least, x), high)  # -0 is below +0
    return select(raised > border, high, raised + select(high == high, constant(nothing, x), high))


def square(x: Value) -> Value:
    """Return x * x (correctly rounded)."""
    return x * x


def reciprocal(x: Value) -> Value:
    """Return 1 / x (correctly rounded)."""
    return 1.0 / x


def rsqrt(x: Value) -> Value:
    """Return 1 / sqrt(x), both steps correctly rounded; -inf at -0, NaN below zero.

    Error: float64 1.50 ulp, float32 1.50 ulp.
    """
    return 1.0 / sqrt(x)
