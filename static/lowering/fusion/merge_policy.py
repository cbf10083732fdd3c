"""When items are computed: refuses merges across other kernels that would keep more arrays than they save.

*Later.* A result that is read much later, and whose operands are kept until then anyway, is computed then.

A rule reads what the forward pass made: ``g * (1 - y * y)``. Its part ``1 - y * y`` could be computed by the kernel
that makes y, as the two read the same array. But if y is needed later in any case, by a product for instance, that
kernel would store two arrays where one is enough; so such items join the later kernel.

*In its place.* A value that a backward pass computes again reads arrays that the forward pass has read, too. One kernel
for both would run before all readers of the first result, so the value would be computed again at the very beginning.

*Now.* A sum of gradients that come one by one, ``(g1 + g2) + g3``, could be one kernel at the end, but then all of them
would be kept until then. What ends two arrays and makes one is not put off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.groups import Group
from static.lowering.ir.items import ArrayBuffer, Item

SMALL = 4096
"""Elements of arrays that may as well be kept: a kernel more costs as much as they do."""

NEAR = 4
"""Kernels by which one may be put off for another."""

NEEDED_LATER = "it is needed later only, and what it is made of is kept until then"
NEEDED_BEFORE = "what it makes is needed before the other one can run"
ENDS_NOW = "what it reads would be kept for longer"


class MergePolicy:
    """Tells which merges would store more than they save.

    Parameters
    ----------
    items : of the program.
    escapes : whether something outside of a set of items needs a buffer.
    """

    def __init__(self, items: Sequence[Item], escapes: Callable[[ArrayBuffer, set[int]], bool]) -> None:
        self._escapes = escapes
        self._users: dict[int, list[int]] = {}
        for item in items:
            for buffer in item.reads:
                self._users.setdefault(buffer.id, []).append(item.id)
        apart = (item.kind == "native" and not item.prepares and bool(item.calls or item.own) for item in items)
        self._kernels = [0, *accumulate(apart)]

    def obstacle(self, one: Group, two: Group) -> str:
        """Why two groups, the first one earlier, should not be computed at one time; empty if they may be."""
        start, end = one.items[-1].id, two.items[0].id
        if start > end or self._kernels[start] == self._kernels[end]:
            return ""
        waits = max((b.maker.id for b in two.reads if b.maker is not None), default=-1)
        if waits <= start:
            return self._needed_later(one, two)
        return NEEDED_BEFORE if self._needed_before(one, two, waits) else self._ends_now(one, two)

    def _needed_before(self, one: Group, two: Group, waits: int) -> bool:
        """Whether kernels long before the item that a group waits for need what another one makes."""
        if hint(numel(one.dims)) < SMALL:
            return False
        own = {item.id for item in (*one.items, *two.items)}
        users = (user for item in one.items for b in item.results for user in self._users.get(b.id, ()))
        return any(user not in own and self._kernels[waits] - self._kernels[user] > NEAR for user in users)

    def _ends_now(self, one: Group, two: Group) -> str:
        """The reason why a group does not wait for another group's operands."""
        own, first = {item.id for item in (*one.items, *two.items)}, {item.id for item in one.items}
        read = {a.buffer.id: a.buffer for item in one.items for a in item.accesses if a.prefix == len(one.dims)}
        ending = [b for b in read.values() if b.maker is not None and b.maker.id not in first]
        ending = [b for b in ending if not self._escapes(b, own)]
        if hint(numel(one.dims)) < SMALL:
            return ""
        made = [item for item in one.items if _is_full(item, one) and self._escapes(item.out, first)]
        return ENDS_NOW if len(ending) > max(len(made), 1) else ""

    def _needed_later(self, one: Group, two: Group) -> str:
        """The reason why a group is not computed as early as another one."""
        own, second = {item.id for item in (*one.items, *two.items)}, {item.id for item in two.items}
        if not any(_is_full(item, two) and self._escapes(item.out, own) for item in two.items):
            return ""
        made = {item.id for item in one.items}
        # what has one element per row or for all does not count
        read = [a for item in two.items for a in item.accesses if a.prefix is None or a.prefix == len(two.dims)]
        outside = [b for access in read if (b := access.buffer).maker is None or b.maker.id not in second]
        kept = all(b.maker is None or b.maker.id not in made or self._escapes(b, own) for b in outside)
        return NEEDED_LATER if outside and kept else ""


def _is_full(item: Item, group: Group) -> bool:
    return item.kind == "map" and len(item.dims) == len(group.dims) > 0


__all__ = ["MergePolicy"]
