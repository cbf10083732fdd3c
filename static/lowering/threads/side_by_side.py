"""Kernels that do not depend on each other, side by side: for threads, which take one each.

A product of a few hundred rows is one tile, which one thread computes. But a backward pass has two of them wherever the
forward pass has one: the gradient of the operand and that of the weight. Products, and loops that are cut, that wait
for nothing in between are moved up beside a product, and are a *set*; a plan decides by sizes whether threads run the
steps of a set at the same time (`static.lowering.threads.sharing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from static.lowering.ir.items import ArrayBuffer

if TYPE_CHECKING:
    from static.lowering.ir.step import Step

WINDOW = 48
"""How many of the next steps are looked at."""
MOST = 16
"""Steps of a set: what is moved up lives longer."""


class Touched(NamedTuple):
    """Memory that steps use.

    Attributes
    ----------
    reads, writes : identities of memory.
    writes_state, fails : whether they change what outlives the program; whether they can end it.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    writes_state: bool
    fails: bool

    def before(self, other: Touched) -> bool:
        """Whether the order of these and other steps matters."""
        order = self.writes & (other.reads | other.writes) or self.reads & other.writes
        return bool(order) or (self.writes_state and other.fails) or (self.fails and other.writes_state)

    def __or__(self, other: Touched) -> Touched:
        return Touched(
            self.reads | other.reads,
            self.writes | other.writes,
            self.writes_state or other.writes_state,
            self.fails or other.fails,
        )


def side_by_side(steps: Sequence[Step]) -> list[Step]:
    """The steps in an order that keeps all results, those of one set next to each other; marks the sets."""
    touched = [_touched(step) for step in steps]
    waiting, out, sets = list(range(len(steps))), list[int](), 0
    while waiting:
        before, members = _set(steps, touched, waiting)
        if len(members) > 1:
            sets += 1
            for i in members:
                steps[i].beside = sets
        out += [*before, *members]
        done = {*before, *members}
        waiting = [i for i in waiting if i not in done]
    return [steps[i] for i in out]


def _set(steps: Sequence[Step], touched: Sequence[Touched], waiting: Sequence[int]) -> tuple[list[int], list[int]]:
    """The first step with those that may run beside it, and what has to run before them."""
    first = waiting[0]
    if steps[first].name != "gemm":
        return [], [first]
    window = list(takewhile(lambda i: steps[i].source, waiting[1:WINDOW]))
    members, free = _free([first], window, [], lambda i: steps[i].name == "gemm", touched)
    before = _needed(free, members, touched)
    members, free = _free(members, window, before, lambda i: bool(steps[i].cut), touched)
    return _needed(free, members, touched), sorted(members)


def _free(
    members: Sequence[int],
    window: Sequence[int],
    before: Sequence[int],
    joins: Callable[[int], bool],
    touched: Sequence[Touched],
) -> tuple[list[int], list[int]]:
    """A set with what may and can join it, and the other steps that do not wait for it."""
    joined, free, used = list(members), list[int](), touched[members[0]]
    for i in window:
        if i in before:
            free.append(i)
        elif i in members:
            used |= touched[i]
        elif used.before(touched[i]):
            used |= touched[i]  # what waits for it waits for the set
        elif joins(i) and len(joined) < MOST:
            joined.append(i)
            used |= touched[i]
        else:
            free.append(i)
    return joined, free


def _needed(free: Sequence[int], members: Sequence[int], touched: Sequence[Touched]) -> list[int]:
    """Steps that have to run before others, which later steps wait for."""
    needed, found = list(members[1:]), list[int]()
    for i in reversed(free):
        if any(i < j and touched[i].before(touched[j]) for j in needed):
            needed.append(i)
            found.insert(0, i)
    return found


def _touched(step: Step) -> Touched:
    results = {id(b.storage) for group in step.groups for item in group.items for b in item.results}
    names = {id(thing.storage) if isinstance(thing, ArrayBuffer) else id(thing) for thing in step.things}
    results |= {id(thing) for thing in step.things if not isinstance(thing, ArrayBuffer)}
    names |= {id(b.storage) for group in step.groups for item in group.items for b in item.after}
    buffers = [thing.storage for thing in step.things if isinstance(thing, ArrayBuffer)]
    state = any(b.position is not None and id(b) in results for b in buffers)
    return Touched(frozenset(names - results), frozenset(results), state, len(step.errors) > 1)
