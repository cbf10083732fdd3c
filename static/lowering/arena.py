"""Where temporaries lie: first fit over the intervals in which they live."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

ALIGNMENT = 64
_WITHOUT_END = 1 << 62


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
        offsets = [0] * len(sizes)
        starts, stops = [0], [_WITHOUT_END]  # the gaps
        total = 0
        for index, over in self._turns:
            for other in over:
                start = offsets[other]
                stop = start + sizes[other]
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
        return offsets, total
