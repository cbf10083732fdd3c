"""Random numbers: Philox4x32-10, uniform and normal, each element a pure function of (seed, offset + i).

Layout: the key of the generator is the seed (low word first), its counter the 64-bit number ``offset + i``
(low word first, two words of zero after it). One element takes one counter whatever its dtype and
distribution, so draws of different kinds share nothing and any split of a draw gives the same numbers. Of the
four words w0 ... w3

- uniform on [0, 1): the upper 24 bits of w0 (float32), the upper 53 bits of w0 w1 (float64); the float32
  number is the float64 number cut off;
- normal: ``sqrt(-2 log u) cos(2 pi v)`` (Box and Muller), u in (0, 1] and v in [0, 1). float32: u of the 32
  bits of w0, v of the upper 24 of w2; float64: u of the upper 53 bits of w0 w1, v of those of w2 w3. The
  largest magnitude is 6.66 and 8.57.

===========  ==========================  ====  =========================
kernel       buffers                     args  result
===========  ==========================  ====  =========================
``uniform``  seed, offset (int64), out   n     out[i] on [0, 1)
``normal``   seed, offset (int64), out   n     out[i], mean 0, variance 1
===========  ==========================  ====  =========================

No scratch, status 0. Seed and offset are buffers of one element because they are state.

References
----------
J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
G. E. P. Box, M. E. Muller: A note on the generation of random normal deviates. Ann. Math. Statist. 29 (1958).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.compiler.primitives import Value, convert, evaluate, lshr, shl
from common.kernels.math import elementary
from common.kernels.math.trigonometric import cos_within

__all__ = ["SCALARS", "normal_oracle", "normal_source", "philox", "uniform_oracle", "uniform_source"]

_WORD = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


def philox(counter: tuple[Value, Value, Value, Value], key: tuple[Value, Value]) -> tuple[Value, ...]:
    """Return the four words of Philox4x32-10; every word is an int64 value in [0, 2**32).

    Int64 holds the 64-bit products, since multiplication wraps and both halves are taken by shift and mask.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):  # instructions that multiply lower halves do without the upper ones
        p0, p1 = (c0 & _WORD) * _MULTIPLIERS[0], (c2 & _WORD) * _MULTIPLIERS[1]
        c0, c1, c2, c3 = lshr(p1, 32) ^ c1 ^ k0, p1, lshr(p0, 32) ^ c3 ^ k1, p0
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0 & _WORD, c1 & _WORD, c2 & _WORD, c3 & _WORD


def _words(seed: Value, index: Value) -> tuple[Value, ...]:
    zero = seed & 0
    return philox((index & _WORD, lshr(index, 32), zero, zero), (seed & _WORD, lshr(seed, 32)))


def _upper_24(word: Value) -> Value:
    # By way of int32, for which every instruction set has a vector conversion.
    return convert(convert(lshr(word, 8), np.int32), np.float32)


def _upper_53(high: Value, low: Value) -> Value:
    return convert(shl(high, 21) | lshr(low, 11), np.float64)


def uniform_float32(seed: Value, index: Value) -> Value:
    """Return the uniform float32 number of an element."""
    return _upper_24(_words(seed, index)[0]) * 2.0**-24


def uniform_float64(seed: Value, index: Value) -> Value:
    """Return the uniform float64 number of an element."""
    high, low, _, _ = _words(seed, index)
    return _upper_53(high, low) * 2.0**-53


def normal_float32(seed: Value, index: Value) -> Value:
    """Return the normal float32 number of an element."""
    first, _, second, _ = _words(seed, index)
    return _box_muller(convert(convert(first + 1, np.float64), np.float32) * 2.0**-32, _upper_24(second) * 2.0**-24)


def normal_float64(seed: Value, index: Value) -> Value:
    """Return the normal float64 number of an element."""
    a, b, c, d = _words(seed, index)
    return _box_muller((_upper_53(a, b) + 1.0) * 2.0**-53, _upper_53(c, d) * 2.0**-53)


def _box_muller(u: Value, v: Value) -> Value:
    return elementary.sqrt(elementary.log(u) * -2.0) * cos_within(v * (2.0 * math.pi))


SCALARS = {
    definition.__name__: definition
    for definition in (uniform_float32, uniform_float64, normal_float32, normal_float64)
}
"""Functions for kernel source: ``uniform_float32(seed, index)`` and so on, of int64 values."""


def uniform_source(dtype: Any) -> str:
    """Return the kernel of uniform numbers on [0, 1)."""
    return _source("uniform", np.dtype(dtype))


def normal_source(dtype: Any) -> str:
    """Return the kernel of normal numbers."""
    return _source("normal", np.dtype(dtype))


def _source(name: str, dtype: np.dtype[Any]) -> str:
    return f"""def {name}(bufs, args):
    wide()
    seed = buffer(bufs, 0, int64)
    offset = buffer(bufs, 1, int64)
    out = buffer(bufs, 2, {dtype})
    if args[0] > 0:
        key = seed[0]
        first = offset[0]
        for i in range(args[0]):
            out[i] = {name}_{dtype}(key, first + i)
    return 0
"""


def written_source(draw: str, element: str, dtype: Any, numbers: Sequence[Any] = ()) -> str:
    """Return ``written(seed, offset, out, ...; n)``: ``out[i] = element``, an expression of ``z``, which is drawn.

    Parameters
    ----------
    draw : a name in `SCALARS`.
    dtype : of `out`.
    numbers : dtypes of ``a``, ``b`` and so on, which are buffers of one element.
    """
    named = [("abc"[i], np.dtype(d)) for i, d in enumerate(numbers)]
    buffers = "".join(f"    of_{x} = buffer(bufs, {3 + i}, {d})\n" for i, (x, d) in enumerate(named))
    values = "".join(f"        {x} = of_{x}[0]\n" for x, _ in named)
    return f"""def written(bufs, args):
    wide()
    seed = buffer(bufs, 0, int64)
    offset = buffer(bufs, 1, int64)
    out = buffer(bufs, 2, {np.dtype(dtype)})
{buffers}    if args[0] > 0:
        key = seed[0]
        first = offset[0]
{values}        for i in range(args[0]):
            z = {draw}(key, first + i)
            out[i] = {element}
    return 0
"""


def uniform_oracle(seed: int, offset: int, n: int, dtype: Any) -> np.ndarray:
    """Return n uniform numbers in plain numpy, from the definition.

    Examples
    --------
    >>> uniform_oracle(0, 0, 2, "float64").round(4)
    array([0.399 , 0.9722])
    """
    return _oracle("uniform", seed, offset, n, np.dtype(dtype))


def normal_oracle(seed: int, offset: int, n: int, dtype: Any) -> np.ndarray:
    """Return n normal numbers in plain numpy, from the definition."""
    return _oracle("normal", seed, offset, n, np.dtype(dtype))


def _oracle(name: str, seed: int, offset: int, n: int, dtype: np.dtype[Any]) -> np.ndarray:
    index = np.int64(offset) + np.arange(n)  # wraps
    return np.asarray(evaluate(SCALARS[f"{name}_{dtype}"], np.full(n, seed, np.int64), index))
