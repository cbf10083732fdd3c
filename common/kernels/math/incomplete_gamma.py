"""The incomplete gamma functions over gamma(a), of float32, computed in float64.

A result is rounded once, from a float64 that is right to some 2^-29 of it, also where it is far below 1: each
definition gives the smaller of the two functions, or both. The functions named `..._within` are for x up to 4, which is
`LIMIT`; a kernel takes them where a block has no others (`common.ops.special.by_scipy`).
"""

from __future__ import annotations

import math

import numpy as np

from common.compiler.primitives import Value, constant, convert, select, sqrt
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import LOG2_E, power_of_two, round_magic
from common.kernels.math.logarithm import log
from common.kernels.math.narrow_special import narrow_power, scaled_erfc
from common.kernels.math.polynomial import at_least, at_most, horner

__all__ = ["LIMIT", "gammainc", "gammainc_within", "gammaincc", "gammaincc_within"]

LIMIT = 4.0
"""Up to it both functions follow from one alternating series."""

_CENTRE = 1.4375
_NEAR, _RISING, _FRACTION = 26, 36, 16
_LARGE = 20.0
"""The a from which on Temme's expansion serves where x / a is between 1/2 and 2."""

# C_k of Temme's expansion as power series; `tests.oracle.test_incomplete_gamma` has their recurrence
_UNIFORM = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
     -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06,
     8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
     -4.382036018453353e-09, 9.14769958223679e-10),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
     1.1951628599778148e-08),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
     1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07),
    (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
     -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06),
    (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
     6.641498215465122e-05, -3.968365047179435e-05),
)  # fmt: skip
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
# 2 (artanh(s) - s) / s^3 in powers of s^2
_ARTANH = tuple(2.0 / (2 * j + 3) for j in range(12))


def _log_gamma_of_next(a: Value) -> Value:
    """Return log gamma(a + 1) for a >= 0, to all digits also of a small a."""
    z = a + 1.0
    far = z >= 2.75
    inverse = 1.0 / select(far, z, z + _CENTRE)
    near = a * (a - 1.0) * horner((z - _CENTRE) * inverse, fitted.LGAMMA_NEAR)
    stirling = inverse * horner(inverse * inverse, fitted.LGAMMA_FAR)
    return select(far, (z - 0.5) * (log(z) - 1.0) + (_HALF_LOG_TAU - 0.5 + stirling), near)


def _near(a: Value, x: Value) -> tuple[Value, Value]:
    """Return both functions for x up to `LIMIT`.

    With f = x^a / gamma(a + 1) and u the sum of (-x)^k / (k! (a + k)) over k >= 1, taken as one quotient, the lower one
    is ``f (1 + a u)``, the upper one ``(1 - f) - f a u``.
    """
    a, x = at_most(a, 200.0), at_most(x, LIMIT)  # from there on the lower one is 0, or another definition serves
    exponent = at_most(at_least((a * log(x) - _log_gamma_of_next(a)) * LOG2_E, -1000.0), 1000.0)
    k, count = round_magic(exponent)
    r, power = exponent - count, power_of_two(k)
    rest = r * horner(r, fitted.EXP2_64)
    product, total, term = constant(1.0, x), constant(0.0, x), constant(1.0, x)
    for n in range(1, _NEAR + 1):
        term = term * (x * (-1.0 / n))
        shifted = a + float(n)
        total = total * shifted + term * product
        product = product * shifted
    f, tail = power + power * rest, a * (total / product)
    return f + f * tail, -((power - 1.0) + power * rest) - f * tail


def _beyond(a: Value, x: Value) -> tuple[Value, Value]:
    """Return the smaller function for x above `LIMIT`, and whether it is the upper one.

    For a from `_LARGE` on and x / a between 1/2 and 2, with m = x / a - 1, h = m - log(1 + m) and the sign of m, it is
    ``e^(-a h) (erfc_scaled(sqrt(a h)) / 2 +- (C0 + C1 / a + ...) / sqrt(2 pi a))`` [1]_. Else, with D = x^a e^-x /
    gamma(a + 1), the lower one is D times the sum of x^k / ((a + 1) ... (a + k)) for x <= a + 1, the upper one D a
    times Legendre's continued fraction above; both are one quotient.

    References
    ----------
    .. [1] N. M. Temme: The asymptotic expansion of the incomplete gamma functions. SIAM J. Math. Anal. 10 (1979).
    """
    uniform = (a >= _LARGE) & (x >= 0.5 * a) & (x <= 2.0 * a)
    a = at_most(a, 1e77)
    m = select(uniform, x - a, 0.0) / a
    s = m / (2.0 + m)
    h = at_least(m * s - s * s * s * horner(s * s, _ARTANH), 0.0)
    upper = select(uniform, m, x - a - 1.0) > 0.0
    eta = sqrt(2.0 * h)
    eta = select(upper, eta, -eta)
    inverse = 1.0 / a
    around = _spread(eta, inverse) * sqrt(inverse * (0.5 / math.pi))
    around = 0.5 * scaled_erfc(sqrt(a * h)) + select(upper, around, -around)
    # the quotients
    b, z = at_most(a, 1e4), at_most(x, 1e4)
    product, rising, term = constant(1.0, x), constant(1.0, x), constant(1.0, x)
    for n in range(1, _RISING + 1):
        term = term * z
        shifted = b + float(n)
        rising = rising * shifted + term
        product = product * shifted
    below, denominator, above_before, before = constant(1.0, x), z + (1.0 - b), constant(0.0, x), constant(1.0, x)
    partial = denominator
    for n in range(1, _FRACTION + 1):
        partial = partial + 2.0
        factor = (b - float(n)) * float(n)
        below, above_before = partial * below + factor * above_before, below
        denominator, before = partial * denominator + factor * before, denominator
    quotient = select(upper, a * below, rising) / select(upper, denominator, product)
    exponent = select(uniform, -(a * h), a * log(x) - x - _log_gamma_of_next(a))
    return narrow_power(exponent * LOG2_E) * select(uniform, around, quotient), upper


def _spread(eta: Value, inverse: Value) -> Value:
    """Return C0(eta) + C1(eta) / a + ..., given 1 / a."""
    result = horner(eta, _UNIFORM[-1])
    for table in _UNIFORM[-2::-1]:
        result = result * inverse + horner(eta, table)
    return result


def _finished(a: Value, x: Value, y: Value, at_zero: float) -> Value:
    """The limits where an operand is 0 or infinite, and NaN where a function has no value."""
    end = constant(1.0 - at_zero, x)
    y = select((x == 0.0) | (a == np.inf), at_zero, y)
    y = select((a == 0.0) | (x == np.inf), end, y)
    undefined = ((a == 0.0) & (x == 0.0)) | ((a == np.inf) & (x == np.inf)) | ~((a >= 0.0) & (x >= 0.0))
    return convert(select(undefined, np.nan, y), np.float32)


def gammainc_within(a: Value, x: Value) -> Value:
    """Return `gammainc` for x up to `LIMIT`."""
    a, x = convert(a, np.float64), convert(x, np.float64)
    return _finished(a, x, _near(a, x)[0], 0.0)


def gammaincc_within(a: Value, x: Value) -> Value:
    """Return `gammaincc` for x up to `LIMIT`."""
    a, x = convert(a, np.float64), convert(x, np.float64)
    return _finished(a, x, _near(a, x)[1], 1.0)


def gammainc(a: Value, x: Value) -> Value:
    """Return the lower incomplete gamma function over gamma(a), of float32.

    Formula: that of `_near` for x up to 4, else that of `_beyond`, or 1 minus that.

    Error: 0.6 ulp.
    """
    a, x = convert(a, np.float64), convert(x, np.float64)
    y, upper = _beyond(a, x)
    return _finished(a, x, select(x > LIMIT, select(upper, 1.0 - y, y), _near(a, x)[0]), 0.0)


def gammaincc(a: Value, x: Value) -> Value:
    """Return the upper incomplete gamma function over gamma(a), of float32.

    Formula: that of `_near` for x up to 4, else that of `_beyond`, or 1 minus that.

    Error: 0.6 ulp.
    """
    a, x = convert(a, np.float64), convert(x, np.float64)
    y, upper = _beyond(a, x)
    return _finished(a, x, select(x > LIMIT, select(upper, y, 1.0 - y), _near(a, x)[1]), 1.0)
