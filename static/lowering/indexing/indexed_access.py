"""How a loop reads and writes at indices that are data: one element of a row, or a row of a table.

A kernel has checked those of rows before, see `static.lowering.indexing.by_index`. A loop that computes the indices of
elements checks them as it goes: it reads under a mask, keeps one sign per lane, and the kernel ends behind the loop if
one is negative. Such a kernel computes the indices again to tell the wrong one, so it overwrites nothing that they are
made of (`static.lowering.groups.Group.read_again`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.loop_ir import Call, Constant, Guarded, If, Let, Loop, Place, Return, Store
from common.core.numerics import LANES
from common.kernels.arrays.coordinates import status_of
from static.lowering.codegen.loop_nest import Nest
from static.lowering.codegen.row_stages import Stages
from static.lowering.groups import Group
from static.lowering.ir.items import Access, Item, Operand, is_literal
from static.lowering.ir.kernel_memory import Scratch

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
    stages: Stages
    rows: list[Any]
    row_values: dict[Any, Any]
    values: dict[Any, Any]
    column: str
    now: int
    _signs: Scratch | None = None

    if TYPE_CHECKING:  # the builder's

        def operand(self, operand: Operand, stage: int, loop: list[Any]) -> Any:
            """The name or constant of an operand, in the consumer's dtype."""

        def let(self, value: Any, body: list[Any], dtype: np.dtype[Any] | None = None) -> str:
            """The name of a value."""

    def __init__(self) -> None:
        self.taken: list[Item] = []

    def pick(self, item: Item, stage: int) -> Any:
        """One element of a row: whatever it depends on is computed for this column only."""
        index = self.checked(item, stage)
        values, self.values, self.column = self.values, {}, index
        value = self.operand(item.operands[0], stage, self.rows)
        self.values, self.column = values, "c"
        return value

    def checked(self, item: Item, stage: int) -> str:
        """The name of the one index of a row, checked, and from the beginning: this loop may compute it."""
        name, size = self.operand(item.operands[1], stage, self.rows), self.nest.size(self.nest.inner)
        if not item.calls:  # a kernel has checked it before
            return str(name)
        which, wrap = (len(item.at.further), item.at.wrap) if item.at else (0, False)
        key = "checked", name, size, wrap
        if key not in self.row_values:
            status = status_of(f"to_int64({name})", failing(self.group.items).index(item) + which)
            low = f"0 - {size}" if wrap else "0"
            self.rows.append(If(f"{name} < {low} or {name} >= {size}", [Return(status)]))
            end = f"{name} + {size} if {name} < 0 else {name}"
            self.row_values[key] = self.let(end, self.rows) if wrap else name
        return str(self.row_values[key])

    def take(self, item: Item, body: list[Any]) -> str:
        """An element of the row at an index, or the element at one; under a mask if this loop checks the index."""
        table = item.operands[0].source
        assert isinstance(table, Access)
        holds = self.check(item, body) if item.calls else ""
        place = self.at_index(item, self.nest.place(table, self.rows, self.column), body)
        if place not in self.values:
            read = Guarded(place, Constant(0, table.buffer.dtype), holds) if holds else place
            self.values[place] = self.let(read, body)
        return self.values[place]

    def store(self, item: Item, value: Any, rows: list[Any], column: str, loop: list[Any]) -> Store:
        """The statement of a loop that stores a result, or joins it with what is at an index; `rows` get bases."""
        place = self.nest.own_place(item, rows, column)
        if item.at is None or not item.puts:
            return Store(place, value)
        place = self.at_index(item, place, loop)
        return Store(place, Call(item.at.join, (place, value)) if item.at.join else value)

    def at_index(self, item: Item, place: Place, loop: list[Any]) -> Place:
        """The same place of the row at an index; if the index varies in it, found in the loop over columns."""
        assert item.at is not None
        number = place.base.isdigit() and not place.beside  # columns of one row have one name
        terms = [place.base] if place.base and not number else []
        for which, (_, step) in enumerate(_dimensions(item)):
            index = self.row_index(item, loop, which)
            terms.append(index if is_literal(step, 1) else f"{index} * {self.nest.size(step)}")
        beside = place.base if number else place.beside
        return Place(place.buffer, self.named(item, " + ".join(terms), loop), place.var, place.step, beside)

    def row_index(self, item: Item, loop: list[Any], which: int = 0) -> str:
        """The name of an index, from the beginning."""
        assert item.at is not None
        index = self.operand(item.operands[1 + which], self.now, loop)
        if not item.at.wrap:
            return str(index)
        extent = self.nest.size(_dimensions(item)[which][0])
        return self.named(item, f"{index} + {extent} if {index} < 0 else {index}", loop)

    def check(self, item: Item, body: list[Any]) -> str:
        """Note whether the indices of an item are right, and return the condition that they are.

        The loop reads nothing where they are not, and goes on; `wrong_indices` ends the kernel behind it. An index of a
        row ends the kernel at once.
        """
        if not self.stages.is_full(item):
            body += [If(outside, [Return(status)]) for outside, status in self._outside(item, body)]
            return ""
        if self.column == "c" and item not in self.taken:
            if not self.taken:
                zero = Store(Place(self.signs, "", "j"), Constant(0, np.dtype(np.int64)))
                self.rows.append(Loop("j", str(LANES), [zero]))
            self.taken.append(item)
        known = []
        for which, (extent, _) in enumerate(_dimensions(item)):
            index = self.row_index(item, body, which)
            sign = f"{index} | {self.nest.size(extent)} - 1 - {index}"
            if ("within", sign) not in self.values:
                self.values["within", sign] = self.let(sign, body)
                if self.column == "c":
                    own = Place(self.signs, f"i & {LANES - 1}")
                    body.append(Store(own, f"{own} | {self.values['within', sign]}"))
            known.append(self.values["within", sign])
        return f"{' | '.join(dict.fromkeys(known))} >= 0"

    def _outside(self, item: Item, body: list[Any]) -> Iterator[tuple[str, str]]:
        """For each index of an item the condition that it is wrong, and the status that tells so."""
        assert item.at is not None
        first = failing(self.group.items).index(item)
        for which, (extent, _) in enumerate(_dimensions(item)):
            index, size = self.operand(item.operands[1 + which], self.now, body), self.nest.size(extent)
            low = f"0 - {size}" if item.at.wrap else "0"
            yield f"{index} < {low} or {index} >= {size}", status_of(f"to_int64({index})", first + which)

    def loop(self, start: str, stop: str, body: list[Any]) -> Loop:
        """A loop over columns; one that notes whether indices are right counts them by i, from 0 on."""
        if not self.taken:
            return Loop("c", stop, body, start=start)
        some = start != "0"
        return Loop("i", f"{stop} - {start}" if some else stop, [Let("c", f"{start} + i" if some else "i"), *body])

    @property
    def signs(self) -> str:
        """The buffer of the lanes that are negative where an index was wrong."""
        if self._signs is None:
            self._signs = self.nest.scratch(np.dtype(np.int64), LANES)
        return self.nest.slot(self._signs)

    def wrong_indices(self) -> list[Any]:
        """The statements behind a loop that took elements: where an index was wrong, find the first one again."""
        if not self.taken:
            return []
        known, column = self.values, self.column
        self.values, self.column = {}, "k"
        body: list[Any] = []
        wrong = dict[str, str]()
        for item in sorted(self.taken, key=self.group.items.index):
            for outside, status in self._outside(item, body):
                wrong.setdefault(outside, status)
        self.values, self.column, self.taken = known, column, []
        found = " | ".join(f"{self.signs}[{j}]" for j in range(LANES))
        ends = [If(f"w == {w} and ({outside})", [Return(wrong[outside])]) for w, outside in enumerate(wrong)]
        search = Loop("k", self.nest.size(self.nest.inner), [*body, *ends])
        return [If(f"{found} < 0", [Loop("w", str(len(wrong)), [search])])]

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
