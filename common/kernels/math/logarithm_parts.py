"""The logarithm as an unevaluated sum, for functions that lose the last bit of one number."""

from __future__ import annotations

from common.compiler.primitives import Value
from common.kernels.math import coefficients as fitted
from common.kernels.math.logarithm import split_exponent
from common.kernels.math.polynomial import horner

__all__ = ["log_parts"]

# ln 2 with trailing zeros, so that k * high is exact; low is the rest
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def log_parts(x: Value) -> tuple[Value, Value]:
    """Return (head, tail) with ``head + tail = log(x)`` to 2^-55 of max(1, |log x|), for a positive finite float64.

    The terms are those of `log`; the sum of the two largest, both exact, is kept with its rounding error.
    """
    m, k, _ = split_exponent(x)
    f = m - 1.0
    first = k * _HIGH
    head = first + f
    lost = (first - head) + f
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    tail = s * (half_square + z * horner(z, fitted.LOG_64)) + k * _LOW
    return head, (tail - half_square) + lost
