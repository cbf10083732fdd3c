"""Logarithms to the bases 2 and 10."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.compiler.primitives import Value, absolute, bits, dtype_of, from_bits, select
from common.kernels.math import coefficients as fitted
from common.kernels.math.logarithm import at_borders, split_exponent, split_sum
from common.kernels.math.polynomial import horner

__all__ = ["log10", "log2", "log2_1p"]


class _Base(NamedTuple):
    """Constants of a base b, each as a head of few bits and the rest."""

    inverse_head: float
    """1 / ln b in half as many bits as the format has: its product with such another is exact."""
    inverse_tail: float
    unit_head: float
    """log_b 2 with enough trailing zero bits that its product with every exponent is exact."""
    unit_tail: float


_TWO: dict[Any, _Base] = {
    np.dtype(np.float32): _Base(1.4423828125, 0.00031222839606925845, 1.0, 0.0),
    np.dtype(np.float64): _Base(1.4426950216293335, 1.9259629911266175e-08, 1.0, 0.0),
}
_TEN: dict[Any, _Base] = {
    np.dtype(np.float32): _Base(0.4342041015625, 9.038033749675378e-05, 0.301025390625, 4.605039066518657e-06),
    np.dtype(np.float64): _Base(
        0.4342944771051407, 4.798111141615973e-09, 0.30102999566383914, 1.42050232272661e-13
    ),
}


def _half(x: Value) -> Value:
    """Return ``x`` cut to half of its bits (26, float32: 12)."""
    return from_bits(bits(x) & -(1 << (27 if dtype_of(x).itemsize == 8 else 12)))


def _logarithm(f: Value, k: Value, correction: Value | None, bases: dict[Any, _Base]) -> Value:
    """Return ``k log_b 2 + (log(1 + f) + correction) / ln b``.

    ``log(1 + f)`` is carried as a head of half the bits and a tail, so that head times head is exact and the
    result is rounded once, but for errors of the small terms.
    """
    base = bases[dtype_of(f)]
    half_square = 0.5 * f * f
    if dtype_of(f).itemsize == 8:
        s = f / (2.0 + f)
        z = s * s
        rest = s * (half_square + z * horner(z, fitted.LOG_64))
    else:
        rest = f * f * f * horner(f, fitted.LOG_32)
    head = _half(f - half_square)
    tail = ((f - head) - half_square) + (rest if correction is None else rest + correction)
    product = head * base.inverse_head
    low = head * base.inverse_tail + tail * (base.inverse_head + base.inverse_tail)
    whole = k * base.unit_head
    total = whole + product
    low = low + ((whole - total) + product)
    return total + (low if base.unit_tail == 0.0 else low + k * base.unit_tail)


def log2(x: Value) -> Value:
    """Return the logarithm to the base 2, exact for powers of two; log2(0) = -inf, NaN below zero.

    Formula: ``k + log(1 + f) / ln 2``, x = 2^k (1 + f), log(1 + f) as in `log` but in two parts.

    Error: float64 0.8 ulp, float32 1.41 ulp.
    """
    m, k, _ = split_exponent(x)
    return at_borders(x, _logarithm(m - 1.0, k, None, _TWO))


def log10(x: Value) -> Value:
    """Return the logarithm to the base 10, exact for its exact powers; log10(0) = -inf, NaN below zero.

    Formula: ``k log10(2) + log(1 + f) / ln 10``, as `log2`.

    Error: float64 0.73 ulp, float32 1.34 ulp.
    """
    m, k, _ = split_exponent(x)
    return at_borders(x, _logarithm(m - 1.0, k, None, _TEN))


def log2_1p(x: Value, tail: Value) -> Value:
    """Return log2(1 + x + tail) for x >= 0, tail as in `split_sum`, without cancellation near zero.

    Formula: as `log2`, with what 1 + x loses as in `log1p`.
    """
    _, f, k, correction = split_sum(x, tail)
    base = _TWO[dtype_of(x)]
    small = absolute(x) < (2.0**-54 if dtype_of(x).itemsize == 8 else 2.0**-25)
    y = select(small, x * (base.inverse_head + base.inverse_tail), _logarithm(f, k, correction, _TWO))
    return select(x == x, y, np.nan)
