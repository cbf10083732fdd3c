"""exp, expm1 and the reduction of their argument."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.compiler.primitives import (
    Value,
    absolute,
    bits,
    constant,
    convert,
    dtype_of,
    fills_registers,
    from_bits,
    lshr,
    rint,
    select,
    shl,
)
from common.kernels.math import coefficients as fitted
from common.kernels.math.polynomial import at_least, at_most, horner

__all__ = [
    "FORMAT", "LOG2_E", "Format", "exact_sum", "exp", "exp2", "exp_halved", "exp_of_negative", "exp_parts", "exp_rest",
    "expm1", "expm1_times_half", "power_of_two", "reduce_exp", "round_magic", "scale",
]  # fmt: skip


class Format(NamedTuple):
    """Constants of a binary floating-point format and of the reduction by ln 2 in it."""

    fraction_bits: int
    bias: int
    magic: float
    """1.5 * 2^fraction_bits: adding it rounds a small number to an integer, which stays in the low bits."""
    magic_bits: int
    ln2_high: float
    """ln 2 with enough trailing zero bits that its product with every exponent is exact."""
    ln2_low: float


FORMAT = {
    np.dtype(np.float32): Format(23, 127, 1.5 * 2.0**23, 0x4B400000, 0.693359375, -2.12194440e-4),
    np.dtype(np.float64): Format(
        52, 1023, 1.5 * 2.0**52, 0x4338000000000000, 6.93147180369123816490e-01, 1.90821492927058770002e-10
    ),
}
LOG2_E = 1.4426950408889634


def round_magic(x: Value) -> tuple[Value, Value]:
    """Round to the nearest integer ``k`` (|x| < 2^22 or 2^51); return it as an integer and as a float.

    Adding 1.5 * 2^p leaves no fraction bits, so the addition rounds; k is read off the low bits.
    """
    form = FORMAT[dtype_of(x)]
    shifted = x + form.magic
    return bits(shifted) - form.magic_bits, shifted - form.magic


def power_of_two(k: Value) -> Value:
    """Return 2^k for an integer k within the exponents of normal numbers."""
    form = FORMAT[np.dtype(f"f{dtype_of(k).itemsize}")]
    return from_bits(shl(k + form.bias, form.fraction_bits))


def scale(y: Value, k: Value) -> Value:
    """Return ``y * 2^k`` for y near 1, rounded once, also where 2^k itself over- or underflows.

    2^k is applied as two factors of about 2^(k/2): the first product is exact, the second rounds.
    """
    if fills_registers(y):
        return y.scaled(convert(k, dtype_of(y)))
    form = FORMAT[dtype_of(y)]
    biased = k + 2 * form.bias
    first = lshr(biased, 1)
    for half in (first, biased - first):
        y = y * from_bits(shl(half, form.fraction_bits))
    return y


def reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """Return (k, r, c) with ``x = k ln 2 + r + c``, |r| <= ln(2)/2 and c the part of x that r cannot hold.

    Cody and Waite: k * ln2_high is exact, and so is its difference from x.
    """
    k, count = round_magic(x * LOG2_E)
    return k, *_reduced(x, count)


def _reduced(x: Value, count: Value) -> tuple[Value, Value]:
    """Return (r, c) with ``x = count ln 2 + r + c``, as `reduce_exp` does."""
    form = FORMAT[dtype_of(x)]
    high = exact_sum(count, -form.ln2_high, x)
    low = count * form.ln2_low
    r = high - low
    return r, (high - r) - low


def exact_sum(x: Value, factor: float, term: Value) -> Value:
    """Return ``x * factor + term``, whose product is exact: one instruction where the processor has it."""
    return x.fused(constant(factor, x), term) if fills_registers(x) else x * factor + term


def exp_rest(x: Value) -> tuple[Value, Value]:
    """Return (q, k) with ``e^x = (1 + q) 2^k``, -0.3 < q < 0.42, for x of which `scale` can apply k."""
    k, r, c = reduce_exp(x)
    return _exp_of_rest(r, c), k


def _exp_of_rest(r: Value, c: Value) -> Value:
    """Return ``e^(r + c) - 1`` for the results of `reduce_exp`."""
    return r + (r * r * horner(r, fitted.EXP_64 if dtype_of(r).itemsize == 8 else fitted.EXP_32) + c)


def _scaled_exp(x: Value, inside: Value) -> Value:
    """Return e^x by an instruction that scales by any power of two: instead of bounding x, r and c are 0 outside."""
    count = rint(x * LOG2_E)
    r, c = (select(inside, part, 0.0) for part in _reduced(x, count))
    return (1.0 + _exp_of_rest(r, c)).scaled(count)


def exp_parts(x: Value) -> tuple[Value, Value]:
    """Return (y, k) with ``e^x = y 2^k``, y near 1, for x of which `scale` can apply k."""
    q, k = exp_rest(x)
    return 1.0 + q, k


def exp(x: Value) -> Value:
    """Return e^x.

    Formula: ``e^x = 2^k (1 + r + r^2 q(r))``, x = k ln 2 + r, q a minimax polynomial (degree 9, float32: 4).
    Subnormal results are rounded once.

    Error: float64 0.93 ulp, float32 0.92 ulp.

    References
    ----------
    W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 6.
    """
    wide = dtype_of(x).itemsize == 8
    if fills_registers(x):
        return _scaled_exp(x, absolute(x) < (746.0 if wide else 104.0))
    # bounded where both factors of `scale` are 0: products that underflow take a hundred times as long
    y, k = exp_parts(at_most(at_least(x, -1418.0 if wide else -176.0), 710.0 if wide else 89.0))
    return scale(y, k)


def exp_of_negative(x: Value) -> Value:
    """Return e^x for x <= 0, with the bits of `exp`: 2^k is two factors, of which the second alone rounds."""
    wide = dtype_of(x).itemsize == 8
    if fills_registers(x):
        return _scaled_exp(x, x > (-746.0 if wide else -104.0))
    part = 512 if wide else 64
    y, k = exp_parts(at_least(x, -1064.0 if wide else -132.4))  # bounded where the first factor is 0, as in `exp`
    return y * power_of_two(k + part) * 2.0**-part


def exp_halved(x: Value) -> Value:
    """Return ``e^x / 2``, which overflows later than e^x; for x >= 0."""
    y, k = exp_parts(at_most(x, 711.0 if dtype_of(x).itemsize == 8 else 90.0))
    return scale(y, k - 1)


def exp2(x: Value) -> Value:
    """Return 2^x, exact for integers.

    Formula: ``2^k (1 + r p(r))``, k the nearest integer, r = x - k, p a minimax polynomial (degree 10,
    float32: 5). Subnormal results are rounded once.

    Error: float64 1.16 ulp, float32 1.25 ulp.
    """
    wide = dtype_of(x).itemsize == 8
    table = fitted.EXP2_64 if wide else fitted.EXP2_32
    if fills_registers(x):
        count = rint(x)
        r = select(absolute(x) < (1076.0 if wide else 151.0), x - count, 0.0)
        return (1.0 + r * horner(r, table)).scaled(count)
    bounded = at_most(at_least(x, -1076.0 if wide else -151.0), 1025.0 if wide else 129.0)
    k, count = round_magic(bounded)
    r = bounded - count
    return scale(1.0 + r * horner(r, table), k)


def expm1_times_half(x: Value, halvings: int = 1) -> Value:
    """Return ``(e^x - 1) / 2`` for x from where e^x - 1 rounds to -1 up to where it overflows.

    ``2^(k-1) e^r - 1/2`` is summed as (s - 1/2) + s r + s (r^2 q(r) + c), s = 2^(k-1), the rounding error
    of the first sum kept; the half lets s stay finite for the largest arguments. With two halvings the
    result is a quarter, finite for e^x up to twice the largest number.
    """
    k, r, c = reduce_exp(x)
    s = power_of_two(k - halvings)
    rest = r * r * horner(r, fitted.EXPM1_64 if dtype_of(x).itemsize == 8 else fitted.EXPM1_32)
    head, step = s - 0.5**halvings, s * r
    total = head + step
    return total + (((head - total) + step) + s * (rest + c))


def expm1(x: Value) -> Value:
    """Return e^x - 1 without cancellation near zero.

    Formula: ``2^k e^r - 1`` with e^r - 1 from a polynomial, see `expm1_times_half`.

    Error: float64 1.17 ulp, float32 1.26 ulp.
    """
    wide = dtype_of(x).itemsize == 8
    half = expm1_times_half(at_most(at_least(x, -40.0 if wide else -20.0), 710.0 if wide else 89.0))
    # The polynomial would turn -0 into +0, and subnormals lose bits when halved
    return select(absolute(x) < (2.0**-54 if wide else 2.0**-25), x, half + half)
