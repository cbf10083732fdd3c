"""Sums over rows whose elements a loop computes: added up as they come, in the lanes that S has.

S adds element i of a block to lane i mod LANES (`common.numerics`). A loop of LANES iterations inside the loop over
columns says so, and becomes one vector operation; its accumulators stay in a register. So nothing that is summed has to
be stored, and all sums of a stage take one pass over the row::

    for k in range(0, n & -16, 16):
        for j in range(16):
            c = k + j
            ...
            lanes[j] = add(lanes[j], t7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.numerics import BLOCK, LANES
from static.loopir import Call, Constant, If, Let, Loop, Place, Store
from static.lowering.nest import Nest

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
        """The statement that takes in the element of column c."""
        place = Place(self.lanes, "", "j")
        return Store(place, Call("add", (place, value)))

    def total(self, size: str, name: str) -> list[Any]:
        """The statements that name the sum, after the loops."""
        if not self.parts:
            return [Let(name, self.folded)]
        blocks = Call("block_sum", (self.parts, "0", f"({size} + {BLOCK - 1}) >> {_SHIFT}"))
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
    zeros = [Store(Place(one.lanes, "", "j"), Constant(0, one.dtype)) for one in sums]
    start = Loop("j", str(LANES), zeros)
    if _is_one_block(nest):
        whole = Let("k2", f"{size} & -{LANES}")
        return [start, whole, *_columns("0", body), *([] if _is_even(nest) else [_rest(size, body)])]
    none = [Store(Place(one.parts, "0"), Constant(0, one.dtype)) for one in sums]
    keep = [Store(Place(one.parts, f"(k0 >> {_SHIFT})"), one.folded) for one in sums]
    block = [Let("k1", f"min(k0 + {BLOCK}, {size})"), Let("k2", f"k1 & -{LANES}"), start]
    return [*none, Loop("k0", size, [*block, *_columns("k0", body), _rest("k1", body), *keep], step=str(BLOCK))]


def _columns(first: str, body: list[Any]) -> list[Any]:
    return [Loop("k", "k2", [Loop("j", str(LANES), [Let("c", "k + j"), *body])], first, str(LANES))]


def _rest(end: str, body: list[Any]) -> Loop:
    return Loop("j", f"{end} - k2", [Let("c", "k2 + j"), *body])


def _is_one_block(nest: Nest) -> bool:
    return type(nest.inner) is int and nest.inner <= BLOCK


def _is_even(nest: Nest) -> bool:
    return type(nest.inner) is int and nest.inner % LANES == 0


__all__ = ["Lanes", "lane_loops", "make_lanes"]
