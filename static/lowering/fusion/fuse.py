"""Kernels as groups of items: greedy merging along edges, checked for order, shape and size.

1. In program order, an item joins the groups of its producers: over the same space, or as values of a row where
   a reduction has fixed what a row is.
2. Values of rows, and numbers, that only one group uses join that group.
3. Groups that read the same array over the same space join, so that it is read once.

Nothing is recomputed by that and nothing is reassociated, so merging never changes a bit; it only decides
how often memory is walked through. Every refusal is kept with its reason for ``explain()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

from common.compiler.close_steps import CLOSE, NEAR
from common.core.sizes import hint
from common.core.spec import numel
from common.runtime.call_text import MAX_BUFFERS
from static.lowering.codegen.row_stages import RECOMPUTED_ITEMS, is_cheap
from static.lowering.codegen.short_rows import MOST_ITEMS, are_short, at_rows
from static.lowering.fusion.common_space import align
from static.lowering.fusion.long_runs import long_runs
from static.lowering.fusion.merge_policy import MergePolicy
from static.lowering.fusion.rows_at_indices import short_obstacle
from static.lowering.fusion.size_only import KEPT, is_worth_keeping
from static.lowering.groups import Group, single
from static.lowering.ir.items import Access, ArrayBuffer, Item, Sizes, breaks_within
from static.lowering.ir.program_values import Work

MAX_ITEMS = 96
"""Elementwise operations per kernel: registers run out, but what overflows stays in the nearest cache."""
MAX_ARRAYS = 20
"""Arrays per kernel: beyond that the processor's prefetchers lose track."""

SEARCHED = 128
"""Groups that are looked at to tell whether two may be one."""

DIFFERENT_SIZES = "they run over different sizes"

_by_id = attrgetter("id")
_NOBODY: set[int] = set()


def fuse_items(work: Work, parallel: bool = False) -> list[Group]:
    """Groups of items, in program order of their first items, whose loops threads share if `parallel`."""
    return _Fuser(work, parallel).run()


class _Fuser:
    def __init__(self, work: Work, parallel: bool) -> None:
        self.work, self.parallel = work, parallel
        self.groups: dict[int, Group] = {item.id: single(item) for item in work.items}
        self.slot_of = [item.id for item in work.items]
        self.floor = _Floor(len(work.items))
        self.users = work.users()
        self.readers = {buffer: {user.id for user in users} for buffer, users in self.users.items()}
        self.bound = {b.id for b, _ in work.outputs} | {value.id for _, value in work.writes}
        self.state = {value.id for _, value in work.writes}
        self.later = MergePolicy(work.items, self.escapes)
        self.makers = {item.id: {b.maker.id for b in item.reads if b.maker is not None} for item in work.items}
        self.tallies = {item.id: _Tally.of(item) for item in work.items}
        self.members = {item.id: {item.id} for item in work.items}
        self.near = {item.id: {buffer.id for buffer in (*item.results, *item.reads)} for item in work.items}
        self.alone: set[int] = set()

    def run(self) -> list[Group]:
        for run in long_runs(self.work.items, self.users, self.bound, MAX_ARRAYS, self.fits):
            self.join(run)
        for item in self.work.items:
            for producer in self.producers(item):
                self.try_merge(self.slot_of[producer.id], self.slot_of[item.id], item, producer, False)
        for item in reversed(self.work.items):
            self.join_only_user(item)
        for buffer, users in self.users.items():
            self.join_siblings(buffer, users)
        for item in reversed(self.work.items):
            self.join_only_user(item)
        return sorted(self.groups.values(), key=lambda group: group.id)

    def fits(self, item: Item, own: set[int]) -> bool:
        """Whether an item can share a loop with others, whose results it may read."""
        return item.id not in self.work.kept and not any(_edge_obstacle(access, own) for access in item.accesses)

    def join(self, items: list[Item]) -> int:
        """Make one group of items, and return its slot."""
        if len(items) == 1:
            return self.slot_of[items[0].id]
        half = len(items) // 2
        slot, other = self.join(items[:half]), self.join(items[half:])
        self.merge(slot, other)
        return slot

    def producers(self, item: Item) -> list[Item]:
        """The makers of what an item reads, latest first."""
        makers = {b.maker.id: b.maker for b in item.reads if b.maker is not None and not b.maker.prepares}
        return [makers[i] for i in sorted(makers, reverse=True)]

    def join_only_user(self, item: Item) -> None:
        """Join the one group that uses a value of a row, or a number."""
        own, only = self.slot_of[item.id], None
        group = self.groups[own]
        if own in self.alone or group.native or item.out.id in self.bound:
            return
        for user in (user for i in group.items for user in self.users.get(i.out.id, ())):
            slot = self.slot_of[user.id]
            if slot == own or (only is not None and slot == self.slot_of[only.id]):
                continue
            if only is not None or len(self.groups[slot].dims) <= len(group.dims):
                self.alone.add(own)  # its other items would find the same
                return
            only = user
        if only is not None:
            self.try_merge(own, self.slot_of[only.id], only, item, True)
        else:
            self.alone.add(own)

    def join_siblings(self, buffer: int, users: list[Item]) -> None:
        """Join groups that read one array element by element over the same space, or columns of it."""
        full = [i for i in users if i.kind != "native" and any(_is_sibling(a, i, buffer) for a in i.accesses)]
        for first, second in pairwise(full):
            a, b = self.slot_of[first.id], self.slot_of[second.id]
            if a != b and self.groups[a].name == self.groups[b].name:
                self.try_merge(min(a, b), max(a, b), second, first, True)

    # ---------------------------------------------------------------- merging
    def try_merge(self, a: int, b: int, here: Item, there: Item, late: bool) -> None:
        """Merge two groups if that is possible; `here` and `there` are the items that asked for it."""
        if a == b:
            return
        one, two = self.groups[a], self.groups[b]
        reason = self.obstacle(a, b, late) or self.later.obstacle(one, two) or self.cycle(a, b)
        if reason:
            two.why_not.append((here, there, reason))
            return
        self.merge(a, b)

    def obstacle(self, a: int, b: int, late: bool) -> str:
        """Why two groups cannot be one kernel; empty if they can."""
        one, two = self.groups[a], self.groups[b]
        if one.native or two.native:
            return next(filter(None, (x.items[0].apart for x in (one, two))), "one of them is a kernel of its own")
        tally = self.tallies[a] | self.tallies[b]
        space = _united(one, two, tally, late)
        if space == DIFFERENT_SIZES and align(one, two):
            space = _united(one, two, tally, late)
        if isinstance(space, str):
            return space
        dims, _, split = space
        columns = hint(numel(dims[split:])) if split else 0
        if (
            split
            and tally.maps * columns > MOST_ITEMS
            and (columns <= CLOSE or not tally.columns)
            and _is_short(dims, split)
        ):
            return "rows of a few elements are written out, and these would be too long"
        if tally.short and (reason := short_obstacle(one, two, dims, split or 0)):
            return reason
        if tally.columns and tally.rows and columns > CLOSE and _is_short(dims, split or 0):
            return "rows of a few elements are turned, and columns are not reduced while they are"
        if tally.maps > MAX_ITEMS:
            return f"more than {MAX_ITEMS} elementwise operations"
        kept = [group.items for key, group in ((a, one), (b, two)) if self.members[key] <= self.work.kept]
        if len(kept) == 1 and (is_worth_keeping(kept[0]) or self.kept_beside(kept[0], a, b)):
            return KEPT
        if self.parallel and tally.puts and tally.puts + len(tally.columns) > 1:
            return "threads can share loops that write at indices of one kind"
        if tally.gathers and tally.costly > tally.gathers:
            return "elements at indices are loaded faster where nothing costly is computed in between"
        if tally.checks and not self.state.isdisjoint(self.near[a] | self.near[b]):
            return "state is written once indices are known to be right"
        near = self.near[a] | self.near[b]
        arrays = len(near)
        if arrays > MAX_ARRAYS or arrays + tally.most_scratch > MAX_BUFFERS:
            arrays = len(self.arrays(near, self.members[a] | self.members[b]))
            if arrays > MAX_ARRAYS:
                return f"more than {MAX_ARRAYS} arrays"
            if arrays + tally.most_scratch > MAX_BUFFERS:
                return "too much is kept between the loops over a row"
        for consumers, makers in ((b, a), (a, b)):
            own = self.members[makers]
            if not self.makers[consumers].isdisjoint(own):
                for item in self.groups[consumers].items:
                    for access in item.accesses:
                        reason = _edge_obstacle(access, own)
                        if reason:
                            return reason
        return ""

    def kept_beside(self, items: list[Item], a: int, b: int) -> bool:
        """Whether other groups that plans keep need what these items make."""
        users = (self.slot_of[user.id] for i in items for made in i.results for user in self.users.get(made.id, ()))
        return any(slot not in (a, b) and self.members[slot] <= self.work.kept for slot in users)

    def arrays(self, near: set[int], own: set[int]) -> set[int]:
        """Buffers that a kernel of some items would read or write, among those that their groups did."""
        found = set()
        for number in near:
            buffer = self.work.buffers[number]
            if buffer.maker is None or buffer.maker.id not in own or self.escapes(buffer, own):
                found.add(number)
        return found

    def escapes(self, buffer: ArrayBuffer, own: set[int]) -> bool:
        """Whether something outside reads what a group makes."""
        return buffer.id in self.bound or not self.readers.get(buffer.id, _NOBODY) <= own

    def cycle(self, a: int, b: int) -> str:
        """Whether a path from one group to the other runs through a third."""
        if self.leads(a, b) or self.leads(b, a):
            return "a result of the one is needed in between, by another kernel"
        return ""

    def leads(self, start: int, end: int) -> bool:
        """Whether a path of at least two edges leads from one group to another.

        The search goes back from `end`, no further than to items that can depend on `start`, so it stays short: most
        merges are between neighbours. A group that stretches across the first item of `start` may lead to earlier
        items; `floor` says how far back such groups reach. Where it takes long there nearly always is a path, so it is
        given up with that answer: what fusing takes is linear in the size of the program.
        """
        lowest = self.groups[start].items[0].id
        if all(self.slot_of[i] == start for i in self.makers[end]):
            return False
        while (lower := self.floor.at(lowest)) < lowest:
            lowest = lower
        if self.groups[end].items[-1].id < lowest:
            return False
        seen = {start, end}
        waiting = [end]
        while waiting:
            if len(seen) > SEARCHED:
                return True
            slot = waiting.pop()
            for maker in self.makers[slot]:
                previous = self.slot_of[maker]
                if previous == start and slot != end:
                    return True
                if previous not in seen and self.groups[previous].items[-1].id > lowest:
                    seen.add(previous)
                    waiting.append(previous)
        return False

    def merge(self, a: int, b: int) -> None:
        one, two = self.groups[a], self.groups.pop(b)
        tally = self.tallies[a] | self.tallies.pop(b)
        space = _united(one, two, tally, True)
        assert not isinstance(space, str)
        items = sorted(one.items + two.items, key=_by_id)
        self.groups[a] = merged = Group(items, *space, one.breaks | two.breaks, one.why_not + two.why_not)
        self.tallies[a] = tally
        self.members[a] |= self.members.pop(b)
        self.near[a] |= self.near.pop(b)
        if len(self.near[a]) > MAX_ARRAYS:
            self.near[a] = self.arrays(self.near[a], self.members[a])
        self.alone.clear()
        self.floor.stretch(merged.items[0].id, merged.items[-1].id)
        for item in two.items:
            self.slot_of[item.id] = a
        self.makers[a] = (self.makers[a] | self.makers.pop(b)) - self.members[a]


class _Floor:
    """Per item the first item of all groups that stretch across it: a tree over runs of items."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.lowest = [count] * (2 * count)

    def stretch(self, first: int, last: int) -> None:
        """Note a group from item `first` to item `last`."""
        left, right = self.count + first + 1, self.count + last + 1
        while left < right:
            if left & 1:
                self.lowest[left] = min(self.lowest[left], first)
                left += 1
            if right & 1:
                right -= 1
                self.lowest[right] = min(self.lowest[right], first)
            left, right = left >> 1, right >> 1

    def at(self, item: int) -> int:
        """The first item of the groups across `item`, itself if there are none."""
        lowest, place, known = item, self.count + item, self.lowest
        while place:
            if known[place] < lowest:
                lowest = known[place]
            place >>= 1
        return lowest


@dataclass(slots=True)
class _Tally:
    """Counts of a group, by which two groups can be compared without going through their items.

    Attributes
    ----------
    count : of its items.
    columns : the reductions of columns.
    puts, gathers : how many write at indices, and how many read elements there.
    maps, costly : how many are elementwise, and how many of these cost more than a load.
    checks : how many check indices that they may compute.
    short : how many read or write rows of a few elements at indices.
    """

    count: int
    columns: tuple[Item, ...]
    puts: int
    gathers: int
    maps: int
    costly: int
    checks: int
    short: int

    @staticmethod
    def of(item: Item) -> _Tally:
        """That of one item."""
        is_map = item.kind == "map"
        checks = item.gathers and bool(item.calls)
        gathers, costly = item.gathers and not checks, is_map and not is_cheap(item) and not checks
        return _Tally(1, (item,) * (item.kind == "cols"), item.puts, gathers, is_map, costly, checks, at_rows(item))

    def __or__(self, other: _Tally) -> _Tally:
        maps, costly = self.maps + other.maps, self.costly + other.costly
        columns, puts, gathers = self.columns + other.columns, self.puts + other.puts, self.gathers + other.gathers
        checks = self.checks + other.checks
        short = self.short + other.short
        return _Tally(self.count + other.count, columns, puts, gathers, maps, costly, checks, short)

    @property
    def rows(self) -> int:
        """How many reduce rows, or take one element of each."""
        return self.count - self.maps - len(self.columns)

    @property
    def most_scratch(self) -> int:
        """An upper bound of the temporaries that the kernel keeps: see `static.lowering.codegen.row_stages` for what
        they are.
        """
        reductions = self.count - self.maps
        return 2 * reductions + (self.costly + self.count // RECOMPUTED_ITEMS if reductions else 0)


def _united(one: Group, two: Group, tally: _Tally, late: bool) -> tuple[Sizes, tuple[Any, ...], int | None] | str:
    """The space of two groups and which of its dimensions are rows, or why there is none."""
    small, large = (one, two) if len(one.dims) <= len(two.dims) else (two, one)
    count = len(small.dims)
    if small.name != large.name[:count]:
        return DIFFERENT_SIZES
    split = large.split
    if count == len(large.dims):
        if None not in (one.split, two.split) and one.split != two.split:
            return "they reduce different dimensions"
        split = one.split if two.split is None else two.split
    elif count and (small.split is not None or (split is None and not late)):
        return "the one is a row of the other, and no reduction makes it one"
    elif not count and not late and split != 0:
        return "a number may have other users"
    elif count and split is None:
        split = count
    elif count and split != count:
        return "their rows have different sizes"
    if split is not None:
        breaks = one.breaks | two.breaks
        if breaks >> split:
            return "an operand does not run through a row evenly"
        leads = {item.lead for item in tally.columns}
        if len(leads) > 1:
            return "they reduce different dimensions"
        if any(breaks_within(breaks, lead, split) for lead in leads):
            return "an operand does not run through the rows evenly"
    return large.dims, large.name, split


def _is_short(dims: Sizes, split: int) -> bool:
    return are_short(hint(numel(dims[split:])), hint(numel(dims[:split])))


def _is_sibling(access: Access, item: Item, buffer: int) -> bool:
    """Whether an access reads an array as its siblings do: element by element, or one of a few columns."""
    beside = access.buffer.id == buffer and bool(access.strides) and 2 <= hint(access.strides[-1]) <= NEAR
    return beside or access.prefix == len(item.dims)


def _edge_obstacle(access: Access, makers: set[int]) -> str:
    maker = access.buffer.maker
    if maker is None or maker.id not in makers:
        return ""
    if maker.kind == "cols":
        return "a sum of columns is complete only at the end"
    if maker.puts:
        return "a result that is written at indices is complete only at the end"
    if access.prefix != maker.level:
        return "the one needs elements of the other in another order"
    return ""
