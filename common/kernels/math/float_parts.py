"""Scalar definitions that take a floating-point number apart, or step to the next; all exact."""

from __future__ import annotations

import math

import numpy as np

from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    constant,
    convert,
    copysign,
    dtype_of,
    from_bits,
    lshr,
    select,
)
from common.kernels.math.exponential import FORMAT

__all__ = ["exponent", "mantissa", "nextafter"]


def _normal(x: Value) -> tuple[Value, Value]:
    """Return x times a power of two that makes subnormal numbers normal, and whether it was one of them."""
    form = FORMAT[dtype_of(x)]
    small = absolute(x) < float(np.finfo(dtype_of(x)).tiny)
    return select(small, x * 2.0**form.fraction_bits, x), small


def _regular(x: Value) -> Value:
    return (x != 0) & (absolute(x) < math.inf)


def exponent(x: Value) -> Value:
    """Return k with |x| / 2^k in [1/2, 1), as a float; 0 for 0, infinities and NaN."""
    form = FORMAT[dtype_of(x)]
    y, small = _normal(x)
    k = lshr(bits(absolute(y)), form.fraction_bits) - (form.bias - 1)
    k = select(small, k - form.fraction_bits, k)
    return convert(select(_regular(x), k, constant(0, k)), dtype_of(x))


def mantissa(x: Value) -> Value:
    """Return x / 2^k with a magnitude in [1/2, 1); 0, infinities and NaN as they are."""
    form = FORMAT[dtype_of(x)]
    y, _ = _normal(x)
    fraction = bits(y) & ((1 << form.fraction_bits) - 1)
    found = from_bits(fraction | ((form.bias - 1) << form.fraction_bits))
    return select(_regular(x), copysign(found, x), x)


def nextafter(x: Value, y: Value) -> Value:
    """Return the number next to x on the way to y; y where they are equal, NaN if either is.

    Neighbours of one sign have neighbouring bit patterns, which grow with the magnitude.
    """
    away = ~((x < y) ^ (x > 0))
    step = select(away, constant(1, bits(x)), constant(-1, bits(x)))
    least = copysign(from_bits(constant(1, bits(x))), y)
    found = select(x == 0, least, from_bits(bits(x) + step))
    return select(x == y, y, select((x == x) & (y == y), found, x + y))
