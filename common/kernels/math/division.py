"""Division with a whole quotient: exact remainders, and quotients rounded down or towards zero.

A remainder of floats is exact by definition, however large the quotient is (up to 2^2098). It is found by steps
``r - q * b`` in float64, in which q is whole and short enough for q * b to be representable in two parts; r and b are
multiples of the unit in the last place of b, so every difference is exact. Quotients up to 2^47 take one step in a
vectorised loop; beyond, `common.compiler.primitives.beyond` goes on with a loop of its own that takes 46 bits off the
quotient each time. float32 is computed in float64, in steps of 27 bits: its remainders are float32 numbers again.

Signs and special values are PyTorch's and C's: ``fmod`` has the sign of the dividend, also where it is zero;
``remainder`` and ``floor_divide`` are CPython's formulas on top of it, without Python's sign of a zero remainder. The
divisor of integers is not zero: `common.ops.math.division` sees to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.compiler import primitives as p
from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    constant,
    convert,
    dtype_of,
    floor,
    from_bits,
    is_float,
    lshr,
    rint,
    select,
    shl,
    transfer_sign,
    trunc,
)

__all__ = ["divisor_source", "floor_divide", "fmod", "remainder", "trunc_divide"]

_STEP = {4: 27, 8: 46}
"""Bits of a quotient that one step takes off, per size of the operands; q has at most two more."""


def fmod(x: Value, y: Value) -> Value:
    """Return x - trunc(x / y) * y (exact), with the sign of x; NaN for infinite x and for y = 0."""
    if not is_float(x):
        return x - p.trunc_divide(x, y) * y
    size = dtype_of(x).itemsize
    subtract, step = (_subtract_short, _subtract)[size == 8], _STEP[size]
    a, b = absolute(convert(x, np.float64)), absolute(convert(y, np.float64))
    r = p.beyond(subtract(a, b), a / b, 2.0 ** (step + 1), (_reduce_short, _reduce)[size == 8], a, b)
    r = select(r < 0, r + b, r)
    r = select(b > a, a, select(b == b, r, b))
    return transfer_sign(convert(r, dtype_of(x)), x)


def _reduce_short(a: Value, b: Value) -> Value:
    return _repeat(a, b, _subtract_short, _STEP[4])


def _reduce(a: Value, b: Value) -> Value:
    return _repeat(a, b, _subtract, _STEP[8])


def _repeat(a: Value, b: Value, subtract: Callable[[Value, Value], Value], step: int) -> Value:
    """Take `step` bits off the quotient at a time, then the rest."""
    limit = b * 2.0 ** (step + 1)
    r = p.repeat_while(lambda r: absolute(r) >= limit, lambda r: subtract(r, _scaled(r, b, step)), a)
    return subtract(r, b)


def _scaled(r: Value, b: Value, step: int) -> Value:
    """b times the power of two that brings it to about |r| / 2^step."""
    count = _exponent(r) - _exponent(b) - step
    for _ in range(3):  # 2^count itself may not be representable
        part = select(count > 1000, 1000, count)
        b = b * from_bits(shl(part + 1023, 52))
        count = count - part
    return b


def _exponent(x: Value) -> Value:
    """The exponent of the leading bit of a float64, subnormal ones included."""
    small = absolute(x) < 2.0**-1022
    biased = lshr(bits(absolute(select(small, x * 2.0**54, x))), 52)
    return biased - select(small, constant(54 + 1023, biased), constant(1023, biased))


def _subtract_short(r: Value, b: Value) -> Value:
    """Return r - q * b for the whole q next to r / b; float32 operands leave room for the product."""
    return r - rint(r / b) * b


def _subtract(r: Value, b: Value) -> Value:
    """Return r - q * b for the whole q next to r / b, which has at most 48 bits: exact.

    Both factors are cut in two, so that all four products are exact. The high one is within 2^-25 of r, so the first
    difference is (Sterbenz); each later one is a multiple of the last product's unit and below 2^53 of them. Half of
    large operands, because q * b may be beyond the largest number when r is next to it.
    """
    q, small = rint(r / b), b < 1.0
    half = select(small, constant(1, b), constant(0.5, b))
    r, b = r * half, b * half
    high_q, high_b = _high(q, 27), _high(b, 26)
    low_q, low_b = q - high_q, b - high_b
    rest = (((r - high_q * high_b) - high_q * low_b) - low_q * high_b) - low_q * low_b
    return select(small, rest, rest + rest)


def _high(x: Value, count: int) -> Value:
    """A float64 without the last `count` bits of its significand."""
    return from_bits(shl(lshr(bits(x), count), count))


def remainder(x: Value, y: Value) -> Value:
    """Return the remainder with the sign of y: fmod, plus y (rounded) where the signs differ. Integers: exact."""
    if not is_float(x):
        return p.remainder(x, y)
    r = fmod(x, y)
    return select((r != 0) & ((y < 0) != (r < 0)), r + y, r)


def floor_divide(x: Value, y: Value) -> Value:
    """Return the quotient rounded down: (x - remainder) / y, made whole. x / y for y = 0. Integers: exact, wrap.

    It is exact below 2^52; beyond, within one unit in the last place. Source: CPython, `float_divmod`.
    """
    if not is_float(x):
        return p.floor_divide(x, y)
    r = fmod(x, y)
    quotient = (x - r) / y
    quotient = select((r != 0) & ((y < 0) != (r < 0)), quotient - 1.0, quotient)
    down = floor(quotient)
    whole = select(quotient - down > 0.5, down + 1.0, down)
    whole = select(quotient == 0, transfer_sign(constant(0, x), x / y), whole)
    return select(y == 0, x / y, whole)


def trunc_divide(x: Value, y: Value) -> Value:
    """Return x / y, rounded, then made whole towards zero. Integers: exact, wrap."""
    return trunc(x / y) if is_float(x) else p.trunc_divide(x, y)


ZERO = 1
"""Status of ``divisor``: an element is zero."""


def divisor_source(dtype: Any) -> str:
    """Return the kernel that copies integers, ``out[i] = x[i]`` for i < args[0], unless one of them is zero."""
    kind = np.dtype(dtype)
    # No early exit: the loop has no branch and is vectorised.
    return f"""def divisor(bufs, args):
    x = buffer(bufs, 0, {kind})
    out = buffer(bufs, 1, {kind})
    zeros = 0
    for i in range(args[0]):
        out[i] = x[i]
        if x[i] == 0:
            zeros = 1
    if zeros != 0:
        return {ZERO}
    return 0
"""
