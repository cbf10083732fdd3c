"""Sums of everything that a loop over rows makes: blocks of the sum are added up while they lie in the nearest cache.

S of an array is S of the list of S of its blocks (`common.core.numerics`), whatever rows the array has. So rows are
laid behind each other in a short piece of memory, and whenever there are some blocks, their sums go to the list::

    for r0 in range(n1):
        for c in range(n0):
            ...
            b3[filled + c] = t5
        filled = filled + n0
        if filled >= 4096:
            ...
"""

from __future__ import annotations

from typing import Any

from common.compiler.loop_ir import Call, If, Let, Loop, Place, Store
from common.core.numerics import BLOCK
from common.kernels.arrays.reducers import SUM
from static.lowering.codegen.loop_nest import Nest
from static.lowering.ir.items import Item

FLAT = "flat"
"""The kind of the items: S of each block of all elements, in their order."""
GATHERED = 4 * BLOCK
"""Elements that are laid behind each other before blocks are added up."""

_SHIFT = BLOCK.bit_length() - 1


class FlatSums:
    """The lists of sums of blocks that one kernel makes."""

    def __init__(self, nest: Nest, items: list[Item]) -> None:
        self.nest, self.items = nest, items
        longest: Any = nest.inner
        self.rings = {item.id: nest.slot(nest.scratch(item.dtype, GATHERED + longest)) for item in items}

    def start(self) -> list[Any]:
        """Statements before the first row."""
        return [Let("filled", "0"), Let("done", "0")] if self.items else []

    def add(self, item: Item, value: Any) -> Store:
        """The statement that lays an element of a row down."""
        return Store(Place(self.rings[item.id], "filled", "c"), value)

    def row(self) -> list[Any]:
        """Statements after a row."""
        if not self.items:
            return []
        moved = [
            Store(Place(ring, "", "j"), Place(ring, f"filled - (filled & {BLOCK - 1})", "j"))
            for ring in self.rings.values()
        ]
        flush = [
            *self._sums(f"filled >> {_SHIFT}", str(BLOCK)),
            Let("done", f"done + (filled >> {_SHIFT})"),
            Loop("j", f"filled & {BLOCK - 1}", moved),
            Let("filled", f"filled & {BLOCK - 1}"),
        ]
        return [Let("filled", f"filled + {self.nest.size(self.nest.inner)}"), If(f"filled >= {GATHERED}", flush)]

    def finish(self) -> list[Any]:
        """Statements after the last row."""
        if not self.items:
            return []
        return self._sums(f"(filled + {BLOCK - 1}) >> {_SHIFT}", f"min({BLOCK}, filled - k * {BLOCK})")

    def _sums(self, count: str, length: str) -> list[Any]:
        sums = [
            Store(Place(self.nest.slot(item.out), "done", "k"), Call(SUM.row, (ring, f"k * {BLOCK}", length)))
            for item, ring in zip(self.items, self.rings.values(), strict=True)
        ]
        return [Loop("k", count, sums)]


__all__ = ["FLAT", "FlatSums"]
