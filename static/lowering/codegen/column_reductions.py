"""Reductions of columns inside a fused kernel: accumulators for all columns, one row added after the other.

Sums and products keep LANES rows of accumulators per level of blocks, see `common.kernels.arrays.sums`, whose functions
start, carry and finish them; so the summed elements themselves are never stored.
"""

from __future__ import annotations

from typing import Any

from common.compiler.loop_ir import Call, Constant, If, Let, Loop, Place, Run, Store
from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.reducers import REDUCERS
from static.lowering.codegen.loop_nest import Nest
from static.lowering.ir.items import Item, is_literal
from static.lowering.ir.kernel_memory import ColumnScratch

COLUMN_TILE = 1024
"""Columns reduced together where nothing else needs whole rows: their accumulators stay in the cache."""

TOGETHER = 4
"""Rows that are taken in at once where that is all a kernel does (benchmarks/reduction_times.py)."""

_SHIFT = BLOCK.bit_length() - 1


class ColumnReductions:
    """The column reductions of one kernel.

    Parameters
    ----------
    tiled : whether the kernel goes through tiles ``c0 <= c < c1`` of columns, else through whole rows.

    Attributes
    ----------
    apart : how far apart rows are that are taken in at once: sums and products take rows of equal lane.
    """

    def __init__(self, nest: Nest, items: list[Item], tiled: bool) -> None:
        self.nest, self.items, self.tiled = nest, items, tiled
        self.row_name = f"r{len(nest.rows) - 1}"
        self.accumulators = {item.id: nest.slot(self.scratch(item)) for item in items}
        self.apart = LANES if any(REDUCERS[item.function].columns for item in items) else 1

    def scratch(self, item: Item) -> Any:
        """Memory for the accumulators of an item."""
        rows, inner = self.nest.rows[-1], self.nest.inner
        if REDUCERS[item.function].columns:
            tile = COLUMN_TILE if self.tiled else None
            return self.nest.scratch(item.dtype, ColumnScratch(rows, inner, item.dtype.itemsize, tile))
        return self.nest.scratch(item.dtype, COLUMN_TILE if self.tiled else inner)

    @property
    def width(self) -> str:
        """The number of columns reduced together."""
        return "(c1 - c0)" if self.tiled else self.nest.size(self.nest.inner)

    @property
    def first(self) -> str:
        """Where the accumulators of an extreme begin."""
        return "first" if self.tiled else ""

    def start(self) -> list[Any]:
        """Statements before the first row."""
        rows = self.nest.size(self.nest.rows[-1])
        out: list[Any] = []
        for item in self.items:
            acc = self.accumulators[item.id]
            if REDUCERS[item.function].columns:
                out.append(Run(Call(f"start_{REDUCERS[item.function].columns}", (acc, "0", self.width, rows))))
            else:
                value = Constant(REDUCERS[item.function].first(item.dtype), item.dtype)
                out.append(Loop("i", self.width, [Store(Place(acc, "", "i"), value)]))
        return out

    def loop(self, body: list[Any]) -> list[Any]:
        """The loop over all rows."""
        row = self.row_name
        carry = self._carry(f"{row} & {BLOCK - 1} == 0 and {row} > 0", row)
        return [Loop(row, self.nest.size(self.nest.rows[-1]), [*carry, *self._lane(), *body])]

    def loop_together(self, several: list[Any], single: list[Any]) -> list[Any]:
        """The loop over all rows, `TOGETHER` at a time, then one by one; block by block where there are lanes."""
        lane, rows = self._lane(), self.nest.size(self.nest.rows[-1])
        if self.apart == 1:
            return [
                Let("k2", f"{rows} - {rows} % {TOGETHER}"),
                Loop(self.row_name, "k2", [*lane, *several], step=str(TOGETHER)),
                Loop(self.row_name, rows, [*lane, *single], start="k2"),
            ]
        group = TOGETHER * LANES
        body = [
            *self._carry("k0 > 0", "k0"),
            Let("k1", f"min(k0 + {BLOCK}, {rows})"),
            Let("k2", f"k1 - (k1 - k0) % {group}"),
            Loop("k", "k2", [Loop(self.row_name, f"k + {LANES}", [*lane, *several], start="k")], "k0", str(group)),
            Loop(self.row_name, "k1", [*lane, *single], start="k2"),
        ]
        return [Loop("k0", rows, body, step=str(BLOCK))]

    def _carry(self, condition: str, row: str) -> list[Any]:
        """Statements before a row that ends a block."""
        block = f"({row} >> {_SHIFT}) - 1"
        carry = [
            Run(Call(f"carry_{REDUCERS[item.function].columns}", (self.accumulators[item.id], "0", self.width, block)))
            for item in self.items
            if REDUCERS[item.function].columns
        ]
        return [If(condition, carry)] if carry else []

    def _lane(self) -> list[Any]:
        """Statements at the start of a row: where its accumulators begin."""
        lane = Let("lane", f"({self.row_name} & {LANES - 1}) * {self.width}{' - c0' if self.tiled else ''}")
        return [lane, *[Let("first", "0 - c0")] * self.tiled]

    def add(self, item: Item, *values: Any) -> Store:
        """The statement that takes in the elements of one column and lane."""
        acc = self.accumulators[item.id]
        reducer = REDUCERS[item.function]
        place = Place(acc, "lane" if reducer.columns else self.first, "c")
        if self.apart == 1:  # extremes: any order gives the same, and pairs wait for each other least
            pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
            values = tuple(Call(reducer.join, pair) if pair[1:] else pair[0] for pair in pairs)
        total: Any = place
        for value in values:
            total = Call(reducer.join, (total, value))
        return Store(place, total)

    def finish(self) -> list[Any]:
        """Statements after the last row."""
        rows, start = self.nest.size(self.nest.rows[-1]), self._start()
        body: list[Any] = []
        for item in self.items:
            out, acc = self.nest.slot(item.out), self.accumulators[item.id]
            if REDUCERS[item.function].columns:
                body.append(
                    Run(Call(f"finish_{REDUCERS[item.function].columns}", (acc, "0", self.width, rows, out, start)))
                )
                continue
            value: Any = Place(acc, "", "i")
            if item.dtype != item.out.dtype:
                value = Call(f"to_{item.out.dtype.name}", (value,))
            place = Place(out, start.removeprefix("0"), "i")
            body.append(Loop("i", self.width, [Store(place, value)]))
        return body

    def _start(self) -> str:
        """Where the results of these columns begin."""
        steps = self.nest.batch_strides(self.items[0].lead)
        terms = [f"r{i}" if is_literal(step, 1) else f"r{i} * {self.nest.size(step)}" for i, step in enumerate(steps)]
        return " + ".join([*terms, *["c0"] * self.tiled]) or "0"

    def tiles(self, body: list[Any]) -> list[Any]:
        """The kernel's loops for one tile after the other."""
        size = self.nest.size(self.nest.inner)
        head = Let("c1", f"min(c0 + {COLUMN_TILE}, {size})")
        return [Loop("c0", size, [head, *body], step=str(COLUMN_TILE))]
