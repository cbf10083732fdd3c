"""Groups that would raise the peak of memory above that of one kernel per node, in program order, are divided.

A kernel needs all of its operands and results at one time, and scratch memory; and it runs at one time, so that what it
makes early is kept for longer, as is what it reads late. Mostly fusion saves more than that, since what is made and
read in one kernel is stored nowhere. Where it does not, the groups that keep an array at the peak which in program
order is not there are divided at that place; else the group that runs there, where the least is stored between its
parts. A part of a group is a group: nothing depends on it that did not depend on the whole. Sizes are those of the
traced call.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import pairwise
from typing import TYPE_CHECKING

from static.lowering.groups import Group, single
from static.lowering.items import Item, sizes_key
from static.lowering.layout import lay_out
from static.lowering.peak import Peak
from static.lowering.program_order import in_program_order

if TYPE_CHECKING:
    from static.lowering.program import Program

SMALL = 1 << 16
"""Bytes for which no group is divided: they stay in the cache that is next to the processor, and a kernel more costs
as much as they do."""

ROUNDS, ITEMS = 12, 6_000
"""How often groups are divided and laid out again, at most; and of how many items in all, so that it stays linear."""


def keep_to_program_order(program: Program, groups: list[Group]) -> None:
    """Divide groups until a program takes no more memory than one kernel per node in program order."""
    rounds = min(ROUNDS, ITEMS // max(len(program.work.items), 1))
    used = lay_out(program, None).total if rounds else 0
    limit = SMALL if used <= SMALL else max(SMALL, in_program_order(program))
    for _ in range(rounds):
        cuts: dict[int, set[int]] = {}
        for group, at in Peak(program, limit).cuts() if used > limit else ():
            cuts.setdefault(group.id, set()).add(at)
        if not cuts:
            return
        reason = f"together they would raise the peak of memory from {limit} to {used} bytes"
        groups = [part for group in groups for part in _divided(group, cuts.get(group.id, set()), reason)]
        groups.sort(key=lambda group: group.id)
        program.arrange(groups)
        used = lay_out(program, None).total


def _divided(group: Group, cuts: Set[int], reason: str) -> Iterator[Group]:
    """The parts of a group between items."""
    if not cuts:
        yield group
        return
    bounds = [-1, *sorted(cuts), group.items[-1].id + 1]
    before: Group | None = None
    for low, high in pairwise(bounds):
        items = [item for item in group.items if low <= item.id < high]
        if not items:
            continue
        part = _part(group, items)
        part.why_not += group.why_not if before is None else [(items[0], before.items[-1], reason)]
        before = part
        yield part


def _part(group: Group, items: list[Item]) -> Group:
    """A group of some items of a group."""
    dims = max((item.dims for item in items), key=len)
    rows = any(item.split is not None or 0 < len(item.dims) < len(dims) for item in items)
    breaks = 0
    for item in items:
        breaks |= single(item).breaks
    return Group(items, dims, sizes_key(dims), group.split if rows else None, breaks)


__all__ = ["keep_to_program_order"]
