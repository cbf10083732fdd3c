"""Sums over rows whose elements a loop computes: added up as they come, in the lanes that S has.

S adds element i of a block to lane i mod LANES (`common.core.numerics`). A loop over columns that says so is written
with vectors, and its accumulators are registers (`common.compiler.vectors`). So nothing that is summed has to be
stored, and all sums of a stage take one pass over the row::

    for i in range(k1):
        c = k0 + i
        ...
        lanes[i & 15] = add(lanes[i & 15], t7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Constant, If, Let, Loop, Place, Store
from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.codegen.loop_nest import Nest
from static.lowering.ir.items import Item

_SHIFT = BLOCK.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Lanes:
    """The accumulators of one sum.

    Attributes
    ----------
    lanes : name of the buffer of LANES accumulators.
    parts : name of the buffer of the sums of blocks; empty if a row is one block.
    """

    dtype: np.dtype[Any]
    lanes: str
    parts: str

    def add(self, value: Any) -> Store:
        """The statement that takes in element i of a block."""
        place = Place(self.lanes, f"i & {LANES - 1}")
        return Store(place, Call(SUM.join, (place, value)))

    def total(self, size: str, name: str) -> list[Any]:
        """The statements that name the sum, after the loops."""
        if not self.parts:
            return [Let(name, self.folded, self.dtype)]
        blocks = Call(SUM.row, (self.parts, "0", f"({size} + {BLOCK - 1}) >> {_SHIFT}"))
        return [Let(name, Place(self.parts, "0")), If(f"{size} > {BLOCK}", [Let(name, blocks)])]

    @property
    def folded(self) -> Call:
        """The sum of a block."""
        return Call("fold_lanes", (self.lanes, "0"))


def make_lanes(nest: Nest, dtype: np.dtype[Any]) -> Lanes:
    """Accumulators for one sum over the inner dimension."""
    lanes = nest.slot(nest.scratch(dtype, LANES))
    assert nest.inner is not None
    parts = "" if _is_one_block(nest) else nest.slot(nest.scratch(dtype, nest.inner // BLOCK + 1))
    return Lanes(dtype, lanes, parts)


def lane_loops(nest: Nest, body: list[Any], sums: Sequence[Lanes]) -> list[Any]:
    """The loops over the columns of a row; `body` names the column c and adds to `sums`."""
    size = nest.size(nest.inner)
    start = Loop("j", str(LANES), [Store(Place(one.lanes, "", "j"), Constant(0, one.dtype)) for one in sums])
    if _is_one_block(nest):
        return [start, Loop("i", size, [Let("c", "i"), *body])]
    none = [Store(Place(one.parts, "0"), Constant(0, one.dtype)) for one in sums]
    keep = [Store(Place(one.parts, f"(k0 >> {_SHIFT})"), one.folded) for one in sums]
    columns = Loop("i", "k1", [Let("c", "k0 + i"), *body])
    block = [Let("k1", f"min({BLOCK}, {size} - k0)"), start, columns, *keep]
    return [*none, Loop("k0", size, block, step=str(BLOCK))]


def in_blocks(
    nest: Nest, columns: Loop, waiting: Sequence[tuple[Item, str, Place]]
) -> tuple[Loop, list[tuple[Item, Call]]]:
    """The only row in blocks, so that its elements stay in the cache, and the calls that reduce the lists of results.

    Parameters
    ----------
    columns : the loop over a block, from k0 to k1.
    waiting : items, the functions that reduce a row for them, and where the row is laid.
    """
    size = nest.size(nest.inner)
    assert nest.inner is not None
    blocks = (nest.inner + BLOCK - 1) // BLOCK
    body: list[Any] = [Let("k1", f"min(k0 + {BLOCK}, {size})"), Let("km", "0 - k0"), columns]
    totals = []
    for item, reducer, place in waiting:
        part = nest.slot(nest.scratch(item.dtype, blocks))
        base = {"": "k0", "km": "0"}.get(place.base, f"{place.base} + k0")
        body.append(Store(Place(part, f"(k0 >> {_SHIFT})"), Call(reducer, (place.buffer, base, "k1 - k0"))))
        parts = part, "0", f"(({size} + {BLOCK - 1}) >> {_SHIFT})"
        totals.append((item, Call(REDUCERS[item.function].row, parts)))
    return Loop("k0", size, body, step=str(BLOCK)), totals


def _is_one_block(nest: Nest) -> bool:
    return type(nest.inner) is int and nest.inner <= BLOCK


__all__ = ["Lanes", "in_blocks", "lane_loops", "make_lanes"]
