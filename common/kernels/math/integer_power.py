"""Powers of integers."""

from __future__ import annotations

from common.compiler.primitives import Value, constant, dtype_of, select

__all__ = ["integer_pow"]


def integer_pow(x: Value, y: Value) -> Value:
    """Return x raised to the power y for integers of one dtype; products wrap.

    Exact modulo 2^bits, by squaring. A negative y gives the quotient 1 / x^-y rounded towards zero: 1 for x
    = 1, +-1 for x = -1, otherwise 0 (also for x = 0, where a float gives infinity).
    """
    dtype = dtype_of(x)
    signed = dtype.kind == "i"
    result, factor = constant(1, x), x
    for position in range(8 * dtype.itemsize - signed):
        result = select((y & (1 << position)) != 0, result * factor, result)
        factor = factor * factor
    if not signed:
        return result
    # The low bits of a negative y, in two's complement have its parity, all that matters for 1 and -1
    unit = (x == 1) | (x == -1)
    return select((y >= 0) | unit, result, 0)
