"""Results in the memory of operands that are not needed afterwards.

A kernel can write a result over an operand: bias and activation over a product, a gradient over the one that came in.
So a loop touches one array less, and that is most of what an exact operation on a large array costs. No bit depends on
it: an element is stored after the last read of the element that lay there, in a loop after all reads, and in a kernel
that goes through a row several times in a stage in which, or behind which, nothing reads the operand. Rows do not read
each other. In the body of a loop a value that is handed on, such as the sum of a weight's gradients, lies where it came
in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from common.core.lazy import cached_property
from common.core.sizes import hint, same
from common.core.spec import numel
from static.lowering.codegen.row_stages import Stages
from static.lowering.fusion.library_kernels import known_sum
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item
from static.lowering.ir.program_values import Work

HANDED_ON = 1 << 16
"""Bytes of an array from which on a loop hands it on in one place: two smaller ones lie in the nearest caches, where
loads that overlap with the last stores would wait."""


def reuse_memory(work: Work, groups: Sequence[Group], escaping: Set[int]) -> dict[int, list[tuple[Item, Item]]]:
    """Let results take over the memory of operands that end with them; outputs and state are never given away.

    Parameters
    ----------
    escaping : ids of the buffers that something outside of the group that makes them reads.

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
        if group.native:
            continue
        _hand_on(work, group, last, escaping)
        ending = [b for b in group.reads if b.maker is not None and b.id not in bound and last[b.id] is group]
        if group.id not in work.kept:
            ending = [b for b in ending if b.maker is None or b.maker.id not in work.kept]
        again = group.read_again
        ending = [b for b in ending if b.storage is b and b.id not in again and _at_hand(group, b)]
        if not ending:
            continue
        order = _Order(group, escaping)
        for item in sorted(group.items, key=order.stored):
            if item.out.id not in escaping or not _is_whole(group, item):
                continue
            operand = next((b for b in ending if _fits(b, item.out) and order.read(b) <= order.stored(item)), None)
            if operand is not None and operand.maker is not None:
                ending.remove(operand)
                operand.into = item.out.storage
                found.setdefault(group.id, []).append((operand.maker, item))
    return found


def _hand_on(work: Work, group: Group, last: Mapping[int, Group], escaping: Set[int]) -> None:
    """Let what the next iteration of a loop gets lie in the memory of what this one got, which ends with the group."""
    for begin, end in work.carried:
        if hint(numel(begin.shape)) * begin.dtype.itemsize < HANDED_ON:
            continue
        item = end.maker
        if item is None or item not in group.items or end.storage is not end or last.get(begin.id) is not group:
            continue
        if not (_fits(begin, end) and _is_whole(group, item)) or begin.id in group.read_again:
            continue
        order = _Order(group, escaping)
        if _at_hand(group, begin) and order.read(begin) <= order.stored(item):
            end.into = begin


def _at_hand(group: Group, operand: ArrayBuffer) -> bool:
    """Whether a group reads no element of an operand but that at the place of which it computes the results."""
    count = len(group.dims)
    reads = ((reader, access) for reader in group.items for access in reader.accesses if access.buffer is operand)
    return count > 0 and all(access.prefix == count == len(reader.dims) for reader, access in reads)


def _is_whole(group: Group, item: Item) -> bool:
    """Whether a result has one element per place, in memory of its own."""
    whole = item.kind == "map" and len(item.dims) == len(group.dims) != group.split
    return whole and item.window is None and item.out.storage.position is None


def _fits(operand: ArrayBuffer, result: ArrayBuffer) -> bool:
    return operand.dtype == result.dtype and same(numel(operand.shape), numel(result.shape))


class _Order:
    """When a kernel reads and stores the elements of a row: 2 s in the loop of stage s, 2 s + 1 behind it."""

    def __init__(self, group: Group, escaping: Set[int]) -> None:
        self.group, self.escaping = group, escaping

    @cached_property
    def stages(self) -> Stages | None:
        """The stages, if there may be more than one."""
        if all(item.kind in ("map", "cols", "flat") for item in self.group.items):
            return None
        return Stages(self.group, {i.id for i in self.group.items if i.out.id in self.escaping})

    def stored(self, item: Item) -> int:
        """When the elements of a result are stored."""
        return 0 if self.stages is None else 2 * self.stages.of[item.id]

    def read(self, operand: ArrayBuffer) -> int:
        """When the elements of an operand are read for the last time."""
        return 0 if self.stages is None else self._last.get(operand.id, 0)

    @cached_property
    def _last(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for when, operand in self._reads():
            last[operand.id] = max(when, last.get(operand.id, 0))
        return last

    def _reads(self) -> Iterator[tuple[int, ArrayBuffer]]:
        stages = self.stages
        assert stages is not None
        for item in self.group.items:
            computed = [2 * stage for stage in range(stages.count) if (item.id, stage) in stages.computed]
            if item.kind in ("cols", "flat"):
                computed = [2 * stages.happens(item)]
            elif item.kind == "rows":  # maybe by a function that takes the whole row
                computed = [2 * stages.happens(item) + 1]
                known = known_sum(item.operands[0])
                if known is not None and isinstance(known[1].source, Access):
                    yield computed[0], known[1].source.buffer
            elif item.kind != "map":  # a pick computes one element with all that it is made of, before the loop
                yield from ((2 * stages.of[item.id], access.buffer) for access in _made_of(item, stages))
            yield from ((when, access.buffer) for access in item.accesses for when in computed)


def _made_of(item: Item, stages: Stages) -> Iterator[Access]:
    """Operands of one element of a row."""
    stage, waiting, seen = stages.of[item.id], [item], {item.id}
    while waiting:
        item = waiting.pop()
        yield from item.accesses
        more = {p.id: p for p in stages.producers(item) if stages.is_full(p) and not stages.in_memory(p, stage)}
        waiting += [p for number, p in more.items() if number not in seen]
        seen |= more.keys()


__all__ = ["reuse_memory"]
