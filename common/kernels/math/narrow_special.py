"""Special functions of float32, computed in float64: SciPy's functions, without its calls.

A result is rounded once, from a float64 that is right to some 2^-30 of it. Polynomials come from
`tests.oracle.fit_special`. Bessel functions keep their digits next to their zeros, as SciPy's do: up to 8 the zeros are
factors, or all terms have the digits of float64; beyond, Hankel's expansion has sines and cosines of float64. The
functions named `..._within` are for arguments up to 8; a kernel takes them where a block has no others
(`common.ops.special.by_scipy`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from common.compiler.primitives import Value, absolute, constant, convert, select, sqrt
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import LOG2_E, power_of_two, round_magic
from common.kernels.math.logarithm import log, narrow_log, split_exponent
from common.kernels.math.polynomial import at_least, at_most, blended, horner
from common.kernels.math.trigonometric import cos, sin

__all__ = [
    "LIMIT", "erfcx", "j0", "j0_within", "j1", "j1_within", "log_ndtr", "ndtri", "y0", "y0_within", "y1",
    "y1_within",
]  # fmt: skip

LIMIT = 8.0
"""Up to it Bessel functions are polynomials."""

_LN2 = math.log(2)


def scaled_erfc(x: Value) -> Value:
    """Return e^(x^2) erfc(x) for x >= 0."""
    q = 1.0 / (x + 3.0)
    return horner(q - 0.15625, fitted.SCALED_ERFC_32) * q


def narrow_power(exponent: Value) -> Value:
    """Return 2^exponent to 2^-29; beyond +-800 it is no float32."""
    exponent = at_most(at_least(exponent, -800.0), 800.0)
    k, count = round_magic(exponent)
    r = exponent - count
    return (1.0 + r * horner(r, fitted.EXP2_32)) * power_of_two(k)


def erfcx(x: Value) -> Value:
    """Return ``e^(x^2) erfc(x)`` of float32.

    Formula: ``p(q) q``, q = 1 / (|x| + 3), and 2 e^(x^2) minus that for negative x.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    y = scaled_erfc(absolute(wide))
    return convert(select(wide < 0.0, 2.0 * narrow_power(wide * wide * LOG2_E) - y, y), np.float32)


def log_ndtr(x: Value) -> Value:
    """Return the logarithm of the standard normal distribution, of float32.

    Formula, for s = e^(z^2) erfc(z) / 2, z = |x| / sqrt(2), and e = e^(-x^2 / 2): ``log(s) - x^2 / 2`` below -1,
    ``log(s e)`` below 0, then ``log(1 - s e)``, each as a logarithm of 1 + a.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    square, low = wide * wide, wide < -1.0
    s = scaled_erfc(at_most(absolute(wide) * math.sqrt(0.5), 1e20)) * 0.5
    part = s * narrow_power(square * (-0.5 * LOG2_E))
    a = select(low, s - 1.0, select(wide < 0.0, part - 1.0, -part))
    m, k, _ = split_exponent(1.0 + a, subnormal=False)
    f = select(k == 0.0, a, m - 1.0)  # all digits of a small one
    y = k * _LN2 + (f + f * f * horner(f, fitted.LOG_NARROW))
    y = y - select(low, 0.5 * square, 0.0)
    return convert(select(wide == wide, y, np.nan), np.float32)


def ndtri(x: Value) -> Value:
    """Return the y at which the standard normal distribution reaches x, of float32.

    Formula: ``sqrt(2) u p(w)``, u = 2 x - 1, w = -log(1 - u^2), as `erfinv`.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    inside = (wide > 0.0) & (wide < 1.0)
    w = -narrow_log(select(inside, 4.0 * wide * (1.0 - wide), 1.0))
    near, middle = w < 6.25, w < 16.0
    t = select(middle, w - select(near, constant(3.125, w), 11.125), sqrt(w) - 7.0625)
    tables = fitted.ERFINV_NEAR_32, fitted.ERFINV_FAR_32, fitted.ERFINV_TAIL_32
    y = (2.0 * wide - 1.0) * blended(t, (near, middle), tables) * math.sqrt(2)
    ends = select(wide == 0.0, constant(-np.inf, wide), select(wide == 1.0, constant(np.inf, wide), np.nan))
    return convert(select(inside, y, ends), np.float32)


# zeros of J0 and J1, as heads and tails
_ZEROS = (
    ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17)),
    ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17)),
)


def _near_first(z: Value, order: int) -> Value:
    """Return J(z) / z^order for 0 <= z <= 8."""
    y = horner(z * z - 32.0, (fitted.J0_NEAR_32, fitted.J1_NEAR_32)[order])
    for head, tail in _ZEROS[order]:
        y = y * (((z - head) - tail) * (z + head))
    return y


def _near_second(z: Value, order: int) -> Value:
    """Return Y(z) for 0 < z <= 8."""
    v = z * z - 32.0
    first, rest = ((fitted.J0_64, fitted.Y0_64), (fitted.J1_64, fitted.Y1_64))[order]
    y = (2 / math.pi) * log(z) * horner(v, first) + horner(v, rest)
    return y * z - (2 / math.pi) / z if order else y


def _far(z: Value, p: Sequence[float], q: Sequence[float], turned: bool) -> Value:
    """Return ``(P (c + s) - Q (s - c)) / sqrt(pi z)``, or ``(P (s - c) + Q (c + s)) / sqrt(pi z)`` where `turned`."""
    z = at_least(z, LIMIT)
    inverse = 1.0 / z
    w = inverse * inverse * 64.0
    s, c = sin(z), cos(z)
    together, apart = c + s, s - c
    even, odd = horner(w, p), horner(w, q) * inverse
    y = even * apart + odd * together if turned else even * together - odd * apart
    return y * sqrt(inverse * (1 / math.pi))


def j0_within(x: Value) -> Value:
    """Return the Bessel function of the first kind and order 0 for |x| <= 8, of float32.

    Error: 0.6 ulp.
    """
    return convert(_near_first(absolute(convert(x, np.float64)), 0), np.float32)


def j0(x: Value) -> Value:
    """Return the Bessel function of the first kind and order 0, of float32.

    Error: 0.6 ulp.
    """
    z = absolute(convert(x, np.float64))
    y = select(z > LIMIT, _far(z, fitted.P0_64, fitted.Q0_64, turned=False), _near_first(z, 0))
    return convert(y, np.float32)


def j1_within(x: Value) -> Value:
    """Return the Bessel function of the first kind and order 1 for |x| <= 8, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    return convert(_near_first(absolute(wide), 1) * wide, np.float32)


def j1(x: Value) -> Value:
    """Return the Bessel function of the first kind and order 1, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    z = absolute(wide)
    far = _far(z, fitted.P1_64, fitted.Q1_64, turned=True)
    return convert(select(z > LIMIT, select(wide < 0.0, -far, far), _near_first(z, 1) * wide), np.float32)


def _positive(x: Value, y: Value) -> Value:
    """Return a function of the second kind with its limits, of float32."""
    return convert(select(x == 0.0, -np.inf, select(x < 0.0, np.nan, y)), np.float32)


def y0_within(x: Value) -> Value:
    """Return the Bessel function of the second kind and order 0 for x <= 8, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    return _positive(wide, _near_second(absolute(wide), 0))


def y0(x: Value) -> Value:
    """Return the Bessel function of the second kind and order 0, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    z = absolute(wide)
    return _positive(wide, select(z > LIMIT, _far(z, fitted.P0_64, fitted.Q0_64, turned=True), _near_second(z, 0)))


def y1_within(x: Value) -> Value:
    """Return the Bessel function of the second kind and order 1 for x <= 8, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    return _positive(wide, _near_second(absolute(wide), 1))


def y1(x: Value) -> Value:
    """Return the Bessel function of the second kind and order 1, of float32.

    Error: 0.6 ulp.
    """
    wide = convert(x, np.float64)
    z = absolute(wide)
    return _positive(wide, select(z > LIMIT, -_far(z, fitted.P1_64, fitted.Q1_64, turned=False), _near_second(z, 1)))
