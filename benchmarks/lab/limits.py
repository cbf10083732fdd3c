"""The best that the machine can do: bytes and operations per second, measured by kernels of our own."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np

SMALLEST, LARGEST = 1 << 15, 1 << 27
SIDE = 256
BATCHES = 20
Run = Callable[[], int]


def per_second(run: Run, empty: Run, amount: float, seconds: float = 0.12) -> float:
    """Return how much of something is done per second by `run`, without what starting it takes: the best of batches.

    A limit is what the processor can do: its own time is taken, of which other processes take nothing.
    """
    best = [float("inf"), float("inf")]
    for _ in range(BATCHES):
        for k, call in enumerate((run, empty)):
            start = time.thread_time()
            repeats, end = 0, start + seconds / (2 * BATCHES)
            while True:
                call()
                repeats += 1
                now = time.thread_time()
                if now >= end:
                    break
            best[k] = min(best[k], (now - start) / repeats)
    return amount / max(best[0] - best[1], 1e-12)


@cache
def bandwidth(static: ModuleType, nbytes: int) -> float:
    """Return the bytes per second of a loop that reads and writes so many bytes again and again.

    Parameters
    ----------
    nbytes : int
        Footprint, rounded up to a power of two: it decides which cache the loop works in.
    """
    from static.tools.kernels_apart import kernels_apart

    count = int(np.clip(_power(nbytes), SMALLEST, LARGEST)) // 8
    function = static.function(lambda x: x + 1)
    x = np.zeros(count, np.float32)
    function(x)
    apart = kernels_apart(function, x)
    return per_second(apart.whole, apart.empty, 8.0 * count)


@cache
def peak(static: ModuleType, dtype: str) -> float:
    """Return the operations per second of a product of matrices, 256 by 256, which stay in the cache."""
    from static.tools.kernels_apart import kernels_apart

    function = static.function(lambda x: x @ x)
    x = np.zeros((SIDE, SIDE), dtype)
    function(x)
    apart = kernels_apart(function, x)
    return per_second(apart.whole, apart.empty, 2.0 * SIDE**3)


def _power(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()
