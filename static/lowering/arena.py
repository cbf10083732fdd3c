"""Where temporaries lie: first fit over the intervals in which they live."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Sequence

ALIGNMENT = 64


def place(intervals: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Offsets in bytes of temporaries in one arena, and its size.

    Parameters
    ----------
    intervals : (first use, last use, bytes) per temporary; two of them may share memory only if one's last use
        is before the other's first.

    Examples
    --------
    >>> place([(0, 1, 100), (1, 2, 10), (2, 3, 64)])
    ([0, 128, 0], 192)
    """
    offsets = [0] * len(intervals)
    gaps: list[tuple[int, float]] = [(0, math.inf)]
    ends: list[tuple[int, int, int]] = []
    total = 0
    for index in sorted(range(len(intervals)), key=lambda i: intervals[i][0]):
        first, last, size = intervals[index]
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        while ends and ends[0][0] < first:
            _release(gaps, *heapq.heappop(ends)[1:])
        position = next(i for i, (start, stop) in enumerate(gaps) if start + size <= stop)
        offset, stop = gaps[position]
        gaps[position : position + 1] = [(offset + size, stop)] if offset + size < stop else []
        offsets[index] = offset
        heapq.heappush(ends, (last, offset, offset + size))
        total = max(total, offset + size)
    return offsets, total


def _release(gaps: list[tuple[int, float]], start: int, stop: float) -> None:
    """Add a piece to the gaps, as one with those that it touches."""
    first = last = bisect.bisect(gaps, (start, stop))
    if first and gaps[first - 1][1] == start:
        first -= 1
        start = gaps[first][0]
    if last < len(gaps) and gaps[last][0] == stop:
        stop = gaps[last][1]
        last += 1
    gaps[first:last] = [(start, stop)]
