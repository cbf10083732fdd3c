"""Cheap values of large arrays are computed again by the kernels that read them, instead of being stored for them.

In a z-score, one kernel sums the columns of ``(x - m) ** 2``, and a later one divides x - m by what follows from the
sums. If the first one stored x - m, it would be written once and read again. So the later one subtracts again: it reads
x in place of the difference, and nothing is written. Arithmetic is strict, so computing again changes no bit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from common.core.sizes import hint
from common.core.spec import numel
from common.runtime.call_text import MAX_BUFFERS
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.fusion.fuse import MAX_ARRAYS, MAX_ITEMS
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item, Operand, breaks_within
from static.lowering.ir.program_values import Work

MOST_ITEMS = 3
"""Cheap operations that are done again rather than storing what they make."""
WORTHWHILE = 1 << 18
"""Bytes of an array from which on it is not in the nearest cache when it is read again."""
BROADCAST = 8
"""An operand of so many times fewer elements than the space counts as nothing: it stays in the cache."""
FEWEST_COLUMNS = 32
"""Elements of a row from which on a loop over rows takes little longer than one over everything."""


def repeat_cheap(work: Work, groups: list[Group]) -> list[Group]:
    """Groups that compute again what they would read, where that saves memory traffic; `work` has their items."""
    return _Repeater(work, groups).run()


class _Cone(NamedTuple):
    """What it takes to compute a value again: items in program order, and what they read."""

    items: list[Item]
    leaves: list[Access]


class _Repeater:
    def __init__(self, work: Work, groups: list[Group]) -> None:
        self.work, self.groups = work, groups
        self.group_of = {item.id: group for group in groups for item in group.items}
        self.users = defaultdict(list, work.users())
        self.bound = {b.id for b, _ in work.outputs} | {value.id for _, value in work.writes}
        self.changing = {state.id for state, _ in work.writes} | {begin.id for begin, _ in work.carried}
        self.ahead: dict[int, list[Item]] = {}
        self.count = len(work.items)

    def use(self, item: Item) -> None:
        for buffer in dict.fromkeys(item.reads):
            self.users[buffer.id].append(item)

    def run(self) -> list[Group]:
        for item in reversed(self.work.items):
            if self.is_candidate(item):
                self.repeat(item)
        if not self.ahead:
            return self.groups
        self.renumber()
        return sorted((group for group in self.groups if group.items), key=lambda group: group.id)

    def is_candidate(self, item: Item) -> bool:
        """Whether an item makes a large array that a kernel stores for other kernels only."""
        if item.kind != "map" or not is_cheap(item) or item.out.id in self.bound or item.id in self.work.kept:
            return False
        return hint(numel(item.dims)) * item.out.dtype.itemsize >= WORTHWHILE

    def repeat(self, item: Item) -> None:
        """Compute an item's value in each group that reads it, if that pays in all of them."""
        own = self.group_of[item.id]
        users = [user for user in self.users[item.out.id] if self.group_of[user.id] is not own]
        if not users or not all(_reads_in_order(user, item) for user in users):
            return
        readers = list(dict.fromkeys(self.group_of[user.id] for user in users))
        cone = self.cone(item, own)
        if cone is None or not all(self.pays(group, item, cone) for group in readers):
            return
        for group in readers:
            self.add(group, item, cone, [user for user in users if self.group_of[user.id] is group])
        self.drop(item)

    def cone(self, item: Item, own: Group) -> _Cone | None:
        """The cheap items behind a value that its group does not store; None if there is anything else."""
        found: dict[int, Item] = {}
        leaves: list[Access] = []
        waiting = [item]
        while waiting:
            now = waiting.pop()
            if now.id in found:
                continue
            if len(found) == MOST_ITEMS or not _is_plain(now, own):
                return None
            found[now.id] = now
            for access in now.accesses:
                maker = access.buffer.maker
                if maker is None or self.group_of[maker.id] is not own or self.is_stored(maker, own):
                    leaves.append(access)
                else:
                    waiting.append(maker)
        if any(access.buffer.id in self.changing for access in leaves):
            return None
        return _Cone([found[i] for i in sorted(found)], leaves)

    def is_stored(self, maker: Item, own: Group) -> bool:
        """Whether a group stores what an item of it makes."""
        outside = any(self.group_of[user.id] is not own for user in self.users[maker.out.id])
        return outside or maker.out.id in self.bound

    def pays(self, group: Group, item: Item, cone: _Cone) -> bool:
        """Whether a group reads no more when it computes a value again, and can do so in its loops."""
        own = self.group_of[item.id]
        if group.native or group.name != own.name or len(group.items) + len(cone.items) > MAX_ITEMS:
            return False
        reads = {buffer.id for buffer in group.reads}
        new = {a.buffer.id: a.buffer for a in cone.leaves if a.buffer.id not in reads}
        elements = hint(numel(group.dims))
        if sum(BROADCAST * hint(numel(buffer.shape)) > elements for buffer in new.values()) > 1:
            return False
        reductions = sum(i.kind != "map" for i in group.items)
        kept = sum(not is_cheap(i) for i in group.items) + len(group.items) if reductions else 0
        arrays = len(reads) + len(new) + sum(self.is_stored(i, group) for i in group.items)
        if arrays > MAX_ARRAYS or arrays + 2 * reductions + kept > MAX_BUFFERS:
            return False
        breaks = group.breaks
        for access in cone.leaves:
            breaks |= access.breaks
        if breaks != group.breaks and hint(group.dims[-1]) < FEWEST_COLUMNS:
            return False
        leads = [i.lead for i in group.items if i.kind == "cols"]
        split = len(group.dims) if group.split is None else group.split
        return not breaks >> split and not any(breaks_within(breaks, lead, split) for lead in leads)

    def add(self, group: Group, item: Item, cone: _Cone, users: list[Item]) -> None:
        """Compute an item's value again in a group, for some of its items."""
        made: dict[int, ArrayBuffer] = {}
        first = min(group.items.index(user) for user in users)
        copies = [self.copy(one, made) for one in cone.items]
        self.ahead.setdefault(group.items[first].id, []).extend(copies)
        for copied in copies:
            self.group_of[copied.id] = group
            for access in copied.accesses:
                group.breaks |= access.breaks
            self.use(copied)
        for user in users:
            self.users[item.out.id].remove(user)
            _redirect(user, made)
            self.users[made[item.out.id].id].append(user)
        group.items[first:first] = copies

    def copy(self, item: Item, made: dict[int, ArrayBuffer]) -> Item:
        """The same item with a result of its own; `made`: results of those before it."""
        out = ArrayBuffer(len(self.work.buffers), item.out.dtype, item.out.shape)
        self.work.buffers.append(out)
        copied = Item(self.count, item.node, item.kind, item.dims, item.function, item.dtype, item.operands, [out])
        self.count += 1
        _redirect(copied, made)
        made[item.out.id] = out
        out.maker = copied
        return copied

    def drop(self, item: Item) -> None:
        """Forget an item that nobody reads any more, and what was made for it."""
        if self.users[item.out.id] or item.out.id in self.bound:
            return
        self.group_of[item.id].items.remove(item)
        for buffer in dict.fromkeys(item.reads):
            self.users[buffer.id].remove(item)
            if buffer.maker is not None and buffer.maker.kind == "map":
                self.drop(buffer.maker)

    def renumber(self) -> None:
        """Put copies ahead of their first users, in the program's order."""
        ordered: list[Item] = []

        def put(item: Item) -> None:
            for copied in self.ahead.get(item.id, ()):
                put(copied)
            if item in self.group_of[item.id].items:
                ordered.append(item)

        for item in self.work.items:
            put(item)
        kept = {item.id for item in self.work.items if item.id in self.work.kept}
        self.work.kept = {i for i, item in enumerate(ordered) if item.id in kept}
        for i, item in enumerate(ordered):
            item.id = i
        self.work.items = ordered
        for group in self.groups:
            group.items.sort(key=lambda item: item.id)


def _is_plain(item: Item, own: Group) -> bool:
    """Whether an item is an elementwise function over the whole space, all operands of which are read evenly."""
    full = item.kind == "map" and len(item.dims) == len(own.dims)
    alone = item.at is None and item.window is None and not item.calls and not item.after and is_cheap(item)
    return full and alone and not any(access.in_pieces for access in item.accesses)


def _reads_in_order(user: Item, item: Item) -> bool:
    """Whether a reader takes one element after the other of what an item makes."""
    if user.kind not in ("map", "rows", "cols") or user.at is not None or user.inputs:
        return False
    return all(a.prefix == len(item.dims) == len(user.dims) for a in user.accesses if a.buffer is item.out)


def _redirect(item: Item, made: dict[int, ArrayBuffer]) -> None:
    """Let an item read what copies make."""

    def moved(operand: Operand) -> Operand:
        source = operand.source
        if not isinstance(source, Access) or source.buffer.id not in made:
            return operand
        access = Access(made[source.buffer.id], source.offset, source.strides, source.breaks, source.prefix)
        return Operand(access, operand.dtype)

    item.operands = [moved(operand) for operand in item.operands]
    item.collect()


__all__ = ["repeat_cheap"]
