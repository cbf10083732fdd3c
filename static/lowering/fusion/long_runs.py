"""Long runs of elementwise items in which much is computed of a few arrays: small matrices that are written out.

Merging pair by pair stops where a kernel would have too many arrays for the moment. Of products of 4 x 4 matrices every
element of the one between two of them is an array, until all that need it are in the same kernel. So such a run is
looked at as a whole first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from static.lowering.ir.items import Item, sizes_key

FEWEST = 32
"""Items from which on merging pair by pair may stop too early."""
MOST = 1600
"""Items of a kernel: the time to compile grows with them."""
EACH = 6
"""Items for each array that a kernel reads or writes, from which on storing what lies between would take longer."""
FAR = 16
"""Times as many arrays as a kernel may have, from which on a run is not followed."""

Edge = Callable[[Item, set[int]], bool]


def long_runs(
    items: Sequence[Item], users: dict[int, list[Item]], bound: set[int], most_arrays: int, fits: Edge
) -> Iterator[list[Item]]:
    """Runs of items over one space, next to each other in the program, that are one kernel.

    Parameters
    ----------
    users : readers of buffers, by ids.
    bound : ids of buffers that are needed after the program.
    fits : whether an item can share a loop with items, of which it may read results.
    """
    run: list[Item] = []
    for item in [*items, None]:
        if item is not None and _is_simple(item) and (not run or _same_space(run[0], item)):
            run.append(item)
            continue
        yield from _cut(run, users, bound, most_arrays, fits)
        run = [item] if item is not None and _is_simple(item) else []


def _is_simple(item: Item) -> bool:
    return item.kind == "map" and item.at is None and not item.calls and not item.gathers and bool(item.dims)


def _same_space(one: Item, two: Item) -> bool:
    return sizes_key(one.dims) == sizes_key(two.dims)


def _cut(
    run: list[Item], users: dict[int, list[Item]], bound: set[int], most_arrays: int, fits: Edge
) -> Iterator[list[Item]]:
    """The longest parts of a run, from its first item on, that need few arrays."""
    while len(run) >= FEWEST:
        own, outside, waiting, best = set[int](), set[int](), dict[int, int](), 0
        for count, item in enumerate(run[:MOST], 1):
            if not fits(item, own):
                break
            own.add(item.id)
            for buffer in {x.id: x for x in item.reads}.values():
                if buffer.id in waiting:
                    waiting[buffer.id] -= 1
                    if not waiting[buffer.id]:
                        del waiting[buffer.id]
                elif buffer.maker is None or buffer.maker.id not in own:
                    outside.add(buffer.id)
            for buffer in item.results:
                readers = len({user.id for user in users.get(buffer.id, ())}) + (buffer.id in bound)
                if readers:
                    waiting[buffer.id] = readers
            arrays = len(outside) + len(waiting)
            if arrays <= min(most_arrays, count // EACH):
                best = count
            elif arrays > FAR * most_arrays:
                break
        if best >= FEWEST:
            yield run[:best]
        run = run[max(best, FEWEST) :]


__all__ = ["long_runs"]
