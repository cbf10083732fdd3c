"""Kernels whose outermost loop can be cut into parts that do not depend on each other, for several threads.

Such a kernel takes the bounds of that loop as its last two arguments. Cutting it changes no bit: each element, each row
with the sums over it, and each column with the sums along it, is computed by one part, as it would be alone. Where
columns are summed beside results of whole rows, the lanes of the sums are cut
(`static.lowering.codegen.lane_columns`), and sums of whole arrays by their blocks (`static.lowering.threads.cut_sums`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from common.compiler.loop_ir import Call, Guarded, If, Kernel, Let, Loop, Place, Store
from common.core.numerics import BLOCK, LANES
from static.lowering.codegen.build import Built, build
from static.lowering.codegen.lane_columns import LaneColumns, LaneFold, fold
from static.lowering.groups import Group
from static.lowering.indexing.indexed_access import PLACES
from static.lowering.ir.items import Item
from static.lowering.ir.kernel_memory import Scratch
from static.lowering.threads.cut_sums import TOTALS, bound_in, over_blocks

UNIT = {"c": 1024, "c0": 64, "m0": 16}
"""Parts of a loop over elements, columns or tiles begin at multiples of this: no two write to one line of the cache."""


def build_cut(group: Group, escaping: set[int]) -> tuple[Built, list[LaneFold]]:
    """The kernel of a group, cut if it can be, and kernels that run after it: they finish what no part can."""
    built = build(group, escaping)
    puts = [item for item in group.items if item.puts and built.nest.row_varying(item.accesses[-1])]
    if puts:
        return _cut_places(group, escaping, puts) or built, []
    columns = [item for item in group.items if item.kind == "cols"]
    if (
        columns
        and len(built.nest.rows) == 1
        and not any(isinstance(s, Loop) and s.var == "c0" for s in built.kernel.body)
    ):
        return _cut_lanes(group, escaping, columns) or (built, [])
    return _cut_loop(built)


def _cut_lanes(group: Group, escaping: set[int], items: list[Item]) -> tuple[Built, list[LaneFold]] | None:
    built = build(group, escaping, LaneColumns)
    *head, loop = built.kernel.body
    if not all(isinstance(s, Let) for s in head) or not _is_independent(built, head, loop):
        return None
    nest = built.nest
    first = len(nest.ints)
    bounds = [Let(LaneColumns.low, f"n{first}"), Let(LaneColumns.high, f"n{first + 1}")]
    (rows,), columns = nest.rows, nest.inner
    nest.ints += [0, (rows + BLOCK - 1) // BLOCK * LANES]
    # LaneColumns has asked for the accumulators of its items in order, before anything else
    folds = [fold(item, lanes, rows, columns) for item, lanes in zip(items, nest.bound)]
    return Built(Kernel(built.kernel.buffers, first + 2, [*bounds, *head, loop]), nest, built.head, "lane"), folds


def _cut_places(group: Group, escaping: set[int], puts: list[Item]) -> Built | None:
    """The kernel whose parts compute rows for different places, each of which gets them in their order."""
    built = build(group, escaping, divided=puts[0])
    *head, loop = built.kernel.body
    if len(puts) > 1 or not all(isinstance(s, Let) for s in head) or not _is_independent(built, head, loop):
        return None
    nest, first = built.nest, len(built.nest.ints)
    bounds = [Let("low", f"n{first}"), Let("high", f"n{first + 1}")]
    nest.ints += [0, PLACES]
    return Built(Kernel(nest.dtypes, first + 2, [*bounds, *head, loop]), nest, built.head, "place")


def _cut_loop(built: Built) -> tuple[Built, list[LaneFold]]:
    """The kernel with the bounds of its outermost loop as arguments; the kernel itself if it cannot be cut.

    What is done after the loop, and single values that are stored before it, such as the count of an optimiser's steps,
    which each part reads, is left to a second kernel.
    """
    found = over_blocks(built) or _around_loop(built)
    if found is None:
        return built, []
    (head, loop, tail), nest = found, built.nest
    lets = [s for s in head if isinstance(s, Let)]
    if not _is_independent(built, lets, loop):
        return built, []
    after = []
    if tail or len(lets) < len(head):
        after.append(_second(built, [*head, *tail]))
    first = len(nest.ints)
    whole = [*lets, _between(loop, first)]
    nest.ints += [0, nest.rows[0] if loop.var in ("r0", "m0") else nest.inner]
    return Built(Kernel(nest.dtypes, first + 2, whole, nest.long), nest, built.head, loop.var), after


def _between(loop: Loop, first: int) -> Loop:
    """A loop whose bounds are the arguments from `first` on."""
    low, high, inside = f"n{first}", f"n{first + 1}", loop.body
    if loop.var in ("c0", "m0"):  # the last tile of a part ends with it
        inside = [Let(inside[0].name, re.sub(r"n\d+", high, str(inside[0].value))), *inside[1:]]
    return Loop(loop.var, high, inside, low, loop.step)


def _second(built: Built, body: list[Any]) -> LaneFold:
    """The kernel of the remaining items; cut if it ends with a loop, before which it stores nothing but in lists."""
    nest = built.nest
    *head, last = body
    first, ints, cut = len(nest.ints), list(nest.ints), ""
    if isinstance(last, Loop) and last.var == "c" and all(isinstance(s, (Let, If)) for s in head):
        if _is_independent(built, head, last):
            body, ints, cut = [*head, _between(last, first)], [*ints, 0, nest.inner], "c"
    return LaneFold(Kernel(nest.dtypes, len(ints), body), bound_in(nest.bound, _buffers(body)), ints, cut)


def _around_loop(built: Built) -> tuple[list[Any], Loop, list[Any]] | None:
    """Statements before the loop that a kernel ends with, that loop, and nothing."""
    body = [s for s in built.kernel.body if not isinstance(s, Loop) or s.body]
    if not body or not isinstance(body[-1], Loop) or not all(isinstance(s, (Let, Store)) for s in body[:-1]):
        return None
    return (body[:-1], body[-1], []) if body[-1].var in ("r0", *UNIT) else None


def _buffers(body: list[Any]) -> set[str]:
    """The buffers that statements name."""
    return {thing.buffer if isinstance(thing, Place) else thing for thing in _things(body)}


def _is_independent(built: Built, head: list[Any], loop: Loop) -> bool:
    """Whether no part reads what another one writes: memory that is overwritten is read where it is written only."""
    reads = {id(buffer.storage) for buffer in built.nest.group.reads}
    stored = {s.place.buffer for s in _statements(loop.body) if isinstance(s, Store)}
    overwritten = {b for b in stored if id(built.nest.bound[int(b[1:])]) in reads}
    overwritten = {b for b in overwritten if not isinstance(built.nest.bound[int(b[1:])], Scratch)}
    places: dict[str, set[Place]] = {b: set() for b in overwritten}
    for thing in _things([*head, loop]):
        if isinstance(thing, Place) and thing.buffer in places:
            places[thing.buffer].add(thing)
        elif thing in overwritten:  # a function that reads more than a row
            return False
    before = {thing.buffer for thing in _things(head) if isinstance(thing, Place)}
    return all(len(found) == 1 for found in places.values()) and not before & overwritten


def _statements(body: list[Any]) -> Iterator[Any]:
    for s in body:
        yield s
        if isinstance(s, (Loop, If)):
            yield from _statements(s.body)


def _things(body: list[Any]) -> Iterator[Any]:
    """Places, names and texts in statements."""
    for s in _statements(body):
        waiting = [getattr(s, name) for name in ("value", "place", "call") if hasattr(s, name)]
        while waiting:
            thing = waiting.pop()
            if isinstance(thing, Call) and thing.function in TOTALS:  # reads a row, all elements of which lie there
                buffer, base, count = thing.arguments
                yield Place(buffer, base.removeprefix("0"), "c")
                waiting.append(count)
            elif isinstance(thing, Call):
                waiting += thing.arguments
            elif isinstance(thing, Guarded):
                waiting += thing.place, thing.outside
            else:
                yield thing
