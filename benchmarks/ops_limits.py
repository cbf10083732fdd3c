"""The machine's own limits: the time of a call that only moves its arrays, or only multiplies and adds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.ops_calls import Call


def limit(call: Call, arrays: Sequence[np.ndarray], result: np.ndarray, backward: bool) -> float:
    """The seconds below which no engine gets: operands are read once, results written once, products added at the peak.

    A backward pass reads the operands and the gradient that arrives again, and writes one gradient per operand.
    """
    moved = sum(x.nbytes for x in arrays) + result.nbytes
    floats = sum(x.nbytes for x in arrays if x.dtype.kind == "f")
    if backward:
        moved += sum(x.nbytes for x in arrays) + result.nbytes + floats
    seconds = moved * seconds_per_byte(2 ** int(np.log2(max(moved, 1))))
    if call.sums is None:
        return seconds
    passes = 1 + sum(x.dtype.kind == "f" for x in arrays) if backward else 1
    return max(seconds, passes * 2 * result.size * call.sums(arrays) * seconds_per_operation())


def _fastest(copies: int, run: object) -> float:
    best = np.inf
    for _ in range(copies):
        start = time.process_time()
        run()  # type: ignore[operator]
        best = min(best, time.process_time() - start)
    return float(best)


@cache
def seconds_per_byte(size: int) -> float:
    """The time of a copy that reads and writes `size` bytes in all, per byte."""
    size = max(size, 1 << 10)
    x = np.ones(size // 2, np.uint8)
    y = x.copy()
    repeats = max(1, (1 << 22) // size)

    def copies() -> None:
        for _ in range(repeats):
            np.copyto(y, x)

    return _fastest(12, copies) / (repeats * 2 * x.nbytes)


@cache
def seconds_per_operation() -> float:
    """The time of one float32 addition or multiplication of the fastest product of matrices that is at hand."""
    import torch

    x = torch.ones(768, 768)
    return _fastest(12, lambda: x @ x) / (2 * 768**3)
