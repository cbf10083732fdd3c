"""How the loops of a program are shared among threads: which, and in how many parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from common.numerics import LANES
from common.spec import numel
from static.lowering.cut import UNIT
from static.lowering.groups import Group
from static.lowering.stages import is_cheap

if TYPE_CHECKING:
    from static.lowering.frame import Frame

SMALL_ELEMENTS = 1 << 14
"""Spaces known to be smaller than this are not cut: waking a thread takes longer than their loops."""
PART_NS = 8_000
"""Estimated time of the smallest part; see `common.native.pool` for what a hand-over takes."""
PARTS_PER_THREAD = 4
"""Parts for each thread: one that a busy machine delays leaves its parts to the others."""

Ranges = list[tuple[int, int]]


def may_be_large(group: Group) -> bool:
    """Whether a group may have so many elements that cutting it pays; True where sizes are not known yet."""
    count = numel(group.dims)
    return not isinstance(count, int) or count >= SMALL_ELEMENTS


def picoseconds(groups: Sequence[Group]) -> Any:
    """About how long a kernel takes in one thread, by elements touched and elementary functions: an int or a Dim."""
    items = [item for group in groups for item in group.items]
    return sum(numel(item.dims) * (item.out.dtype.itemsize * (20 if is_cheap(item) else 125)) for item in items)


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
    unit, most = UNIT.get(cut, 1), threads * PARTS_PER_THREAD
    if cut == "lane":  # whole blocks of rows, which lie side by side; only where there are too few, lanes of them
        unit, most = (LANES, most) if size >= LANES * threads else (1, threads)
    units = -(-size // unit)
    count = min(most, units, int(nanoseconds / PART_NS))
    if count < 2:
        return [(0, size)]
    bounds = [min(units * k // count * unit, size) for k in range(count + 1)]
    return list(pairwise(bounds))


__all__ = ["Ranges", "may_be_large", "picoseconds", "shared_loops"]
