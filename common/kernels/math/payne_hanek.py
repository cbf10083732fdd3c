"""The reduction of huge angles by multiples of pi/2, after Payne and Hanek, in integers.

For x = M 2^E with an integer M only some 200 bits of 2/pi matter to the fraction of ``x 2/pi``: higher ones give
multiples of 4, whole turns, lower ones less than the result can hold. They are multiplied by M in digits of 26
bits, whose products and sums of three fit into an int64.
"""

from __future__ import annotations

from functools import cache

from common.compiler.primitives import Value, bits, convert, from_bits, lookup, lshr

__all__ = ["digits_of_two_over_pi", "reduce_huge"]

DIGIT = 26
MASK = (1 << DIGIT) - 1
DIGITS = 48
COLUMNS = 7
# pi/2 as a head of 26 bits and the rest
_HEAD, _TAIL = 1.5707963109016418, 1.5893254773528196e-08


@cache
def digits_of_two_over_pi() -> tuple[int, ...]:
    """Return 2/pi in digits of 26 bits, after two zeros: the first one is ``floor(2/pi 2^26)``.

    pi = 16 atan(1/5) - 4 atan(1/239) (Machin), in integers with 64 bits to spare.
    """
    length = DIGIT * (DIGITS - 2)
    one = 1 << (length + 64)

    def atan_inverse(n: int) -> int:
        total, power, k = 0, one // n, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power, k = power // (n * n), k + 1
        return total

    pi = 16 * atan_inverse(5) - 4 * atan_inverse(239)
    number = (2 * one << length) // pi
    return 0, 0, *(number >> length - DIGIT * (i + 1) & MASK for i in range(DIGITS - 2))


def reduce_huge(x: Value) -> tuple[Value, Value, Value]:
    """Return (q, y, t) with ``x = q pi/2 + y + t`` modulo 2 pi, |y| <= pi/4, for a float64 x >= 4.

    An infinite x gives some finite result.

    With ``E = 26 k + s - 50`` and M 2^s in three digits, column j of the product, of weight 2^(-24 - 26 j), is the
    sum of m[a] d[k + a + j]; the first column holds two bits of the quotient above 24 of the fraction. 62 bits of
    it at most are zeros (no float64 is closer to a multiple of pi/2), two pairs of columns hold the rest. t is
    what y cannot hold, the sum exact to about 2^-75 of y.
    """
    pattern = bits(x)
    exponent = lshr(pattern, 52) - 1025
    k = lshr(exponent * 2521, 16)  # exponent // 26
    s = exponent - k * DIGIT
    significand = (pattern & ((1 << 52) - 1)) | (1 << 52)
    low, high = (significand & MASK) << s, lshr(significand, DIGIT) << s
    high = high + lshr(low, DIGIT)
    m = low & MASK, high & MASK, lshr(high, DIGIT)
    table = digits_of_two_over_pi()
    d = [lookup(table, k + i) for i in range(COLUMNS + 2)]
    column: list[Value] = [None] * COLUMNS
    carry = 0
    for j in reversed(range(COLUMNS)):
        total = m[0] * d[j] + m[1] * d[j + 1] + m[2] * d[j + 2] + carry
        column[j], carry = total & MASK, lshr(total, DIGIT)
    q = lshr(column[0] + (1 << 23), 24)
    pairs = [(column[0] - q * (1 << 24)) * (1 << DIGIT) + column[1]]
    pairs += [column[i] * (1 << DIGIT) + column[i + 1] for i in (2, 4)]
    a, b, c = (convert(pair, "f8") * 2.0 ** (-50 - 52 * i) for i, pair in enumerate(pairs))
    head = a + b
    tail = (b - (head - a)) + c
    # times pi/2, the product of the leading halves exact
    short = from_bits(bits(head) & -(1 << 27))
    rest = head - short
    product = short * _HEAD
    small = rest * _HEAD + (short * _TAIL + (rest * _TAIL + tail * (_HEAD + _TAIL)))
    y = product + small
    return q, y, small - (y - product)
