"""How a loop reads and writes at indices that are data: one element of a row, or a row of a table.

A kernel has checked those of rows before, see `static.lowering.by_index`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from static.loopir import Call, If, Place, Return, Store
from static.lowering.groups import Group
from static.lowering.items import Access, Item, Operand
from static.lowering.nest import Nest

PLACES = 64
"""Rows that are written at indices are divided among threads by their places: place i belongs to the i mod 64th part,
and to those from `low` to `high`, the last two arguments, those that one call computes."""


def failing(items: list[Item]) -> list[Item]:
    """The items of a kernel that may end it; the status of the k-th of them is k + 1."""
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
            status = 1 + failing(self.group.items).index(item)
            self.rows.append(If(f"{name} < 0 or {name} >= {size}", [Return(status)]))
        return name

    def take(self, item: Item, body: list[Any]) -> str:
        """An element of the row at an index, which is one per row of the space."""
        table = item.operands[0].source
        assert isinstance(table, Access)
        place = self.at_index(item, self.nest.place(table, self.rows, self.column))
        if place not in self.values:
            self.values[place] = self.let(place, body)
        return self.values[place]

    def store(self, item: Item, value: Any, rows: list[Any], column: str) -> Store:
        """The statement that stores a result, or joins it with the row at an index; bases are added to `rows`."""
        place = self.nest.own_place(item, rows, column)
        if item.at is None or not item.puts:
            return Store(place, value)
        place = self.at_index(item, place)
        return Store(place, Call(item.at.join, (place, value)) if item.at.join else value)

    def at_index(self, item: Item, place: Place) -> Place:
        """The same place of the row at an index."""
        assert item.at is not None
        step = self.nest.size(item.at.step)
        base = " + ".join(filter(None, (place.base, f"{self.row_index(item)} * {step}")))
        if ("row at", base) not in self.row_values:
            self.row_values["row at", base] = self.let(base, self.rows)
        return Place(place.buffer, self.row_values["row at", base], place.var, place.step)

    def row_index(self, item: Item) -> str:
        """The name of the index of a row, from the beginning."""
        assert item.at is not None
        index = self.operand(item.operands[1], 0, self.rows)
        if not item.at.wrap:
            return str(index)
        text = f"{index} + {self.nest.size(item.at.extent)} if {index} < 0 else {index}"
        if ("row index", text) not in self.row_values:
            self.row_values["row index", text] = self.let(text, self.rows)
        return str(self.row_values["row index", text])


__all__ = ["PLACES", "Indexed", "failing"]
