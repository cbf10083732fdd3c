"""Results in the memory of operands that are not needed afterwards.

A kernel that goes through its space once, element by element, can write a result over an operand: bias and activation
over a product, a gradient over the one that came in. So a loop touches one array less, and that is most of what an
exact operation on a large array costs. No bit depends on it: a kernel stores an element after all of its reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.dim import same
from common.spec import numel
from static.lowering.groups import Group
from static.lowering.items import Buffer, Item
from static.lowering.values import Work


def reuse_memory(work: Work, groups: Sequence[Group]) -> dict[int, list[tuple[Item, Item]]]:
    """Let results take over the memory of operands that end with them; outputs and state are never given away.

    Returns
    -------
    dict
        Id of a group -> pairs of items: the second one's result lies where the first one's did.
    """
    bound = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    last = {buffer.id: group for group in groups for buffer in group.reads}
    found: dict[int, list[tuple[Item, Item]]] = {}
    # From the last group to the first, so that a chain of results ends up in the memory of its last one.
    for group in reversed(groups):
        if any(item.kind not in ("map", "cols") for item in group.items):
            continue
        ending = [b for b in group.reads if b.maker is not None and b.id not in bound and last[b.id] is group]
        for item in group.items:
            stored = item.out.id in bound or item.out.id in last
            if not stored or item.kind != "map" or item.window or item.out.storage.position is not None:
                continue
            operand = next((b for b in ending if _fits(group, item, b)), None)
            if operand is not None and operand.maker is not None:
                ending.remove(operand)
                operand.into = item.out.storage
                found.setdefault(group.id, []).append((operand.maker, item))
    return found


def _fits(group: Group, item: Item, operand: Buffer) -> bool:
    """Whether the operand is as large as the result and the group reads no element of it but the one at hand."""
    count = len(group.dims)
    if not count or len(item.dims) != count or operand.storage is not operand or operand.dtype != item.out.dtype:
        return False
    if not same(numel(operand.shape), numel(item.out.shape)):
        return False
    reads = ((reader, access) for reader in group.items for access in reader.accesses if access.buffer is operand)
    return all(access.prefix == count == len(reader.dims) for reader, access in reads)


__all__ = ["reuse_memory"]
