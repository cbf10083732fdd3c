"""Numbers for examples that have the same bits on every machine and with every numpy: integer arithmetic makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
GOLDEN, FIRST, SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class ExactNumbers:
    """Exact random numbers for the samples of ops: streams of `numpy.random.Generator` may change with numpy.

    Source of the bits: SplitMix64 (Steele, Lea and Flood, 2014). Normal numbers are sums of twelve uniform ones, less
    six, which needs no elementary function.

    Parameters
    ----------
    seed : a number, or a text, whose bytes are the number.
    """

    def __init__(self, seed: int | str) -> None:
        number = int.from_bytes(seed.encode(), "big") if isinstance(seed, str) else seed
        self.state = number % (2**64 - 59)  # a prime, so that every character of a text counts

    def _words(self, count: int) -> Array:
        """The next words, (count,) uint64."""
        with np.errstate(over="ignore"):
            z = np.uint64(self.state) + GOLDEN * np.arange(1, count + 1, dtype=np.uint64)
            z = (z ^ (z >> np.uint64(30))) * FIRST
            z = (z ^ (z >> np.uint64(27))) * SECOND
            z = z ^ (z >> np.uint64(31))
        self.state = (self.state + int(GOLDEN) * count) % 2**64
        return z

    def _uniform(self, count: int) -> Array:
        return (self._words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Numbers from `low` to `high`."""
        return _shaped(low + (high - low) * self._uniform(_count(size)), size)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        """Numbers with a bell curve, between -6 and 6 standard deviations."""
        words = self._words(12 * _count(size)).reshape(-1, 12) >> np.uint64(32)
        return _shaped(loc + scale * (words.sum(axis=1).astype(np.float64) * 2.0**-32 - 6.0), size)

    def integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        """int64 from `low` to `high` - 1; from 0 if there is one bound."""
        low, high = (0, low) if high is None else (low, high)
        return _shaped((self._words(_count(size)) % np.uint64(high - low)).astype(np.int64) + low, size)

    def choice(self, values: Sequence[Any], size: Any = None) -> Any:
        """Some of `values`, with repetitions."""
        return np.asarray(values)[self.integers(len(values), size=size)]

    def permutation(self, count: int) -> Array:
        """The numbers below `count` in another order."""
        return np.argsort(self._words(count), kind="stable")


def _count(size: Any) -> int:
    return 1 if size is None else int(np.prod(size, dtype=np.int64))


def _shaped(x: Array, size: Any) -> Any:
    return x[0] if size is None else x.reshape(size)
