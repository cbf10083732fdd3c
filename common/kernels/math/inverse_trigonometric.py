"""asin, acos, atan and atan2: one polynomial each on |argument| <= 1/2, everything else by exact identities.

The angle is a multiple of pi/4 plus a small angle. The multiple is carried as two numbers, and the rounding error of
its sum with the leading term of the small angle is kept (Dekker's fast two-sum), so that the last bit depends on little
more than the final rounding.
"""

from __future__ import annotations

import numpy as np

from common.compiler.primitives import Value, absolute, bits, constant, dtype_of, select, sqrt, transfer_sign
from common.kernels.math import coefficients as fitted
from common.kernels.math.polynomial import horner

__all__ = ["acos", "asin", "atan", "atan2"]

# floor(2^128 pi/4)
_QUARTER_PI = 0xC90FDAA22168C234C4C6628B80DC1CD1


def _two_parts(digits: int) -> tuple[float, float]:
    """Return pi/4 as (head, tail): the head two bits short of `digits`, so that up to 4 times it is exact."""
    head, rest = _QUARTER_PI >> (130 - digits), _QUARTER_PI & ((1 << (130 - digits)) - 1)
    return head * 2.0 ** (2 - digits), rest * 2.0**-128


QUARTER_PI = {np.dtype(np.float32): _two_parts(24), np.dtype(np.float64): _two_parts(53)}


def _angle(quarters: Value, lead: Value, rest: Value) -> Value:
    """Return ``quarters pi/4 + lead + rest``; |lead| is at most the first term, or that is zero."""
    head, tail = QUARTER_PI[dtype_of(lead)]
    first = quarters * head
    total = first + lead
    return total + (((first - total) + lead) + (rest + quarters * tail))


def _half_angle(x: Value) -> tuple[Value, Value, Value]:
    """Return (large, s, t): where |x| <= 1/2, asin |x| = s + t; where it is large, pi/2 - 2 (s + t)."""
    wide = dtype_of(x).itemsize == 8
    magnitude = absolute(x)
    large = magnitude > 0.5
    z = select(large, 0.5 * (1.0 - magnitude), x * x)
    s = select(large, sqrt(z), magnitude)
    return large, s, s * z * horner(z, fitted.ASIN_64 if wide else fitted.ASIN_32)


def asin(x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] whose sine is x; NaN for |x| > 1.

    Formula: ``s + s z p(z)``, z = s^2, for |x| <= 1/2; beyond, ``pi/2 - 2 asin(s)`` with s = sqrt((1 - |x|) / 2).

    Error: float64 1.13 ulp, float32 1.19 ulp.

    References
    ----------
    W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 10.
    """
    large, s, t = _half_angle(x)
    outer = _angle(constant(2.0, x), -(s + s), -(t + t))
    return transfer_sign(select(large, outer, s + t), x)


def acos(x: Value) -> Value:
    """Return the angle in [0, pi] whose cosine is x; NaN for |x| > 1.

    Formula: ``pi/2 - asin(x)`` for |x| <= 1/2; ``2 asin(s)``, s = sqrt((1 - |x|) / 2), above, and pi minus that below.

    Error: float64 1.08 ulp, float32 1.14 ulp.
    """
    large, s, t = _half_angle(x)
    quarters = select(large, select(x < 0.0, constant(4.0, x), 0.0), 2.0)
    s, t = select(large, s + s, s), select(large, t + t, t)
    added = (x < 0.0) ^ large
    return _angle(quarters, select(added, s, -s), select(added, t, -t))


def _atan_rest(u: Value) -> Value:
    """Return ``atan(u) - u`` for |u| <= 1/2."""
    z = u * u
    return u * z * horner(z, fitted.ATAN_64 if dtype_of(u).itemsize == 8 else fitted.ATAN_32)


def atan(x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] whose tangent is x.

    Formula: ``u + u z p(z)``, z = u^2, for u = |x| <= 1/2; ``pi/4 + atan(u)``, u = (|x| - 1) / (|x| + 1), where the
    numerator is exact, up to 2; ``pi/2 + atan(u)``, u = -1/|x|, beyond.

    Error: float64 1.45 ulp, float32 1.40 ulp.

    References
    ----------
    J.-M. Muller, "Elementary Functions: Algorithms and Implementation", 3rd ed., chapter 11.
    """
    magnitude = absolute(x)
    small, large = magnitude <= 0.5, magnitude > 2.0
    numerator = select(large, constant(-1.0, x), select(small, magnitude, magnitude - 1.0))
    denominator = select(large, magnitude, select(small, constant(1.0, x), magnitude + 1.0))
    u = numerator / denominator
    quarters = select(large, constant(2.0, x), select(small, constant(0.0, x), 1.0))
    return transfer_sign(_angle(quarters, u, _atan_rest(u)), x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle in [-pi, pi] of the point (x, y), as C99, F.9.1.4, for zeros and infinities.

    Formula: with the smaller magnitude over the larger as t, ``atan(t)`` as in `atan`; then
    the angle is mirrored at pi/4 where |y| > |x|, at pi/2 where x is negative or -0, and at 0 with the sign of y.

    Error: float64 1.40 ulp, float32 1.50 ulp.
    """
    a, b = absolute(y), absolute(x)
    steep = a > b
    low, high = select(steep, b, a), select(steep, a, b)
    near = low + low > high
    # a sum of two large numbers stays finite, small ones keep their bits
    factor = select(high > 1.0, constant(0.25, x), 1.0)
    numerator = select(near, (low - high) * factor, low)
    denominator = select(near, low * factor + high * factor, high)
    # equal ones may be zeros or infinities, whose angle is defined all the same
    u = select(low == high, constant(0.0, x), numerator / denominator)
    near = near | ((low == high) & (high > 0.0))
    quarters = select(near, constant(1.0, x), 0.0)
    rest = _atan_rest(u)
    quarters, u, rest = _mirrored(steep, 2.0, quarters, u, rest)
    quarters, u, rest = _mirrored(bits(x) < 0, 4.0, quarters, u, rest)
    return transfer_sign(_angle(quarters, u, rest), y)


def _mirrored(where: Value, at: float, quarters: Value, u: Value, rest: Value) -> tuple[Value, Value, Value]:
    return select(where, at - quarters, quarters), select(where, -u, u), select(where, -rest, rest)
