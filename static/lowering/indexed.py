"""How a kernel reads at indices that are data: one element of a row, or a row of a table. Each is checked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from static.loopir import If, Place, Return
from static.lowering.groups import Group
from static.lowering.items import Access, Item, Operand
from static.lowering.nest import Nest


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

    def row_size(self) -> str:
        """The name of the number of columns."""
        return self.nest.size(self.nest.inner)

    def pick(self, item: Item, stage: int) -> Any:
        """One element of a row: whatever it depends on is computed for this column only."""
        index = self.index(item, self.row_size(), stage)
        values, self.values, self.column = self.values, {}, index
        value = self.operand(item.operands[0], stage, self.rows)
        self.values, self.column = values, "c"
        return value

    def take(self, item: Item, body: list[Any]) -> str:
        """An element of the row at an index, which is one per row of the space."""
        assert item.taken is not None
        extent, step = item.taken
        index = self.index(item, self.nest.size(extent), 0)
        table = item.operands[0].source
        assert isinstance(table, Access)
        place = self.nest.place(table, self.rows, self.column)
        name = ("row at", place, index)
        if name not in self.row_values:
            base = " + ".join(filter(None, (place.base, f"{index} * {self.nest.size(step)}")))
            self.row_values[name] = self.let(base, self.rows)
        place = Place(place.buffer, self.row_values[name], place.var, place.step)
        if place not in self.values:
            self.values[place] = self.let(place, body)
        return self.values[place]

    def index(self, item: Item, size: str, stage: int) -> str:
        """The name of an index, the second operand of an item, checked."""
        name = self.operand(item.operands[1], stage, self.rows)
        if ("checked", name, size) not in self.row_values:
            self.row_values["checked", name, size] = name
            status = 1 + failing(self.group.items).index(item)
            self.rows.append(If(f"{name} < 0 or {name} >= {size}", [Return(status)]))
        return name


__all__ = ["Indexed", "failing"]
