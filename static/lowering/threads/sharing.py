"""How the loops of a program are shared among threads: which, in how many parts, and which run side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays import gemm
from static.lowering.threads.cut_loops import UNIT

if TYPE_CHECKING:
    from static.lowering.memory.call_table import Frame

PART_NS = 8_000
"""Estimated time of the smallest part; see `common.runtime.thread_pool` for what a hand-over takes."""
PARTS_PER_THREAD = 4
"""Parts for each thread: one that a busy machine delays leaves its parts to the others."""

SAVED_NS = 5_000
"""Estimated time that running steps side by side must save."""

Ranges = list[tuple[int, int]]


class Sharing:
    """How threads share the calls of a program; what of that does not depend on sizes is worked out once.

    Parameters
    ----------
    frame : of the program.
    """

    def __init__(self, frame: Frame) -> None:
        self._loops = [(i, (call.cut, call.ints[-1], call.work)) for i, call in enumerate(frame.calls) if call.cut]
        self._work = [call.work for call in frame.calls]
        self._order: list[tuple[int, int, tuple[int, ...]]] = []  # position, number of its set or 0, sizes if a product
        for i, call in enumerate(frame.calls):
            # what may end the run separates what comes before from what comes after
            number, product = 0 if call.may_fail else call.beside, tuple(call.ints[:4]) if call.name == "gemm" else ()
            if number or product or not self._order or self._order[-1][1:] != (0, ()):
                self._order.append((i, number, product))
        self._products = list(dict.fromkeys(product for *_, product in self._order if product))
        self._sets: dict[tuple[bool, ...], list[list[int]]] = {}

    def loops(self, values: Sequence[int], threads: int) -> dict[int, Ranges]:
        """Per call that is shared the parts of its outermost loop.

        Parameters
        ----------
        values : the sizes of the frame.
        """
        known: dict[Any, Ranges] = {}
        for _, loop in self._loops:
            if loop not in known:
                cut, size, work = loop
                known[loop] = _parts(cut, values[size], threads, values[work] / 1000)
        return {i: known[loop] for i, loop in self._loops if len(known[loop]) > 1}

    def beside(self, values: Sequence[int], threads: int, shared: Mapping[int, Ranges]) -> dict[int, list[int]]:
        """Calls that threads make at the same time, those that take longest first; by the first call of their set.

        Parameters
        ----------
        values : the sizes of the frame.
        shared : what `loops` gives.
        """
        alone = tuple([gemm.tasks(*(values[j] for j in product)) > 1 for product in self._products])
        if alone not in self._sets:
            self._sets[alone] = self._divided(dict(zip(self._products, alone)))
        orders: dict[Any, list[int]] = {}
        found = {}
        for calls in self._sets[alone]:
            told = tuple([(values[self._work[i]], len(shared.get(i, (0,)))) for i in calls])
            if told not in orders:
                orders[told] = _longest_first(told, threads)
            if orders[told]:
                found[calls[0]] = [calls[k] for k in orders[told]]
        return found

    def _divided(self, alone: Mapping[tuple[int, ...], bool]) -> list[list[int]]:
        """Sets of calls that do not depend on each other, where the products that `alone` names are not among them."""
        sets: list[list[int]] = []
        last = 0
        for i, number, product in self._order:
            if alone.get(product):
                continue
            if number and number == last:
                sets[-1].append(i)
            elif number:
                sets.append([i])
            last = number
        return sets


def _parts(cut: str, size: int, threads: int, nanoseconds: float) -> Ranges:
    unit, most = BLOCK if cut == "k0" else UNIT.get(cut, 1), threads * PARTS_PER_THREAD
    if cut == "place":  # each part looks at all indices
        most = threads
    if cut == "lane":  # whole blocks of rows, which lie side by side; only where there are too few, lanes of them
        unit, most = (LANES, most) if size >= LANES * threads else (1, threads)
    units = -(-size // unit)
    count = min(most, units, int(nanoseconds / PART_NS))
    if count < 2:
        return [(0, size)]
    bounds = [min(units * k // count * unit, size) for k in range(count + 1)]
    return list(pairwise(bounds))


def _longest_first(told: Sequence[tuple[int, int]], threads: int) -> list[int]:
    """In which order threads begin with calls; none if they are better made one after the other.

    Parameters
    ----------
    told : picoseconds and parts of each.
    """
    calls = range(len(told))
    times, counts = [work // 1000 for work, _ in told], [parts for _, parts in told]
    alone = sum(times[i] // min(counts[i], threads) for i in calls)
    longest = max(times[i] // counts[i] for i in calls)
    if alone - max(longest, sum(times) // threads) < SAVED_NS:
        return []
    return sorted(calls, key=lambda i: -times[i] // counts[i])


__all__ = ["Ranges", "Sharing"]
