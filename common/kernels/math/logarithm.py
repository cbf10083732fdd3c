"""log and log1p."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    constant,
    dtype_of,
    fills_registers,
    from_bits,
    lshr,
    select,
)
from common.kernels.math import coefficients as fitted
from common.kernels.math.exponential import FORMAT, exact_sum
from common.kernels.math.polynomial import horner

__all__ = ["at_borders", "log", "log1p", "log1p_doubled", "narrow_log", "split_exponent", "split_sum"]


class _LogarithmFormat(NamedTuple):
    root_half: int
    """Bit pattern of the float nearest sqrt(1/2), where the significand's range begins."""
    root_two: float
    """Twice that float, where it ends."""
    raise_exponent: int
    """Added before the logical shift, so that negative exponents shift correctly."""
    integer_magic: int
    """Bit pattern of 2^fraction_bits: or-ing a small integer into it gives 2^fraction_bits + integer."""
    offset: float
    smallest_normal: float
    lift: int


_SPLIT = {
    np.dtype(np.float32): _LogarithmFormat(0x3F3504F3, 1.41421354, 128, 0x4B000000, 2.0**23 + 128, 2.0**-126, 25),
    np.dtype(np.float64): _LogarithmFormat(
        0x3FE6A09E667F3BCD, 1.4142135623730951, 1024, 0x4330000000000000, 2.0**52 + 1024, 2.0**-1022, 54
    ),
}
# ln 2 with trailing zeros, so that k * high is exact; low is the rest
_LN2 = {
    np.dtype(np.float32): (6.9313812256e-01, 9.0580006145e-06),
    np.dtype(np.float64): (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}


def split_exponent(x: Value, subnormal: bool = True) -> tuple[Value, Value, Value]:
    """Return (m, k, e) with ``x = m 2^k``, sqrt(1/2) <= m < sqrt(2), for positive finite x; k as a float.

    e is the integer ``k << fraction_bits`` (of the lifted x, where x was subnormal). The bits of x minus
    those of sqrt(1/2) hold k in the exponent field; subtracting that field from x leaves m. Instructions that do so
    for subnormal numbers too take their time: integers are faster where there are none, and e is k where they are used.
    """
    if subnormal and fills_registers(x):
        m, k = x.significand(), x.binary_exponent()
        upper = m >= _SPLIT[dtype_of(x)].root_two
        k = select(upper, k + 1.0, k)
        return select(upper, m * 0.5, m), k, k
    form, split = FORMAT[dtype_of(x)], _SPLIT[dtype_of(x)]
    small = x < split.smallest_normal
    pattern = bits(select(small, x * 2.0**split.lift, x) if subnormal else x)
    shifted = pattern - split.root_half
    field = shifted & -(1 << form.fraction_bits)
    raised = lshr(shifted + (split.raise_exponent << form.fraction_bits), form.fraction_bits)
    k = from_bits(raised | split.integer_magic) - split.offset
    if subnormal:
        k = k - select(small, constant(float(split.lift), x), 0.0)
    return from_bits(pattern - field), k, field


def at_borders(x: Value, y: Value) -> Value:
    """Return ``y``, a logarithm of x, with its limits at 0 and infinity, and NaN for x < 0 and NaN."""
    y = select(x == np.inf, x, y)
    y = select(x == 0.0, -np.inf, y)
    return select(x >= 0.0, y, np.nan)


def _log(x: Value, f: Value, k: Value, correction: Value | None) -> Value:
    """Return ``k ln 2 + log(1 + f) + correction``, smallest terms first."""
    high, low = _LN2[dtype_of(f)]
    tail = k * low if correction is None else k * low + correction
    half_square = 0.5 * f * f
    if dtype_of(f).itemsize == 8:
        # log(1+f) = f - f^2/2 + s (f^2/2 + z q(z)), s = f/(2+f), z = s^2
        s = f / (2.0 + f)
        z = s * s
        tail = s * (half_square + z * horner(z, fitted.LOG_64)) + tail
    else:
        tail = f * f * f * horner(f, fitted.LOG_32) + tail
    y = exact_sum(k, high, f - (half_square - tail))
    # instructions take 0, infinity and negative numbers apart such that y is right
    return y if fills_registers(x) and correction is None else at_borders(x, y)


def log(x: Value) -> Value:
    """Return the natural logarithm; log(0) = -inf, NaN below zero.

    Formula: x = m 2^k, f = m - 1, ``log x = k ln 2 + log(1 + f)``. float64 takes log(1+f) as 2 atanh(s) with
    s = f / (2 + f), whose series in s^2 is short; in float32 a polynomial in f is faster than the division.

    Error: float64 0.83 ulp, float32 1.25 ulp.

    References
    ----------
    J.-M. Muller, "Elementary Functions: Algorithms and Implementation", 3rd ed., chapters 3 and 11.
    """
    m, k, _ = split_exponent(x)
    return _log(x, m - 1.0, k, None)


def narrow_log(x: Value) -> Value:
    """Return log(x) of a positive finite float64 to 2^-34 of its larger terms: no quotient, as in `log`."""
    m, k, _ = split_exponent(x, subnormal=False)
    f = m - 1.0
    return k * 0.6931471805599453 + (f + f * f * horner(f, fitted.LOG_NARROW))


def split_sum(x: Value, tail: Value | None = None) -> tuple[Value, Value, Value, Value]:
    """Return (u, f, k, c) with ``log(1 + x + tail) = k ln 2 + log(1 + f) + c``, u = 1 + x rounded.

    Parameters
    ----------
    x : above -1
    tail : what x cannot hold, at most half a unit in its last place.
    """
    form = FORMAT[dtype_of(x)]
    u = 1.0 + x
    m, k, field = split_exponent(u, subnormal=False)
    # What the sum lost (Knuth's two-sum), scaled like u: log(m) lacks lost / m, and 1/m = 1 - f + f^2 - ...
    # is enough of it. For large u it is nothing, and 2^-k would leave the range.
    part = u - x
    lost = (1.0 - part) + (x - (u - part))
    lost = lost if tail is None else lost + tail
    scaled = select(u < 2.0**60, lost * from_bits((form.bias << form.fraction_bits) - field), 0.0)
    f = m - 1.0
    return u, f, k, scaled * (1.0 - f * (1.0 - f))


def log1p(x: Value) -> Value:
    """Return log(1 + x) without cancellation near zero; log1p(-1) = -inf, NaN below.

    Formula: ``log u + (1 + x - u) / u`` for u = 1 + x rounded, with log u as in `log`.

    Error: float64 0.88 ulp, float32 1.31 ulp.
    """
    y = _log(*split_sum(x))
    return select(absolute(x) < (2.0**-54 if dtype_of(x).itemsize == 8 else 2.0**-25), x, y)


def log1p_doubled(x: Value, tail: Value, doublings: Value | None = None) -> Value:
    """Return ``log(2^doublings (1 + x + tail))``; tail as in `split_sum`, and 0 where x is 0."""
    u, f, k, correction = split_sum(x, tail)
    y = _log(u, f, k if doublings is None else k + doublings, correction)
    return select(absolute(x) < (2.0**-54 if dtype_of(x).itemsize == 8 else 2.0**-25), x, y)
