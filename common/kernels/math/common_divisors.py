"""Greatest common divisors of integers, by Euclid's algorithm."""

from __future__ import annotations

GCD = """def gcd(bufs, args):
    a = buffer(bufs, 0, int64)
    b = buffer(bufs, 1, int64)
    out = buffer(bufs, 2, int64)
    for i in range(args[0]):
        x = a[i]
        y = b[i]
        while y != 0:
            r = x - (x // y) * y
            x = y
            y = r
        if x < 0:
            x = -x
        out[i] = x
    return 0
"""
"""The kernel of ``out[i] = gcd(|a[i]|, |b[i]|)`` for i < args[0]; of two zeros 0; -2^63 is its own magnitude."""
