"""How the loops of a program are shared among threads: which, in how many parts, and which run side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import filterfalse, groupby, pairwise
from typing import TYPE_CHECKING, Any

from common.kernels import gemm
from common.numerics import BLOCK, LANES
from common.spec import numel
from static.lowering.cut import UNIT
from static.lowering.groups import Group
from static.lowering.items import Item
from static.lowering.stages import is_cheap

if TYPE_CHECKING:
    from static.lowering.frame import Frame

SMALL_ELEMENTS = 1 << 14
"""Spaces known to be smaller than this are not cut: waking a thread takes longer than their loops."""
PART_NS = 8_000
"""Estimated time of the smallest part; see `common.native.pool` for what a hand-over takes."""
PARTS_PER_THREAD = 4
"""Parts for each thread: one that a busy machine delays leaves its parts to the others."""

SAVED_NS = 5_000
"""Estimated time that running steps side by side must save."""

Ranges = list[tuple[int, int]]


def may_be_large(group: Group) -> bool:
    """Whether a group may have so many elements that cutting it pays; True where sizes are not known yet."""
    count = numel(group.dims)
    return not isinstance(count, int) or count >= SMALL_ELEMENTS


def picoseconds(groups: Sequence[Group]) -> Any:
    """About how long a kernel takes in one thread, by elements touched and elementary functions: an int or a Dim."""
    return sum(_of_item(item) for group in groups for item in group.items)


def _of_item(item: Item) -> Any:
    if item.kind == "native":  # a product: 50 multiplications per nanosecond in float32
        return sum(math.prod(call.ints[:4]) * item.dtype.itemsize * 5 for call in item.calls)
    return numel(item.dims) * (item.out.dtype.itemsize * (20 if is_cheap(item) else 125))


def shared_loops(frame: Frame, values: Sequence[int], threads: int) -> dict[int, Ranges]:
    """Per call that is shared the parts of its outermost loop.

    Parameters
    ----------
    values : the sizes of the frame.
    """
    shared = {}
    for i, call in enumerate(frame.calls):
        if call.cut and threads > 1:
            parts = _parts(call.cut, values[call.ints[-1]], threads, values[call.work] / 1000)
            if len(parts) > 1:
                shared[i] = parts
    return shared


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


def side_by_side(
    frame: Frame, values: Sequence[int], threads: int, shared: Mapping[int, Ranges]
) -> dict[int, list[int]]:
    """Calls that threads make at the same time, those that take longest first; by the first call of their set."""

    def shares_itself(i: int) -> bool:
        call = frame.calls[i]
        return call.name == "gemm" and gemm.tasks(*(values[j] for j in call.ints[:4])) > 1

    def number(i: int) -> int:  # what may end the run separates what comes before from what comes after
        return 0 if frame.calls[i].may_fail else frame.calls[i].beside

    found = {}
    for beside, members in groupby(filterfalse(shares_itself, range(len(frame.calls))), number):
        calls = list(members)
        if beside and threads > 1:
            times = {i: values[frame.calls[i].work] // 1000 for i in calls}
            counts = {i: len(shared.get(i, [0])) for i in calls}
            alone = sum(times[i] // min(counts[i], threads) for i in calls)
            longest = max(times[i] // counts[i] for i in calls)
            if alone - max(longest, sum(times.values()) // threads) >= SAVED_NS:
                found[calls[0]] = sorted(calls, key=lambda i: -times[i] // counts[i])
    return found


__all__ = ["Ranges", "may_be_large", "picoseconds", "shared_loops", "side_by_side"]
