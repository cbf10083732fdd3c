"""Stages of a row program: the assignment of items to loops over the columns.

A reduction over a row needs a whole loop before its result can be used, so everything that depends on it runs in
a later loop. What two loops need is computed twice if that is cheap, else kept in memory for one row.
"""

from __future__ import annotations

from collections.abc import Container

from common.core.op import REGISTRY
from common.kernels.arrays.reducers import REDUCERS
from static.lowering.groups import Group
from static.lowering.ir.items import Access, Item

RECOMPUTED_ITEMS = 8
DEEP = 24
"""Operations of a chain that are computed by calls inside one another."""


def is_cheap(item: Item) -> bool:
    """Whether computing it again costs about as much as loading it."""
    op = REGISTRY.get(item.function)
    return not item.gathers and (op is None or not op.costly)  # moves and conversions are no ops of their own


class Stages:
    """The stages of a group.

    Attributes
    ----------
    of : item id -> stage of the loop that computes it first, or, for values of a row, before which it is known.
    saved : ids of items that are kept in memory from one loop to a later one.
    computed : (item id, stage) for each loop that computes an element's value instead of loading it.
    count : number of stages.
    """

    def __init__(self, group: Group, stored: set[int]) -> None:
        self.group, self.stored = group, stored
        self.own = {item.id: item for item in group.items}
        self.of: dict[int, int] = {}
        self.saved: set[int] = set()
        self.computed: set[tuple[int, int]] = set()
        for item in group.items:
            self.of[item.id] = self._stage(item)
        self.count = 1 + max(self.of.values())
        self._plan()

    def producers(self, item: Item) -> list[Item]:
        """The items of the group that it reads."""
        return [self.own[m.id] for a in item.accesses if (m := a.buffer.maker) is not None and m.id in self.own]

    def before(self, item: Item, stage: int, known: Container[int]) -> list[Item]:
        """What an item is computed of, and what that is, in the order of the group, without ids that are `known`."""
        found, waiting = set[int](), [item]
        while waiting:
            for producer in self.producers(waiting.pop()):
                computed = producer.kind in ("map", "lookup") and not self.in_memory(producer, stage)
                if computed and producer.id not in found and producer.id not in known:
                    found.add(producer.id)
                    waiting.append(producer)
        return [other for other in self.group.items if other.id in found]

    def is_full(self, item: Item) -> bool:
        """Whether it has a value per element of the space."""
        return item.kind == "map" and len(item.dims) == len(self.group.dims) > 0

    def _stage(self, item: Item) -> int:
        stage = max((self.of[p.id] for p in self.producers(item)), default=0)
        return stage + 1 if item.kind == "rows" else stage

    def sinks(self, stage: int) -> list[Item]:
        """Items of a stage's loop: stores, and operands of reductions."""
        return [i for i in self.group.items if self.happens(i) == stage and self._is_sink(i)]

    def happens(self, item: Item) -> int:
        """The stage in whose loop an item works."""
        return self.of[item.id] - (item.kind == "rows")

    def _is_sink(self, item: Item) -> bool:
        return item.kind in ("rows", "cols", "flat") or (self.is_full(item) and item.id in self.stored)

    def _plan(self) -> None:
        first: dict[int, int] = {}
        laid = self._laid()
        seen: set[tuple[int, int]] = set()

        def visit(target: Item, stage: int) -> None:
            waiting = [target]
            while waiting:
                item = waiting.pop()
                if (item.id, stage) in seen or not self.is_full(item):
                    continue
                seen.add((item.id, stage))
                if first.setdefault(item.id, stage) < stage:
                    if item.id in self.stored or item.id in self.saved:
                        continue
                    if item.id in laid or not is_cheap(item) or self._weight(item, 0) > RECOMPUTED_ITEMS:
                        self.saved.add(item.id)
                        continue
                self.computed.add((item.id, stage))
                waiting += reversed(self.producers(item))

        for stage in range(self.count):
            for item in self.sinks(stage):
                for target in [item] if item.kind == "map" else self.producers(item):
                    visit(target, stage)
        self.first = first

    def _laid(self) -> set[int]:
        """Ids of the items whose row is laid into memory anyway, for a reduction that takes no registers."""
        if not self.group.split:
            return set()  # the only row is reduced in blocks, and only a block is kept
        reductions = (i for i in self.group.items if i.kind == "rows" and not REDUCERS[i.function].registers)
        sources = ((x.buffer, item.operands[0].dtype) for item in reductions for x in item.accesses)
        return {b.maker.id for b, dtype in sources if b.maker is not None and b.dtype == dtype} & self.own.keys()

    def _weight(self, item: Item, total: int) -> int:
        """Items that computing it again takes; stops counting where there are too many."""
        total += 1
        for producer in self.producers(item):
            if total > RECOMPUTED_ITEMS:
                break
            if self.is_full(producer) and is_cheap(producer) and producer.id not in self.saved | self.stored:
                total = self._weight(producer, total)
        return total

    def in_memory(self, item: Item, stage: int) -> bool:
        """Whether a loop loads it instead of computing it."""
        kept = item.id in self.saved or item.id in self.stored
        return kept and self.first.get(item.id, stage) < stage


def source_item(access: Access, own: dict[int, Item]) -> Item | None:
    """The item of the group that makes what an access reads."""
    maker = access.buffer.maker
    return own.get(maker.id) if maker is not None else None
