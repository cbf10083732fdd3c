"""pow, from its mathematics: x^y = 2^(y log2 x), with log2 x to about 66 bits."""

from __future__ import annotations

import numpy as np

from common.compiler.primitives import Value, absolute, bits, constant, convert, dtype_of, is_float, rint, select, sqrt
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import power_of_two, round_magic, scale
from common.kernels.math.integer_power import integer_pow
from common.kernels.math.logarithm import split_exponent
from common.kernels.math.polynomial import at_least, at_most, horner, short

__all__ = ["pow"]

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


def _power_64(x: Value, y: Value, wanted: Value) -> tuple[Value, Value]:
    """Return (|x|^y for finite positive |x|, 1/(m+1) or, where it is wanted, the reciprocal of x)."""
    m, k, _ = split_exponent(absolute(x))
    inverse = 1.0 / select(wanted, x, m + 1.0)
    head, tail = _log2(m, k, inverse)
    # |log2 x| is 0 or above 2^-53: beyond 2^70 every exponent over- or underflows alike
    y = at_most(at_least(y, -(2.0**70)), 2.0**70)
    y_head = short(y)
    p_head = y_head * head
    p_tail = (y - y_head) * head + y * tail
    p_head = at_most(at_least(p_head, -1100.0), 1100.0)
    p_tail = at_most(at_least(p_tail, -1.0), 1.0)
    n, count = round_magic(p_head + p_tail)
    r = (p_head - count) + p_tail
    return scale(1.0 + r * horner(r, fitted.EXP2_64), n), inverse


def _power_32(x: Value, y: Value, wanted: Value) -> tuple[Value, Value]:
    """Return the same for float32, computed in float64, where every float32 is normal; for y = -2 that of x^2."""
    # |log2 x| is 0 or above 2^-25: beyond 2^40 every exponent over- or underflows alike
    wide, exponent = convert(x, np.float64), convert(at_most(at_least(y, -(2.0**40)), 2.0**40), np.float64)
    m, k, _ = split_exponent(absolute(wide), subnormal=False)
    inverse = 1.0 / select(wanted, select(y == -2.0, wide * wide, wide), m + 1.0)
    s = (m - 1.0) * inverse
    product = (k + s * horner(s * s, fitted.LOG2_32)) * exponent
    product = at_most(at_least(product, -200.0), 200.0)
    n, count = round_magic(product)
    r = product - count
    power = (1.0 + r * horner(r, fitted.EXP2_32)) * power_of_two(n)
    return convert(power, np.float32), convert(inverse, np.float32)


def pow(x: Value, y: Value) -> Value:
    """Return x raised to the power y.

    The exponents 2, 3, 0.5, 1, 0 and -1 are decided by value and *defined*: ``x*x``, ``(x*x)*x``, ``sqrt(x)``, ``x``,
    1 and ``1/x``, correctly rounded but for the cube; of float32 -2 is ``1/x^2``, rounded once. So pow(-inf, 0.5) is
    NaN and pow(-0, 0.5) is -0, as for sqrt. Otherwise as in C99, F.9.4.4: 1 for pow(1, y) and pow(x, 0), NaN included;
    NaN for a negative finite base with a fractional exponent; the sign of x for an odd integer y; limits at zeros and
    infinities. Integers: see `integer_pow`.

    Formula: ``2^(y log2 |x|)``, the logarithm as an unevaluated sum of two float64 (`_log2`); float32 is
    computed in float64.

    Error: float64 1.22 ulp, float32 0.54 ulp; the cube at most 1.5 ulp.
    """
    if not is_float(x):
        return integer_pow(x, y)
    inverse_wanted = (y == -1.0) | (y == -2.0) if dtype_of(x).itemsize == 4 else y == -1.0
    power, inverse = (_power_64 if dtype_of(x).itemsize == 8 else _power_32)(x, y, inverse_wanted)
    magnitude = absolute(x)
    zero, infinite = magnitude == 0.0, magnitude == np.inf
    power = select(zero | infinite, select(zero ^ (y > 0.0), constant(np.inf, x), 0.0), power)
    whole = rint(y) == y
    half = 0.5 * y
    odd = whole & (rint(half) != half)
    power = select(odd & (bits(x) < 0), -power, power)
    undefined = ((x < 0.0) & ~whole & ~infinite) | (x != x) | (y != y)
    power = select(undefined, np.nan, power)
    power = select((y == 0.0) | (x == 1.0), 1.0, power)
    power = select(y == 1.0, x, power)
    square = x * x
    power = select(y == 2.0, square, power)
    power = select(y == 3.0, square * x, power)
    power = select(y == 0.5, sqrt(x), power)
    return select(inverse_wanted, inverse, power)
