"""Greatest common divisors of integers, by Stein's algorithm in vectors: it shifts and subtracts, and never divides."""

from __future__ import annotations

_TOGETHER = 128
"""Pairs that go on together, until the last of them is done."""
SCRATCH = 16 * _TOGETHER
"""Bytes of scratch that the kernel needs."""

GCD = f"""def gcd(bufs, args):
    a = buffer(bufs, 0, int64)
    b = buffer(bufs, 1, int64)
    out = buffer(bufs, 2, int64)
    left = buffer(bufs, 3, int64)
    for s in range(0, args[0], {_TOGETHER}):
        n = min({_TOGETHER}, args[0] - s)
        for k in range(n):
            p = where(a[s + k] < 0, -a[s + k], a[s + k])
            q = where(b[s + k] < 0, -b[s + k], b[s + k])
            alone = (p == 0) | (q == 0)
            left[k] = where(alone, p | q, p)
            left[{_TOGETHER} + k] = where(alone, 0, q)
            out[s + k] = where(alone, 1, (p | q) & -(p | q))
        more = 1
        while more != 0:
            for k in range(n):
                p = left[k]
                q = left[{_TOGETHER} + k]
                d = where(p < q, q - p, p - q)
                half = where((p & 1) == 0, (p >> 1) & {2**63 - 1}, p)
                other = where((q & 1) == 0, (q >> 1) & {2**63 - 1}, q)
                odd = (p & q & 1) != 0
                left[k] = where(q == 0, p, where(odd, where(p < q, p, q), half))
                left[{_TOGETHER} + k] = where(odd, d >> 1, other)
            more = row_max(left, {_TOGETHER}, n)
        for k in range(n):
            out[s + k] = out[s + k] * left[k]
    return 0
"""
"""The kernel of ``out[i] = gcd(|a[i]|, |b[i]|)`` for i < args[0]; of two zeros 0; -2^63 is its own magnitude.

The twos that both numbers have are put aside in `out`. Then an even number is halved, and of two odd ones the larger
becomes half the difference, until nothing is left of b. Source: Stein, Computational problems associated with Racah
algebra, 1967.
"""
