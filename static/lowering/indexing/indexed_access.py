"""How a loop reads and writes at indices that are data: one element of a row, or a row of a table.

A kernel has checked those of rows before, see `static.lowering.indexing.by_index`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.loop_ir import Call, Constant, If, Loop, Place, Return, Store
from common.core.numerics import LANES
from common.kernels.arrays.coordinates import status_of
from static.lowering.codegen.loop_nest import Nest
from static.lowering.codegen.row_stages import Stages
from static.lowering.groups import Group
from static.lowering.ir.items import Access, Item, Operand, is_literal

PLACES = 64
"""Rows that are written at indices are divided among threads by their places: place i belongs to the i mod 64th part,
and to those from `low` to `high`, the last two arguments, those that one call computes."""


def failing(items: list[Item]) -> list[Item]:
    """The items of a kernel that may end it, once per index: the k-th of them has the kernel's k-th index."""
    return [item for item in items if item.calls for _ in range(1 + (len(item.at.further) if item.at else 0))]


class Indexed:
    """The part of the builder of kernels that reads at indices."""

    group: Group
    nest: Nest
    rows: list[Any]
    row_values: dict[Any, Any]
    values: dict[Any, Any]
    column: str
    stages: Stages
    now: int
    safe: set[int]

    if TYPE_CHECKING:  # the builder's

        def operand(self, operand: Operand, stage: int, loop: list[Any]) -> Any:
            """The name or constant of an operand, in the consumer's dtype."""

        def let(self, value: Any, body: list[Any], dtype: np.dtype[Any] | None = None) -> str:
            """The name of a value."""

    def pick(self, item: Item, stage: int) -> Any:
        """One element of a row: whatever it depends on is computed for this column only."""
        index = self.checked(item, stage)
        values, self.values, self.column = self.values, {}, index
        value = self.operand(item.operands[0], stage, self.rows)
        self.values, self.column = values, "c"
        return value

    def checked(self, item: Item, stage: int) -> str:
        """The name of the index of a `pick` or `spread`, checked: this loop may compute it."""
        name, size = self.operand(item.operands[1], stage, self.rows), self.nest.size(self.nest.inner)
        if ("checked", name, size) not in self.row_values:
            self.row_values["checked", name, size] = name
            status = status_of(f"to_int64({name})", failing(self.group.items).index(item))
            self.rows.append(If(f"{name} < 0 or {name} >= {size}", [Return(status)]))
        return name

    def take(self, item: Item, body: list[Any]) -> str:
        """An element of the row at an index, or the element at one."""
        table = item.operands[0].source
        assert isinstance(table, Access)
        if item.calls:
            self.check_all(item)
        place = self.at_index(item, self.nest.place(table, self.rows, self.column), body)
        if place not in self.values:
            self.values[place] = self.let(place, body)
        return self.values[place]

    def store(self, item: Item, value: Any, rows: list[Any], column: str) -> Store:
        """The statement that stores a result, or joins it with the row at an index; bases are added to `rows`."""
        place = self.nest.own_place(item, rows, column)
        if item.at is None or not item.puts:
            return Store(place, value)
        place = self.at_index(item, place, self.rows)
        return Store(place, Call(item.at.join, (place, value)) if item.at.join else value)

    def at_index(self, item: Item, place: Place, loop: list[Any]) -> Place:
        """The same place of the row at an index; if the index varies in it, found in the loop over columns."""
        assert item.at is not None
        terms = [place.base] if place.base else []
        for which, (_, step) in enumerate(_dimensions(item)):
            index = self.row_index(item, loop, which)
            terms.append(index if is_literal(step, 1) else f"{index} * {self.nest.size(step)}")
        return Place(place.buffer, self.named(item, " + ".join(terms), loop), place.var, place.step)

    def row_index(self, item: Item, loop: list[Any], which: int = 0) -> str:
        """The name of an index, from the beginning."""
        assert item.at is not None
        index = self.operand(item.operands[1 + which], self.now, loop)
        if not item.at.wrap:
            return str(index)
        extent = self.nest.size(_dimensions(item)[which][0])
        return self.named(item, f"{index} + {extent} if {index} < 0 else {index}", loop)

    def check_all(self, item: Item) -> None:
        """Check the indices of a row before the loop that takes elements there.

        One loop computes all indices that the loops of a stage need, and nothing else; the later loop computes them
        again. Indices that depend on what is taken come after the check of that.
        """
        if item.id in self.safe:
            return
        items = [item]
        if not self._follows_taken(item):
            alike = [i for i in self.group.items if i.calls and i.function == "take" and i.id not in self.safe]
            items = [i for i in alike if self.stages.of[i.id] == self.now and not self._follows_taken(i)]
        known, column = self.values, self.column
        self.values, self.column = {}, "k"
        body: list[Any] = []
        signs, wrong = dict[str, None](), list[If]()
        lanes = self.nest.slot(self.nest.scratch(np.dtype(np.int64), LANES))
        for one in items:
            for which, (extent, _) in enumerate(_dimensions(one)):
                index, size = self.operand(one.operands[1 + which], self.now, body), self.nest.size(extent)
                low = f"0 - {size}" if one.at is not None and one.at.wrap else "0"
                sign = f"{index} - ({low}) | {size} - 1 - {index}"
                if sign in signs:
                    continue
                signs[sign] = None
                status = status_of(str(index), failing(self.group.items).index(one) + which)
                outside = f"w == {len(wrong)} and ({index} < {low} or {index} >= {size})"
                wrong.append(If(outside, [Return(status)]))
        self.values, self.column = known, column
        count, own = self.nest.size(self.nest.inner), Place(lanes, f"k & {LANES - 1}")
        found = " | ".join(f"{lanes}[{j}]" for j in range(LANES))
        self.rows += [
            Loop("j", str(LANES), [Store(Place(lanes, "", "j"), Constant(0, np.dtype(np.int64)))]),
            Loop("k", count, [*body, Store(own, " | ".join([str(own), *signs]))]),
            If(f"{found} < 0", [Loop("w", str(len(wrong)), [Loop("k", count, [*body, *wrong])])]),
        ]
        self.safe |= {one.id for one in items}

    def _follows_taken(self, item: Item) -> bool:
        """Whether an index depends on elements that the same kernel takes."""
        waiting, seen = self.stages.producers(item), set[int]()
        while waiting:
            producer = waiting.pop()
            if producer.calls:
                return True
            if producer.id not in seen:
                seen.add(producer.id)
                waiting += self.stages.producers(producer)
        return False

    def named(self, item: Item, text: str, loop: list[Any]) -> str:
        """The name of an int that varies like the index of an item."""
        if text.isidentifier():
            return text
        varies = isinstance(index := item.operands[1].source, Access) and self.nest.column_varying(index)
        names, body = (self.values, loop) if varies else (self.row_values, self.rows)
        if ("int", text) not in names:
            names["int", text] = self.let(text, body)
        return str(names["int", text])


def _dimensions(item: Item) -> list[tuple[Any, Any]]:
    """Extents and strides of the dimensions that the indices of an item are of."""
    assert item.at is not None
    return [(item.at.extent, item.at.step), *item.at.further]


__all__ = ["PLACES", "Indexed", "failing"]
