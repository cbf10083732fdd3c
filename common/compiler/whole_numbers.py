"""Vectors of int64 and of floats, converted and divided by instructions that processors without AVX-512 have, too.

Those convert vectors of int32 only; LLVM would take int64 lane by lane. What is ordinary, below 2^51, takes two or
three instructions; for what is not a vector branches. Each function gives the bits of the conversion or division.
"""

from __future__ import annotations

import numpy as np

from common.compiler.primitives import Value

__all__ = ["divided", "divided_by_branches", "is_large", "small", "to_double", "to_whole"]

_ORDINARY = 2.0**51
_MAGIC = 1.5 * 2.0**52
"""Adding it to an ordinary whole number leaves that number in the low bits."""
_MAGIC_BITS = 0x4338000000000000
_FLOAT64 = np.dtype(np.float64)


def to_double(x: Value) -> Value:
    """Return int64 as float64, rounded once: both halves behind leading bits of their own, and one inexact sum."""
    low = ((x & 0xFFFFFFFF) | 0x4330000000000000).from_bits()  # 2^52 + low
    high = (x.lshr(32) ^ 0x4530000080000000).from_bits()  # 2^84 + 2^63 + 2^32 high
    return (high - float(2**84 + 2**63 + 2**52)) + low


def to_whole(x: Value) -> Value:
    """Return an ordinary float64 towards zero as int64."""
    return (x.trunc() + _MAGIC).bits() - _MAGIC_BITS


def is_large(x: Value) -> Value:
    """Whether a float is not ordinary, or NaN."""
    return (x.absolute() >= _ORDINARY) | (x != x)


def small(x: Value) -> Value:
    """Return an ordinary int64 as float64."""
    return (x + _MAGIC_BITS).from_bits() - _MAGIC


def divided(x: Value, y: Value) -> tuple[Value, Value]:
    """Return quotient, rounded down, and remainder of int64 by what is not -1, 0 or 1.

    By the divisor's inverse, rounded, twice: the first quotient leaves at most 2^12 divisors, the second one, the next
    whole one, little more than half a divisor. Only the inverse is a division, which a loop makes once by a divisor
    that it does not change.
    """
    inverse = 1.0 / y.convert(_FLOAT64)
    first = (x.convert(_FLOAT64) * inverse).whole_part(x.dtype)
    rest = x - first * y
    second = (rest.convert(_FLOAT64) * inverse).rint().whole_part(x.dtype)
    rest = rest - second * y
    above = ((rest ^ y) < 0) & (rest != 0)
    return first + second - above.convert(x.dtype), above.select(rest + y, rest)


def divided_by_branches(x: Value, y: Value) -> tuple[Value, Value]:
    """Return the same, of ordinary int64 by floats.

    Their quotient lies on the same side of whole numbers: unless it is one, the exact quotient is at least 1 / y away
    from the next, and rounding moves it by less than 1 / 4 y.
    """
    quotient = ((small(x) / small(y)).floor() + _MAGIC).bits() - _MAGIC_BITS
    large = ((x + (1 << 51)) | (y + (1 << 51))).lshr(52) != 0
    quotient = quotient.rarely(large, lambda: divided(x, y)[0])
    return quotient, x - quotient * y
