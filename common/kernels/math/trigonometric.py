"""sin, cos, tan and the reduction of their argument by multiples of pi/2.

Up to 2^47 (float32: 2^27) the argument is reduced by Cody and Waite's method, in a vectorised loop. A larger one
needs its part of some 1100 bits of 2/pi (`common.kernels.math.payne_hanek`); loops pay for that only where it occurs.
"""

from __future__ import annotations

import numpy as np

from common.compiler.machine_functions import PREFIX
from common.compiler.primitives import Value, absolute, beyond, bits, convert, dtype_of, from_bits, select, shl
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import FORMAT
from common.kernels.math.payne_hanek import reduce_huge
from common.kernels.math.polynomial import horner

__all__ = ["LIMIT", "cos", "cos_within", "huge_cos", "huge_sin", "huge_tan", "sin", "tan"]

LIMIT = {np.dtype(np.float32): 2.0**27, np.dtype(np.float64): 2.0**47}
"""Largest magnitude that is reduced by Cody and Waite's method."""

TWO_OVER_PI = 0.6366197723675814
SIGN = -(2**63)
# floor(2^230 pi/2), pi/2 = 1.57...
_HALF_PI = 0x6487ED5110B4611A62633145C06E0E68948127044533E63A0105DF531D


def _pieces(short: int) -> tuple[float, ...]:
    """Cut pi/2 into ``short`` consecutive numbers of 26 bits and one of 53 that holds what is left."""
    pieces, rest, position = [], _HALF_PI, 230 + 1
    for length in [26] * short + [53]:
        position -= length
        pieces.append(float(rest >> position) * 2.0 ** (position - 230))
        rest &= (1 << position) - 1
    return tuple(pieces)


PIECES_32 = _pieces(2)
PIECES_64 = _pieces(5)


def _quotient(x: Value) -> tuple[Value, Value]:
    """Return (q, k): the integer nearest x / (pi/2), as an integer whose low bits count and as a float."""
    magic = FORMAT[dtype_of(x)].magic
    shifted = x * TWO_OVER_PI + magic
    return bits(shifted), shifted - magic


def _reduce_64(x: Value) -> tuple[Value, Value, Value]:
    """Return (q, r, t) with ``x = q pi/2 + r + t`` for 0 <= x <= 2^47, t what r cannot hold.

    Cody and Waite's method with k cut in two: ``k = a + b``, b below 2^23 and a a multiple of 2^24 with at
    most 23 bits, so that the product of a or b with a piece of 26 bits of pi/2 is exact. The first five
    differences are exact as well, since x and what is subtracted agree in their leading bits; `w1` and `w2`
    are exact sums of two products of one magnitude, `w3` is the first that rounds, 2^-130 or less.
    """
    q, k = _quotient(x)
    a = (k + 1.5 * 2.0**76) - 1.5 * 2.0**76
    b = k - a
    p1, p2, p3, p4, p5, p6 = PIECES_64
    d = ((((x - a * p1) - b * p1) - a * p2) - b * p2) - a * p3
    w1 = b * p3 + a * p4
    w2 = b * p4 + a * p5
    w3 = b * p5 + a * p6
    r = d - w1
    part = r - d
    v = w2 - ((d - (r - part)) - (w1 + part))
    y = r - v
    return q, y, ((r - y) - v) - w3


def _sin_cos_64(x: Value, huge: bool) -> tuple[Value, Value, Value]:
    """Return (q, sin r, cos r) with ``x = q pi/2 + r`` for x >= 0."""
    q, y, t = reduce_huge(x) if huge else _reduce_64(x)
    z = y * y
    cube = z * y
    # sin(y + t) = sin y + t cos y, cos(y + t) = cos y - t sin y, to first order in t
    sine = y - ((z * (0.5 * t - cube * horner(z, fitted.SIN_64[1:])) - t) - cube * fitted.SIN_64[0])
    half = 0.5 * z
    one = 1.0 - half
    cosine = one + (((1.0 - one) - half) + (z * z * horner(z, fitted.COS_64) - y * t))
    return q, sine, cosine


def _sin_cos_32(x: Value, huge: bool) -> tuple[Value, Value, Value]:
    """Return the same in float64 for a float32 ``x`` >= 0, to about 2^-36."""
    wide = convert(x, np.float64)
    if huge:
        q, y, _ = reduce_huge(wide)
    else:
        q, k = _quotient(wide)
        p1, p2, p3 = PIECES_32
        y = ((wide - k * p1) - k * p2) - k * p3
    z = y * y
    return q, y + y * z * horner(z, fitted.SIN_32), (1.0 - 0.5 * z) + z * z * horner(z, fitted.COS_32)


def _sin_cos(x: Value, huge: bool) -> tuple[Value, Value, Value]:
    return (_sin_cos_64 if dtype_of(x).itemsize == 8 else _sin_cos_32)(absolute(x), huge)


def sin(x: Value) -> Value:
    """Return the sine of an angle in radians, of any size.

    Formula: x = q pi/2 + r, then +-sin r or +-cos r by the low bits of q; ``sin r = r + r z p(z)``,
    ``cos r = 1 - z/2 + z^2 p(z)``, z = r^2. float32 is computed in float64.

    Error: float64 0.78 ulp, float32 0.501 ulp.

    References
    ----------
    W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 8.
    M. Payne and R. Hanek, "Radian Reduction for Trigonometric Functions", 1983.
    """
    return beyond(_sin(x), x, LIMIT[dtype_of(x)], huge_sin)


def _sin(x: Value, huge: bool = False) -> Value:
    q, sine, cosine = _sin_cos(x, huge)
    magnitude = bits(select((q & 1) == 0, sine, cosine))
    turned = from_bits(magnitude ^ (shl(q, 62) & SIGN))
    return _odd(turned, x)


def huge_sin(x: Value) -> Value:
    """Return the sine for |x| > LIMIT."""
    return _finite(x, _sin(x, huge=True))


def cos(x: Value) -> Value:
    """Return the cosine of an angle in radians, of any size.

    Formula: as `sin`, a quarter turn on.

    Error: float64 0.80 ulp, float32 0.501 ulp.
    """
    return beyond(cos_within(x), x, LIMIT[dtype_of(x)], huge_cos)


def cos_within(x: Value, huge: bool = False) -> Value:
    """Return the cosine for |x| <= LIMIT."""
    q, sine, cosine = _sin_cos(x, huge)
    q = q + 1
    magnitude = bits(select((q & 1) == 0, sine, cosine))
    return convert(from_bits(magnitude ^ (shl(q, 62) & SIGN)), dtype_of(x))


def huge_cos(x: Value) -> Value:
    """Return the cosine for |x| > LIMIT."""
    return _finite(x, cos_within(x, huge=True))


def tan(x: Value) -> Value:
    """Return the tangent of an angle in radians, of any size.

    Formula: ``sin r / cos r``, or ``-cos r / sin r`` after an odd quotient.

    Error: float64 2.17 ulp, float32 0.501 ulp.
    """
    return beyond(_tan(x), x, LIMIT[dtype_of(x)], huge_tan)


def _tan(x: Value, huge: bool = False) -> Value:
    q, sine, cosine = _sin_cos(x, huge)
    even = (q & 1) == 0
    return _odd(select(even, sine, -cosine) / select(even, cosine, sine), x)


def huge_tan(x: Value) -> Value:
    """Return the tangent for |x| > LIMIT."""
    return _finite(x, _tan(x, huge=True))


def _finite(x: Value, y: Value) -> Value:
    """Return ``y``, but NaN for an infinite x."""
    return select(absolute(x) < np.inf, y, np.nan)


def _odd(y: Value, x: Value) -> Value:
    """Return ``y``, computed in float64 from ``|x|``, with its sign turned where x is negative."""
    y = convert(y, dtype_of(x))
    top = -(2**31) if dtype_of(x).itemsize == 4 else SIGN
    return from_bits(bits(y) ^ (bits(x) & top))


for _huge in (huge_sin, huge_cos, huge_tan):
    _huge.apart = f"{PREFIX}.{_huge.__name__}"  # type: ignore[attr-defined]
