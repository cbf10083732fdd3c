"""erfc and the inverse of erf."""

from __future__ import annotations

import numpy as np

from common.compiler.primitives import Value, absolute, constant, convert, dtype_of, rarely, select, sqrt, transfer_sign
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import FORMAT, LOG2_E, power_of_two, round_magic, scale
from common.kernels.math.logarithm import narrow_log
from common.kernels.math.logarithm_parts import log_parts
from common.kernels.math.polynomial import at_most, blended, horner, short, two_sum

__all__ = ["erfc", "erfinv"]


def erfc(x: Value) -> Value:
    """Return ``1 - erf(x)`` without cancellation, down to the subnormals.

    Formula: ``(1 - x) - x p(x^2)`` for |x| < 0.75 (float32: 1/2). Beyond, ``e^(-x^2) p(q) q`` with q = 1 / (|x| + 3),
    which maps the half line to an interval, and one polynomial up to 4 and another from there; 2 minus that for
    negative x. In float64 x^2 and the factor of e^(-x^2) are carried as two numbers each. float32 is computed in
    float64.

    Error: float64 1.50 ulp, float32 0.56 ulp.

    References
    ----------
    M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981.
    """
    if dtype_of(x).itemsize == 4:
        return _erfc_32(x)
    magnitude = absolute(x)
    inner = (1.0 - x) - x * horner(x * x, fitted.ERF_64)
    tail = _tail_64(magnitude)
    return select(magnitude < 0.75, inner, select(x < 0.0, 2.0 - tail, tail))


def _tail_64(x: Value) -> Value:
    """Return erfc(x) for x >= 3/4: ``2^k (head + tail) (1 + (e^r - 1))``, head + tail = p q to 70 bits or more."""
    form = FORMAT[dtype_of(x)]
    x = at_most(x, 28.0)  # from 27.3 on the result is 0
    divisor, divisor_tail = two_sum(x, constant(3.0, x))
    inverse = 1.0 / divisor
    near = x < 4.0
    cut, short_inverse = short(divisor), short(inverse)
    divisor_rest = (divisor - cut) + divisor_tail
    missing = ((1.0 - short_inverse * cut) - short_inverse * divisor_rest) - (inverse - short_inverse) * divisor
    s = (inverse - select(near, constant(0.19921875, x), 0.087890625)) + inverse * missing
    first = select(near, constant(fitted.ERFC_NEAR_64[0], x), fitted.ERFC_FAR_64[0])
    others = blended(s, (near,), (fitted.ERFC_NEAR_64[1:], fitted.ERFC_FAR_64[1:]))
    numerator, numerator_tail = two_sum(first, s * others)
    head = short(numerator * inverse)
    tail = (((numerator - head * cut) - head * divisor_rest) + numerator_tail) * inverse
    # x^2 = square + low, the square exact
    leading = short(x)
    square, low = leading * leading, (x - leading) * (x + leading)
    k, count = round_magic(square * -LOG2_E)
    high = -square - count * form.ln2_high
    low = count * form.ln2_low + low
    r = high - low
    grown = r + (r * r * horner(r, fitted.EXP_64) + ((high - r) - low))
    return scale(head + (head * grown + tail * (1.0 + grown)), k)


def _erfc_32(x: Value) -> Value:
    """Return erfc of float32: both polynomials are one, with coefficients that are selected."""
    wide = convert(x, np.float64)
    magnitude = absolute(wide)
    within, bounded = magnitude < 0.5, at_most(magnitude, 10.5)  # from 10.06 on the result is 0 in float32
    square, inverse = bounded * bounded, 1.0 / (bounded + 3.0)
    exponent = square * -LOG2_E
    k, count = round_magic(exponent)
    r = exponent - count
    power = (1.0 + r * horner(r, fitted.EXP2_32)) * power_of_two(k)
    p = blended(select(within, square, inverse - 0.1875), (within,), (fitted.ERF_64, fitted.ERFC_32))
    tail = p * inverse * power
    return convert(select(within, (1.0 - wide) - wide * p, select(wide < 0.0, 2.0 - tail, tail)), np.float32)


def erfinv(x: Value) -> Value:
    """Return the y with erf(y) = x; infinite at -1 and 1, NaN beyond.

    Formula: ``x p(w)``, w = -log(1 - x^2), for w < 6.25; then ``x p(sqrt(w))``, one polynomial up to w = 16 and another
    beyond. In float64 w, its root and the polynomial's value are carried as two numbers each. float32 is computed in
    float64, beyond 6.25 by ``x p(w)`` too.

    Error: float64 2.45 ulp, float32 0.52 ulp.

    References
    ----------
    M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011.
    """
    wide = convert(x, np.float64)
    magnitude = absolute(wide)
    inverted = (_inverted_64 if dtype_of(x).itemsize == 8 else _inverted_32)(magnitude)
    y = select(magnitude == 1.0, constant(np.inf, wide), select(magnitude < 1.0, inverted, np.nan))
    return convert(transfer_sign(y, wide), dtype_of(x))


def _inverted_64(x: Value) -> Value:
    """Return erfinv(x) for 0 <= x < 1."""
    head, tail = log_parts((1.0 - x) * (1.0 + x))
    w = -head - tail
    near, middle, root = w < 6.25, w < 16.0, sqrt(w)
    # the rounding error of the root, from the exact difference between its square and -head - tail
    cut = short(root)
    lost = (((-head - cut * cut) - (root - cut) * (root + cut)) - tail) * (0.5 / root)
    far = (root - select(middle, constant(3.25, w), 5.0)) + lost
    t = select(near, (-head - 3.125) - tail, far)
    tables = fitted.ERFINV_NEAR_64, fitted.ERFINV_MIDDLE_64, fitted.ERFINV_FAR_64
    first = select(near, constant(tables[0][0], t), select(middle, constant(tables[1][0], t), tables[2][0]))
    slope, rest = two_sum(first, t * blended(t, (near, middle), [table[1:] for table in tables]))
    leading, cut = short(slope), short(x)
    return cut * leading + ((x - cut) * leading + x * ((slope - leading) + rest))


def _inverted_32(x: Value) -> Value:
    """Return the same for a float32, to about 2^-30."""
    w = -narrow_log((1.0 - x) * (1.0 + x))
    near = x * horner(w - 3.125, fitted.ERFINV_NEAR_32)
    return rarely(near, w >= 6.25, lambda: x * horner(w - 11.125, fitted.ERFINV_FAR_32))
