"""lgamma, digamma and polygamma. All compute in float64; a float32 result is rounded from it.

For negative x they are reflected, with r = |x| - rint(|x|), which is exact, and sin(pi r), cos(pi r) from polynomials.
lgamma and digamma have a zero between any two poles there, next to which the terms cancel: the *absolute* error is
bounded by a few units in the last place of 1, the relative error is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import comb, factorial, pi
from typing import TYPE_CHECKING

import numpy as np

from common.compiler.primitives import Value, absolute, bits, constant, convert, dtype_of, rarely, rint, select
from common.kernels.math import coefficients as fitted
from common.kernels.math.logarithm import log
from common.kernels.math.logarithm_parts import log_parts
from common.kernels.math.polynomial import horner, short, two_sum

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["digamma", "lgamma", "polygamma_of_order"]

_CENTRE = 1.4375
# the zero of digamma, as head and tail
_ZERO, _ZERO_TAIL = 1.4616321449683622, 9.549995429965697e-17


def _turn(z: Value) -> tuple[Value, Value, Value]:
    """Return (r, s, c): r = z - rint(z), sin(pi r) / pi, cos(pi r)."""
    r = z - rint(z)
    square = r * r
    sine = r + r * square * horner(square, fitted.SINE_OF_TURNS)
    return r, sine, 1.0 + square * horner(square, fitted.COSINE_OF_TURNS)


def _product(x: Value, y: Value) -> tuple[Value, Value]:
    """Return ``x * y`` rounded, and its rounding error but for 2^-106 of it (Dekker)."""
    product, a, b = x * y, short(x), short(y)
    return product, ((a * b - product) + a * (y - b)) + (x - a) * y


def _factored(factor: Value, u: Value, table: Sequence[float]) -> tuple[Value, Value]:
    """Return (head, tail) of ``factor * p(u)``, with the rounding errors of the product and of the last sum in p."""
    value, lost = two_sum(constant(table[0], u), u * horner(u, table[1:]))
    product, rest = _product(factor, value)
    return product, rest + factor * lost


def lgamma(x: Value) -> Value:
    """Return log |gamma(x)|; infinite at 0 and at the negative integers.

    Formula, for z = |x|: ``(y - 1) (y - 2) p((y - c) / (y + c))`` for y = z from 0.75 to 2.75, with both zeros as exact
    factors; below, y = z + 1 and minus log z; from 2.75 on Stirling's series,
    ``(z - 1/2) (log z - 1) + (log(2 pi) - 1)/2 + p(1/z^2) / z``, the logarithm carried as two numbers.
    For negative x, ``-log(z |sin(pi z)| / pi) - lgamma(z)``. float32 is computed in float64, by single numbers.

    Error: float64 1.95 ulp, float32 0.51 ulp. For x < -1/2 float64 2.2 units of the
    last place of at least 1.
    """
    return (_lgamma_64 if dtype_of(x).itemsize == 8 else _lgamma_32)(x)


def _lgamma_32(x: Value) -> Value:
    wide = convert(x, np.float64)
    z = absolute(wide)
    small, big, negative = z < 0.75, z >= 2.75, wide < 0.0
    before, after = select(small, z, z - 1.0), select(small, z - 1.0, z - 2.0)
    y = select(small, z + 1.0, z)
    inverse = 1.0 / select(big, z, y + _CENTRE)
    near = before * after * horner((y - _CENTRE) * inverse, fitted.LGAMMA_NEAR) + 0.0  # +0 at 1
    logarithm = log(select(small | big, z, 1.0))
    series = inverse * horner(inverse * inverse, fitted.LGAMMA_FAR)
    far = (z - 0.5) * (logarithm - 1.0) + (0.41893853320467274 + series)

    def reflected() -> Value:
        r, sine, _ = _turn(z)
        turned = log(absolute(sine) * select(small, constant(1.0, z), z))
        return select(r == 0.0, np.inf, -turned - select(big, far, near))

    result = rarely(select(big, far, near - logarithm), negative, reflected)
    return convert(select((z == np.inf) | (z == 0.0), constant(np.inf, z), result), dtype_of(x))


def _lgamma_64(z: Value) -> Value:
    wide, z = z, absolute(z)
    small, big, negative = z < 0.75, z >= 2.75, wide < 0.0
    before, after = select(small, z, z - 1.0), select(small, z - 1.0, z - 2.0)
    y = select(small, z + 1.0, z)
    inverse = 1.0 / select(big, z, y + _CENTRE)
    zeros, lost = _product(before, after)
    u = (y - _CENTRE) * inverse
    near, near_rest = _factored(zeros, u, fitted.LGAMMA_NEAR)
    near_rest = near_rest + lost * fitted.LGAMMA_NEAR[0]
    head, tail = log_parts(select(small | big, z, 1.0))
    product, rest = _product(z - 0.5, head - 1.0)
    series = inverse * horner(inverse * inverse, fitted.LGAMMA_FAR)
    rest = rest + ((z - 0.5) * tail + (0.41893853320467274 + series))
    # -log z is the larger term below 0.75, and 0 between
    first = select(big, product, select(small, -head, near))

    def reflected() -> Value:
        r, sine, _ = _turn(z)
        turned, turned_tail = log_parts(absolute(sine) * select(small, constant(1.0, z), z))
        found = -(turned + select(big, product, near)) - (turned_tail + select(big, rest, near_rest))
        return select(r == 0.0, np.inf, found)

    result = rarely(first + select(big, rest, near_rest + select(small, near - tail, 0.0)), negative, reflected)
    infinite = (z == np.inf) | (z == 0.0) | (first == np.inf)
    return select(infinite, constant(np.inf, z), select(z == z, result, np.nan))


def digamma(x: Value) -> Value:
    """Return the derivative of lgamma; -inf at +0 and +inf at -0, NaN at the negative integers and at -inf.

    Formula, for z = |x|: ``(y - y0) p((y - c) / (y + c))`` for y = z from 0.75 to 2.75, y0 = 1.46163... carried as two
    numbers; below, y = z + 1 and minus 1/z; from 2.75 on ``log z - 1/(2 z) - p(1/z^2) / z^2``. For negative x,
    ``digamma(z) + 1/z + pi cot(pi z)``.

    Error: float64 2.10 ulp, float32 0.51 ulp. For x < -1/4 float64 6.5 units of
    the last place of at least 1.
    """
    wide = convert(x, np.float64)
    z = absolute(wide)
    small, big, negative = z < 0.75, z >= 2.75, wide < 0.0
    y = select(small, z + 1.0, z)
    inverse = 1.0 / select(big, z, y + _CENTRE)
    distance = select(small, z - (_ZERO - 1.0), z - _ZERO) - _ZERO_TAIL
    near, near_rest = _factored(distance, (y - _CENTRE) * inverse, fitted.DIGAMMA_NEAR)
    head, tail = log_parts(select(big, z, 1.0))
    square = inverse * inverse
    far = tail - (0.5 * inverse + square * horner(square, fitted.DIGAMMA_FAR))
    pole = 1.0 / z
    # psi(z) = psi(z + 1) - 1/z for small z; the reflection adds 1/z, which then cancels
    added = select(small ^ negative, select(negative, pole, -pole), 0.0)
    lead = select(big, head, select(small & ~negative, added, near))
    rest = select(big, far, near_rest) + select(small & ~negative, near, added)

    def reflected() -> Value:
        r, sine, cosine = _turn(z)
        return select(r == 0.0, np.nan, cosine / sine + (lead + rest))

    result = select(wide == np.inf, wide, rarely(lead + rest, negative, reflected))
    at_zero = select(bits(wide) < 0, constant(np.inf, z), -np.inf)
    return convert(select(z == 0.0, at_zero, result), dtype_of(x))


def _power(x: Value, exponent: int) -> Value:
    """Return x to an integer power >= 1, by squaring."""
    if exponent == 1:
        return x
    half = _power(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half


def _bernoulli(count: int) -> list[Fraction]:
    """Return B_2, B_4, ..., `count` of them."""
    from fractions import Fraction

    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum((comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return numbers[2::2]


def _euler_maclaurin(order: int) -> tuple[int, list[float]]:
    """Return (N, factors): how many terms are summed, and the series in 1/(x + N)^2 for the others.

    N is the least from 6 on at which the first term left out is below 2^-57 of the leading one.
    """
    from fractions import Fraction

    s = order + 1
    numbers = _bernoulli(14)
    factors = [
        numbers[j] * factorial(s + 2 * j) / (factorial(2 * j + 2) * factorial(s - 1)) for j in range(len(numbers))
    ]
    for terms in range(6, 200):
        for j, factor in enumerate(factors):
            if abs(factor) * order < Fraction(terms ** (2 * j + 2), 2**57):
                return terms, [float(f) for f in factors[:j]]
    raise AssertionError("unreachable: the leading term grows with N")


def _cotangent_derivative(order: int) -> list[int]:
    """Return the polynomial C with ``d^n cot(t) / dt^n = C(cot t)``, constant first: C' = -(1 + c^2) dC/dc."""
    polynomial = [0, 1]
    for _ in range(order):
        slope = [k * a for k, a in enumerate(polynomial)][1:]
        polynomial = [0] * (len(slope) + 2)
        for k, a in enumerate(slope):
            polynomial[k] -= a
            polynomial[k + 2] -= a
    return polynomial


@cache
def polygamma_of_order(order: int) -> Callable[[Value], Value]:
    """Return the scalar definition of the derivative number `order` >= 1 of digamma.

    Formula: ``(-1)^(n+1) n! sum over k >= 0 of (x + k)^-(n+1)``, the first N terms one by one, from the smallest, the
    others, or all from x = N on, by Euler's and Maclaurin's formula. For negative x,
    ``(-1)^n polygamma(n, 1 - x) - pi^(n+1) C(cot(pi x))``.

    Error for x > 0: float64 2.4 ulp for orders 1 and 2, then about n + 1 ulp; float32 0.51 ulp up to order 12. For
    negative x, float64 4.5 ulp for order 1, which has no zeros there; others cancel near theirs.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 25.11.5 and 5.15.
    """
    terms, factors = _euler_maclaurin(order)
    cotangent = _cotangent_derivative(order)

    def definition(x: Value) -> Value:
        wide = convert(x, np.float64)
        negative = wide < 0.0
        z = select(negative, 1.0 - wide, absolute(wide))
        far = z >= float(terms)  # the series alone is enough
        inverse = 1.0 / select(far, z, z + float(terms))
        power = _power(inverse, order)
        total = power * (inverse * (0.5 + inverse * horner(inverse * inverse, factors))) + power * (1.0 / order)
        for k in range(terms - 1, -1, -1):
            term = 1.0 / _power(z + float(k) if k else z, order + 1)
            total = total + select(far, constant(0.0, z), term)
        total = total * float(factorial(order))

        def reflected() -> Value:
            r, sine, cosine = _turn(absolute(wide))
            cot = select(r == 0.0, np.nan, cosine / (sine * pi))
            turned = horner(-cot, [float(c) for c in cotangent]) * pi ** (order + 1)
            return select(r == 0.0, np.inf if order % 2 else -np.inf, -total - turned)

        return convert(rarely(total if order % 2 else -total, negative, reflected), dtype_of(x))

    return definition
