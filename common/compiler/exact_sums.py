"""Sums and products of numpy arrays without error, and what is rounded once of them."""

from __future__ import annotations

from math import inf

import numpy as np

_LARGE, _SMALL = 2.0**990, 2.0**-960
"""Between these, the parts of a product neither overflow nor underflow."""


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``x * y + z``, rounded once.

    A sum of exact parts is rounded to odd, which keeps what a second rounding needs to know (Boldo and Melquiond,
    Emulation of a FMA and correctly rounded sums, IEEE Transactions on Computers 57, 2008). Products of float32 are
    exact in float64; those of float64 are two parts (Dekker, A floating-point technique for extending the available
    precision, Numerische Mathematik 18, 1971).
    """
    if z.dtype == np.float32:
        return _odd_sum(x.astype(np.float64) * y, z.astype(np.float64)).astype(np.float32)
    x, y, z = np.broadcast_arrays(x, y, z)
    high, low = _two_product(x, y)
    first, second = _two_sum(z, low)
    most, rest = _two_sum(high, first)
    total: np.ndarray = most + _odd_sum(second, rest)
    total = np.where(np.isfinite(total), total, x * y + z)
    finite, size = np.isfinite(x) & np.isfinite(y), np.abs(high)
    total = np.where(finite & np.isinf(z), z, total)
    rare = (size > _LARGE) | (size < _SMALL) | ~np.isfinite(total)
    for place in map(tuple, np.argwhere(finite & np.isfinite(z) & rare & (x != 0) & (y != 0))):
        total[place] = _exact(float(x[place]), float(y[place]), float(z[place]))
    return total


def _exact(x: float, y: float, z: float) -> float:
    """x * y + z of numbers whose product is no zero, rounded once."""
    from fractions import Fraction

    total = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(total)
    except OverflowError:
        return inf if total > 0 else -inf


def _odd_sum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x + y in float64, rounded to odd: to the neighbour with an odd last bit, where it is none of both."""
    total, error = _two_sum(x, y)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    even = total.view(np.int64) & 1 == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact & even, np.nextafter(total, towards), total)


def _two_sum(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x + y as a rounded sum and its error (Knuth, The Art of Computer Programming, volume 2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x * y as a rounded product and its error."""
    high = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return high, ((a * c - high) + a * d + b * c) + b * d


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A float64 as the sum of two with 26 bits each."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


__all__ = ["fma"]
