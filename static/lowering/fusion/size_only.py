"""Values that depend on sizes only: positions, masks, windows, tables of angles. A plan makes them once and keeps them.

Their kernels come first, and calls behind the first one skip them (`static.running.emit`). What costs little more than
to load it is computed where it is used instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.core.sizes import hint
from common.core.spec import numel
from static.graph.side_effects import acts
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.groups import Group
from static.lowering.ir.items import ArrayBuffer, Item
from static.lowering.ir.program_values import Work

KEPT_BYTES = 1 << 21
"""What a plan keeps at most, and its program's plans four times as much: larger values are made in every call."""

FEW = 2
"""Cheap operations that are rather done again."""
FEWEST_ELEMENTS = 32
"""A kernel of its own, whose result is loaded, takes longer than fewer elements."""

KEPT = "it depends on sizes only, and is kept from call to call"


def size_only(work: Work, groups: Sequence[Group] = ()) -> set[int]:
    """Ids of the items of which everything depends on sizes only, in memory that is not a result's or state's.

    Once items are in `groups`, those of a group that does more as well are none: it runs in every call.
    """
    bound = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    acting = any(acts(item.node) for item in work.items)  # what may fail waits for the acts before it
    refused = {item.id for item in work.items if item.own or (acting and item.can_fail)}
    while True:
        found = _of_found(work.items, refused)
        elsewhere = {i.id for i in work.items if i.id in found and any(not _is_own(b, found, bound) for b in i.results)}
        for group in groups:
            own = {item.id for item in group.items}
            elsewhere |= own & found if not own <= found else set()
        if not elsewhere:
            return found
        refused |= elsewhere


def is_worth_keeping(items: Sequence[Item]) -> bool:
    """Whether loading what items make costs less than making it again."""
    most = max(items, key=lambda item: hint(numel(item.dims)))
    elements = hint(numel(most.dims))
    if elements < FEWEST_ELEMENTS or elements * most.out.dtype.itemsize > KEPT_BYTES:
        return False
    return len(items) > FEW or not all(map(is_cheap, items))


def _of_found(items: Sequence[Item], refused: set[int]) -> set[int]:
    found: set[int] = set()
    for item in items:
        makers = (buffer.maker for buffer in item.reads if buffer.constant is None)
        if item.id not in refused and all(maker is not None and maker.id in found for maker in makers):
            found.add(item.id)
    return found


def _is_own(buffer: ArrayBuffer, found: set[int], bound: set[int]) -> bool:
    storage = buffer.storage
    inside = storage.maker is not None and storage.maker.id in found
    return inside and buffer.id not in bound and storage.id not in bound
