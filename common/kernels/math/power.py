"""pow, from its mathematics: x^y = 2^(y log2 x), with log2 x to about 66 bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    constant,
    convert,
    dtype_of,
    is_float,
    rarely,
    rint,
    select,
    sqrt,
)
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import power_of_two, round_magic, scale
from common.kernels.math.integer_power import integer_pow
from common.kernels.math.logarithm import split_exponent
from common.kernels.math.polynomial import at_least, at_most, horner, short

__all__ = ["known_power", "pow"]

_FACTORS, _FEW = 4, 3
"""Binary digits of the whole exponents that are products: of float32, and of float64, where they end at 4."""

# 2 / (3 ln 2) = head + tail, the head of 26 bits
_SCALE_HEAD, _SCALE_TAIL = 0.9617966860532761, 7.872699542894897e-09


def _log2(m: Value, k: Value, inverse: Value) -> tuple[Value, Value]:
    """Return (head, tail) with ``head + tail = k + log2(m)`` to about 2^-66 relative, head of 26 bits.

    With s = (m-1)/(m+1) and z = s^2: ``log2 m = 2/(3 ln 2) * s * (3 + z + r)``, ``r = z^2 p(z)``, a scaling
    that makes the coefficient of z exact. Every factor is carried as a short head and a tail, so that head
    times head is exact; only r, 2^-11 of the sum, is rounded as a plain float64.

    Parameters
    ----------
    m, k
        Significand in [sqrt(1/2), sqrt(2)) and exponent.
    inverse
        1 / (m + 1), rounded.
    """
    f = m - 1.0
    d_head = short(2.0 + f)
    d_tail = f - (d_head - 2.0)
    s_head = short(f * inverse)
    s_tail = ((f - s_head * d_head) - s_head * d_tail) * inverse
    s = s_head + s_tail
    z_head, z = s_head * s_head, s * s
    r = z * z * horner(z, fitted.ATANH_64) + s_tail * (s_head + s)
    t_head = short((3.0 + z_head) + r)
    t_tail = r - ((t_head - 3.0) - z_head)
    product, rest = s_head * t_head, s_tail * t_head + s * t_tail
    p_head = short(product + rest)
    p_tail = rest - (p_head - product)
    log_head = p_head * _SCALE_HEAD
    log_tail = p_head * _SCALE_TAIL + p_tail * (_SCALE_HEAD + _SCALE_TAIL)
    head = short((log_head + log_tail) + k)
    return head, log_tail - ((head - k) - log_head)


def _power_64(x: Value, y: Value) -> Value:
    """Return |x|^y for finite |x| above 0."""
    m, k, _ = split_exponent(absolute(x))
    head, tail = _log2(m, k, 1.0 / (m + 1.0))
    # |log2 x| is 0 or above 2^-53: beyond 2^70 every exponent over- or underflows alike
    y = at_most(at_least(y, -(2.0**70)), 2.0**70)
    y_head = short(y)
    p_head = y_head * head
    p_tail = (y - y_head) * head + y * tail
    p_head = at_most(at_least(p_head, -1100.0), 1100.0)
    p_tail = at_most(at_least(p_tail, -1.0), 1.0)
    n, count = round_magic(p_head + p_tail)
    r = (p_head - count) + p_tail
    return scale(1.0 + r * horner(r, fitted.EXP2_64), n)


def _power_32(x: Value, y: Value) -> Value:
    """Return the same for float32, computed in float64, where every float32 is normal."""
    # |log2 x| is 0 or above 2^-25: beyond 2^40 every exponent over- or underflows alike
    wide, exponent = convert(absolute(x), np.float64), convert(at_most(at_least(y, -(2.0**40)), 2.0**40), np.float64)
    m, k, _ = split_exponent(wide, subnormal=False)
    s = (m - 1.0) * (1.0 / (m + 1.0))
    product = (k + s * horner(s * s, fitted.LOG2_32)) * exponent
    product = at_most(at_least(product, -200.0), 200.0)
    n, count = round_magic(product)
    r = product - count
    return convert((1.0 + r * horner(r, fitted.EXP2_32)) * power_of_two(n), np.float32)


def _defined(x: Value, y: Value) -> Value:
    """Return what the exponents that have a definition of their own stand for; others give any number."""
    square, half = x * x, absolute(y) == 0.5
    if dtype_of(x).itemsize == 8:
        power = select(half, sqrt(x), _product(x, convert(absolute(y), np.int32), _FEW))
        return select(y < 0.0, 1.0 / power, power)
    product = _product(convert(x, np.float64), convert(absolute(y), np.int32), _FACTORS)
    power = convert(select(y < 0.0, 1.0 / product, product), np.float32)
    power = select(y == 3.0, square * x, select(y == 4.0, square * square, power))
    root = select(half, sqrt(x), square)
    return select(half | (y == -2.0), select(y < 0.0, 1.0 / root, root), power)


def _product(x: Value, count: Value | int, digits: int) -> Value:
    """Return x^count, by squaring: of x, x^2, x^4, ... those that count's digits say, from left to right."""
    result, factor = constant(1.0, x), x
    for position in range(digits):
        more = count & (1 << position)
        if not isinstance(count, int):
            result = select(more != 0, result * factor, result)
        elif more:
            result = result * factor
        if position < digits - 1:
            factor = factor * factor
    return result


def _known(n: int) -> Callable[[Value, Value], Value]:
    """The power of a number n that the text says: what `pow` is for it, without what it is for others."""

    def power(x: Value, y: Value) -> Value:
        if dtype_of(x) != np.float32:
            return pow(x, y)
        product = _product(convert(x, np.float64), abs(n), _FACTORS)
        return convert(1.0 / product if n < 0 else product, np.float32)

    return power


def _inverse(of: Callable[[Value], Value]) -> Callable[[Value, Value], Value]:
    """The same for a number below 0 whose definition is 1 / of(x), of floats."""
    return lambda x, y: 1.0 / of(x) if is_float(x) else pow(x, y)


def pow(x: Value, y: Value) -> Value:
    """Return x raised to the power y.

    The exponents 2, 3, 4, 1, 0, -1, -2, 0.5 and -0.5 are decided by value and *defined*: ``x*x``, ``(x*x)*x``,
    ``(x*x)*(x*x)``, ``x``, 1, ``1/x``, ``1/(x*x)``, ``sqrt(x)`` and ``1/sqrt(x)``. Of float32, whole exponents between
    -16 and 16 other than these are products in float64, of those of x, x^2, x^4 and x^8, from left to right, or
    their reciprocals, rounded once. So pow(-inf, 0.5) is NaN and pow(-0, 0.5) is -0, as for sqrt, and 0.5's
    reciprocals are those of rsqrt. Otherwise as in C99, F.9.4.4: 1 for pow(1, y) and pow(x, 0), NaN included; NaN for
    a negative finite base with a fractional exponent; the sign of x for an odd integer y; limits at zeros and
    infinities. Integers: see `integer_pow`.

    Formula: ``2^(y log2 |x|)``, the logarithm as an unevaluated sum of two float64 (`_log2`); float32 is
    computed in float64.

    Error: float64 1.22 ulp, float32 0.54 ulp; of the exponents 3 and 4 at most 1.5 and 2.5.
    """
    if not is_float(x):
        return integer_pow(x, y)
    few = absolute(y) < 2.0**_FACTORS if dtype_of(x).itemsize == 4 else (y >= -2.0) & (y <= 4.0)
    own = (rint(y) == y) & few | (absolute(y) == 0.5)
    return rarely(_general(x, y), own, lambda: _defined(x, y))


def _general(x: Value, y: Value) -> Value:
    """The power of floats by logarithms, for exponents without a definition of their own."""
    power = (_power_32 if dtype_of(x).itemsize == 4 else _power_64)(x, y)
    magnitude = absolute(x)
    zero, infinite = magnitude == 0.0, magnitude == np.inf
    power = select(zero | infinite, select(zero ^ (y > 0.0), constant(np.inf, x), 0.0), power)
    whole = rint(y) == y
    half = 0.5 * y
    odd = whole & (rint(half) != half)
    power = select(odd & (bits(x) < 0), -power, power)
    undefined = ((x < 0.0) & ~whole & ~infinite) | (x != x) | (y != y)
    power = select(undefined, np.nan, power)
    return select((y == 0.0) | (x == 1.0), 1.0, power)


_POWERS: dict[float, Callable[[Value, Value], Value]] = {
    **{n: _known(n) for n in range(1 - 2**_FACTORS, 2**_FACTORS) if n < -2 or n > 4},
    0: lambda x, _: constant(1, x), 1: lambda x, _: x, 2: lambda x, _: x * x, 3: lambda x, _: (x * x) * x,
    4: lambda x, _: (x * x) * (x * x), 0.5: lambda x, _: sqrt(x), -0.5: lambda x, _: 1.0 / sqrt(x),
    -1: _inverse(lambda x: x), -2: _inverse(lambda x: x * x),
}  # fmt: skip


def known_power(y: float) -> Callable[[Value, Value], Value] | None:
    """The power for a compiler that knows the exponent; None for `pow` itself."""
    found = _POWERS.get(y)
    return _general if found is None and math.isfinite(y) and y != int(y) else found
