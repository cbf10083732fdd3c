"""How a loop reads and writes at indices that are data: one element of a row, or a row of a table.

A kernel has checked those of rows before, see `static.lowering.indexing.by_index`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.loop_ir import Call, If, Place, Return, Store
from common.kernels.arrays.coordinates import status_of
from static.lowering.codegen.loop_nest import Nest
from static.lowering.groups import Group
from static.lowering.ir.items import Access, Item, Operand, is_literal

PLACES = 64
"""Rows that are written at indices are divided among threads by their places: place i belongs to the i mod 64th part,
and to those from `low` to `high`, the last two arguments, those that one call computes."""


def failing(items: list[Item]) -> list[Item]:
    """The items of a kernel that may end it: the index of the k-th of them is the kernel's k-th index."""
    return [item for item in items if item.calls]


class Indexed:
    """The part of the builder of kernels that reads at indices."""

    group: Group
    nest: Nest
    rows: list[Any]
    row_values: dict[Any, Any]
    values: dict[Any, Any]
    column: str

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
        index = self.row_index(item, loop)
        step = "" if is_literal(item.at.step, 1) else f" * {self.nest.size(item.at.step)}"
        base = " + ".join(filter(None, (place.base, f"{index}{step}")))
        return Place(place.buffer, self.named(item, base, loop), place.var, place.step)

    def row_index(self, item: Item, loop: list[Any]) -> str:
        """The name of an index, from the beginning."""
        assert item.at is not None
        index = self.operand(item.operands[1], 0, loop)
        if not item.at.wrap:
            return str(index)
        return self.named(item, f"{index} + {self.nest.size(item.at.extent)} if {index} < 0 else {index}", loop)

    def named(self, item: Item, text: str, loop: list[Any]) -> str:
        """The name of an int that varies like the index of an item."""
        if text.isidentifier():
            return text
        varies = isinstance(index := item.operands[1].source, Access) and self.nest.column_varying(index)
        names, body = (self.values, loop) if varies else (self.row_values, self.rows)
        if ("int", text) not in names:
            names["int", text] = self.let(text, body)
        return str(names["int", text])


__all__ = ["PLACES", "Indexed", "failing"]
