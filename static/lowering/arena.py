"""Where temporaries lie: first fit over the intervals in which they live."""

from __future__ import annotations

import bisect
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
    live: list[tuple[int, int]] = []
    ends: list[tuple[int, int, int]] = []
    total = 0
    for index in sorted(range(len(intervals)), key=lambda i: intervals[i][0]):
        first, last, size = intervals[index]
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        while ends and ends[0][0] < first:
            _, start, stop = ends.pop(0)
            live.remove((start, stop))
        offset = 0
        for start, stop in live:
            if offset + size <= start:
                break
            offset = max(offset, stop)
        offsets[index] = offset
        bisect.insort(live, (offset, offset + size))
        bisect.insort(ends, (last, offset, offset + size))
        total = max(total, offset + size)
    return offsets, total
