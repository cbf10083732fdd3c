"""What is in memory where a program takes the most, and where groups would have to be divided for it to be less."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from static.lowering.arena import aligned
from static.lowering.groups import Group
from static.lowering.layout import lay_out
from static.lowering.program_order import nbytes

if TYPE_CHECKING:
    from static.lowering.program import Program

PAIRS = 1 << 17
"""Of steps at the peak and buffers: how many are looked at in each round."""


class Peak:
    """What is in memory where a program takes the most."""

    def __init__(self, program: Program, limit: int) -> None:
        self.program, self.limit = program, limit
        self.group_of = {item.id: group for group in program.groups for item in group.items}
        self.spans: dict[int, tuple[int, int]] = {}
        for i, step in enumerate(program.steps):
            for group in step.groups:
                self.spans[group.id] = self.spans.get(group.id, (i, i))[0], i
        before = 0
        for group in program.groups:  # what only gives parts a place has no step
            before = self.spans.setdefault(group.id, (before, before))[1]
        self.readers: dict[int, list[Group]] = {}
        for group in program.groups:
            for buffer in group.reads:
                self.readers.setdefault(buffer.id, []).append(group)
        given = {b.id for b, _ in program.work.outputs} | {value.id for _, value in program.work.writes}
        made = (b for b in program.work.buffers if b.maker is not None and b.maker.id in self.group_of)
        self.buffers = [b for b in made if b.id in self.readers and b.id not in given]

    def cuts(self) -> list[tuple[Group, int]]:
        """Groups, and items at which to divide them: for what is above the limit, or else for what comes next."""
        usage = self._usage()
        steps = sorted(range(len(usage)), key=usage.__getitem__, reverse=True)
        found: list[tuple[Group, int]] = []
        seen: set[int] = set()
        for step in steps[: max(PAIRS // len(self.program.work.buffers), 1)]:
            if found and usage[step] <= self.limit:
                break
            for group in self.program.steps[step].groups:
                if group.id not in seen:
                    seen.add(group.id)
                    found += self._at(step, group)
        return found

    def _usage(self) -> list[int]:
        """Bytes that are needed at each step."""
        changes = [0] * (len(self.program.steps) + 1)
        for temporary, size in zip(self.program.frame.temporaries, lay_out(self.program, None).nbytes, strict=True):
            changes[temporary.first] += aligned(size)
            changes[temporary.last + 1] -= aligned(size)
        return list(accumulate(changes[:-1]))

    def _at(self, step: int, here: Group) -> Iterator[tuple[Group, int]]:
        """The same for one step, and its group."""
        first, last = here.items[0].id, here.items[-1].id
        found = [(group, at) for group, at in self._strangers(step, first, last) if _is_inside(group, at)]
        if found:
            yield from found
        elif len(here.items) > 1:
            yield here, self._middle(here)
        else:
            yield from ((group, first) for group in self.program.groups if _is_inside(group, first))

    def _strangers(self, step: int, first: int, last: int) -> Iterator[tuple[Group, int]]:
        """Who keeps what in program order is not there while items first..last run: made later, or over before."""
        for buffer in self.buffers:
            assert buffer.maker is not None
            maker, readers = self.group_of[buffer.maker.id], self.readers[buffer.id]
            later = [group for group in readers if self.spans[group.id][1] >= step]
            if not later or self.spans[maker.id][0] > step:
                continue
            if buffer.maker.id > last:
                yield maker, last + 1
            elif all(item.id < first for group in readers for item in group.items if buffer in item.reads):
                yield from ((group, first) for group in later)

    def _middle(self, group: Group) -> int:
        """The item, not far from the middle, before which the least would have to be kept."""
        items = group.items
        count = len(items)
        last = {b.id: i for i, item in enumerate(items) for b in item.reads}
        changes = [0] * (count + 1)
        for i, item in enumerate(items):
            if item.out.id in last and item.out.id not in self.program.escaping:
                changes[i + 1] += nbytes(item.out)
                changes[last[item.out.id] + 1] -= nbytes(item.out)
        kept = list(accumulate(changes))
        middle = range(max(1, count // 4), max(2, count - count // 4))
        return items[min(middle, key=lambda i: (kept[i], abs(2 * i - count)))].id


def _is_inside(group: Group, at: int) -> bool:
    """Whether a group has items before and behind a place."""
    return group.items[0].id < at <= group.items[-1].id


__all__ = ["Peak"]
