"""A checksum of an array's bits, to notice that somebody has changed it.

    S = sum over i of h(w_i, i),   h(w, i) = f((w ^ (i * K)) * A) * B,   f(t) = t ^ (t >> 29), all modulo 2^64

w_i is element i as an integer. For fixed i each step of h is a bijection, so a change of one element always changes S;
of several, or an exchange of elements, all but one in about 2^64. A sum may be taken in any order, so compilers cut it
into lanes. The multipliers are those of splitmix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators", OOPSLA).
"""

from __future__ import annotations

from typing import Any

import numpy as np

K, A, B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORDS = {1: "int8", 4: "int32", 8: "int64"}


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def checksum_source(dtype: Any) -> str:
    """Return the kernel: bufs = x (contiguous), sum (int64); args = [number of elements]."""
    return f"""def checksum(bufs, args):
    wide()
    x = buffer(bufs, 0, {_WORDS[np.dtype(dtype).itemsize]})
    out = buffer(bufs, 1, int64)
    total = 0
    for i in range(args[0]):
        h = (to_int64(x[i]) ^ (i * ({_signed(K)}))) * ({_signed(A)})
        total += (h ^ ((h >> 29) & {(1 << 35) - 1})) * ({_signed(B)})
    out[0] = total
    return 0
"""


def checksum_oracle(x: np.ndarray) -> int:
    """Return the sum by Python's integers, from the definition."""
    mask, total = (1 << 64) - 1, 0
    words = np.ascontiguousarray(x).reshape(-1).view(_WORDS[x.itemsize])
    for i, w in enumerate(words.tolist()):
        h = ((w & mask) ^ (i * K & mask)) * A & mask
        total += (h ^ (h >> 29)) * B
    return _signed(total & mask)
