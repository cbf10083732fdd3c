"""Functions made of others whose plain formula would overflow, underflow or cancel."""

from __future__ import annotations

import numpy as np

from common.compiler.primitives import Value, absolute, constant, convert, dtype_of, select, sqrt
from common.kernels.math.exponential import exp2, exp_of_negative, exp_parts, exp_rest, power_of_two, scale
from common.kernels.math.logarithm import log, log1p, log1p_doubled
from common.kernels.math.logarithm_bases import log2_1p
from common.kernels.math.polynomial import at_least, at_most

__all__ = ["hypot", "logaddexp", "logaddexp2", "logsigmoid", "mish", "silu", "softplus", "xlogy"]

LN2 = 0.6931471805599453


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x^2 + y^2); infinite if either is, even beside a NaN (C99, F.9.4.3).

    Formula: as it stands, both scaled by a power of two where squares would leave the range; float32 is
    computed in float64.

    Error: float64 1.19 ulp, float32 0.501 ulp.
    """
    infinite = (absolute(x) == np.inf) | (absolute(y) == np.inf)
    return select(infinite, np.inf, (_hypot_64 if dtype_of(x).itemsize == 8 else _hypot_32)(x, y))


def _hypot_32(x: Value, y: Value) -> Value:
    a, b = convert(x, np.float64), convert(y, np.float64)
    return convert(sqrt(a * a + b * b), np.float32)


def _hypot_64(x: Value, y: Value) -> Value:
    a, b = absolute(x), absolute(y)
    larger = select(a > b, a, b)
    large, small = larger > 2.0**500, larger < 2.0**-450
    factor = select(large, 2.0**-600, select(small, constant(2.0**600, x), 1.0))
    back = select(large, 2.0**600, select(small, constant(2.0**-600, x), 1.0))
    a, b = a * factor, b * factor
    return sqrt(a * a + b * b) * back


def _gap(x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Return (m, d, t) with ``|x - y| = d + t``, t what d cannot hold and 0 for infinite d; m the larger one."""
    larger, smaller = select(x > y, x, y), select(x > y, y, x)
    d = larger - smaller
    part = larger - d
    t = (larger - (d + part)) + (part - smaller)
    return larger, d, select(d < np.inf, t, 0.0)


def logaddexp(x: Value, y: Value) -> Value:
    """Return log(e^x + e^y).

    Formula: ``m + log(1 + u - u t)``, ``u = e^-d``, d the rounded distance of x and y, t what it lost, m the
    larger one; ``m + ln 2`` where both are equal, infinities too.

    Error: float64 2.05 ulp, float32 2.3 ulp, of the larger one of |m| and the result: where they cancel, the
    result is as exact as m.
    """
    larger, d, t = _gap(x, y)
    u = exp_of_negative(-d)
    return larger + select(x == y, LN2, log1p_doubled(u, -(u * t)))


def logaddexp2(x: Value, y: Value) -> Value:
    """Return log2(2^x + 2^y).

    Formula: ``m + log2(1 + u - u t ln 2)``, ``u = 2^-d``, as `logaddexp`; ``m + 1`` where both are equal.

    Error: float64 2.25 ulp, float32 2.41 ulp, of the larger one of |m| and the result.
    """
    larger, d, t = _gap(x, y)
    u = exp2(-d)
    return larger + select(x == y, 1.0, log2_1p(u, -(u * (t * LN2))))


def softplus(x: Value) -> Value:
    """Return log(1 + e^x).

    Formula: ``max(x, 0) + log1p(e^-|x|)``, which keeps its relative accuracy down to the subnormals.

    Error: float64 1.59 ulp, float32 1.83 ulp.
    """
    return select(x < 0.0, 0.0, x) + log1p(exp_of_negative(-absolute(x)))


def logsigmoid(x: Value) -> Value:
    """Return log(1 / (1 + e^-x)) = -softplus(-x).

    Error: float64 1.62 ulp, float32 1.76 ulp.
    """
    return select(x > 0.0, 0.0, x) - log1p(exp_of_negative(-absolute(x)))


def silu(x: Value) -> Value:
    """Return x / (1 + e^-x); -0 at -inf.

    Formula: as it stands; where e^-x = y 2^k is above 2^60, ``x / y 2^-k``, as e^-x overflows before the result
    vanishes.

    Error: float64 2.1 ulp, float32 2.3 ulp.
    """
    # Below low, x e^x rounds to 0; from 40 on, 1 + e^-x to 1. Both sides of the quotient are finite: it alone rounds
    low, part = (-770.0, 512) if dtype_of(x).itemsize == 8 else (-120.0, 64)
    bounded = at_least(x, low)
    y, k = exp_parts(-at_most(bounded, 40.0))
    large = k > 60
    e = y * power_of_two(select(large, k - part, k))
    return bounded * select(large, constant(2.0**-part, x), 1.0) / select(large, e, 1.0 + e)


def mish(x: Value) -> Value:
    """Return ``x tanh(log(1 + e^x))``; -0 at -inf.

    Formula, with e = e^x = (1 + q) 2^k and n = e (e + 2): ``(x + x h) / 2``, h = (n - 2) / (n + 2) for x >= -1/2;
    below, ``2^k (x + x w)``, w = q - (h + q h), h = e (e + 1) / (n + 2): 2^k comes last, as a subnormal e has lost its
    digits. Both sums add a smaller number to x, so that its own rounding errors count less. x itself from 20 on.

    Error: float64 2.0 ulp, float32 2.0 ulp.
    """
    bounded = at_least(at_most(x, 20.0), -770.0 if dtype_of(x).itemsize == 8 else -120.0)
    q, k = exp_rest(bounded)
    e = scale(1.0 + q, k)
    n = e * (e + 2.0)
    below = x < -0.5
    h = select(below, e * (e + 1.0), n - 2.0) / (n + 2.0)
    w = select(below, q - (h + q * h), h)
    return select(x >= 20.0, x, scale(bounded + bounded * w, select(below, k, -1)))


def xlogy(x: Value, y: Value) -> Value:
    """Return ``x log(y)``, and 0 where x is 0 and y is not NaN.

    Error: float64 2.0 ulp, float32 2.3 ulp.
    """
    return select((x == 0.0) & (y == y), constant(0.0, x), x * log(y))
