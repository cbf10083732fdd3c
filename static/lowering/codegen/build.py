"""A group as a kernel: loops over rows and columns, the stages of a row one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Constant, If, Kernel, Let, Loop, Place, Store
from common.core.numerics import BLOCK
from common.core.op import CHOOSE, EQUAL
from common.core.sizes import Dim
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.codegen.column_reductions import TOGETHER, ColumnReductions
from static.lowering.codegen.flat_sums import FLAT, FlatSums
from static.lowering.codegen.loop_nest import Nest
from static.lowering.codegen.row_stages import DEEP, RECOMPUTED_ITEMS, Stages, is_cheap, source_item
from static.lowering.codegen.row_sums import in_blocks, lane_loops, make_lanes
from static.lowering.codegen.tiles import Tiles
from static.lowering.fusion.library_kernels import known_sum
from static.lowering.groups import Group
from static.lowering.indexing.indexed_access import PLACES, Indexed
from static.lowering.ir.items import ONE_OF_ROW, Access, Const, Item, Operand, is_literal
from static.lowering.ir.kernel_memory import Scratch


@dataclass(slots=True)
class Built:
    """A kernel and what its slots and arguments are.

    Attributes
    ----------
    head : number of statements before the loops: what is computed once per kernel.
    cut : the variable of its outermost loop, if that can be cut, see `static.lowering.threads.cut_loops`.
    """

    kernel: Kernel
    nest: Nest
    head: int
    cut: str = ""


def build(
    group: Group, escaping: set[int], columns: Any = ColumnReductions, divided: Any = None, part: Any = None
) -> Built:
    """The kernel of a group.

    Parameters
    ----------
    escaping : ids of the buffers that something outside the group reads; `columns` reduces columns.
    divided : an item that writes to rows at indices, if only some of the rows are to be computed, see `PLACES`;
        `part` : the names of a kernel of which this is a part.
    """
    return _Builder(group, escaping, columns, divided, part).run()


class _Builder(Indexed):
    def __init__(self, group: Group, escaping: set[int], columns: Any, divided: Item | None, part: Nest | None) -> None:
        super().__init__()
        self.divided, self.group = divided, group
        self.nest, self.letter = part or Nest(group), "u" if part else "t"
        self.own = {item.id: item for item in group.items}
        stored = {i.id for i in group.items if i.kind in ("map", "lookup") and i.out.id in escaping}
        self.stages = Stages(group, stored)
        self.stored = stored
        self.escaping = escaping
        self.read_from = {id(buffer.storage) for buffer in group.reads}
        self.prologue, self.rows = list[Any](), list[Any]()
        # What is stored over its old value is stored last, when every read of the old value is behind.
        self.late: list[Any] = []
        self.late_rows: list[Any] = []
        self.late_scalars: list[Any] = []
        self.scalars: dict[Any, Any] = {}
        self.row_values, self.values = dict[Any, Any](), dict[Any, Any]()
        self.kept: dict[Any, Scratch] = {}
        self.column, self.count, self.now, self.depth = "c", 0, 0, 0
        self.columns, self.tiles = self._columns(columns), Tiles(group, self.nest, part is None)
        self.flat = FlatSums(self.nest, [item for item in group.items if item.kind == FLAT])

    def _columns(self, make: type[ColumnReductions]) -> ColumnReductions | None:
        items = [item for item in self.group.items if item.kind == "cols"]
        whole_rows = any(item.kind == "rows" for item in self.group.items)
        whole_rows = whole_rows or any(i.id in self.stored and not self.stages.is_full(i) for i in self.group.items)
        return make(self.nest, items, not whole_rows) if items else None

    # ---------------------------------------------------------------- the whole kernel
    def run(self) -> Built:
        body, loops = self.column_loops() if self.columns is not None else (self.row(), self.nest.rows)
        body = [*self.flat.start(), *self.tiles.loops(body, loops), *self.flat.finish()]
        head, nest = [*self.prologue, *self.late_scalars], self.nest
        return Built(Kernel(nest.dtypes, len(nest.ints), [*head, *body], nest.long), nest, len(head))

    def row(self) -> list[Any]:
        """The statements of every row."""
        place = "" if self.divided is None else self.row_index(self.divided, self.rows)
        head, self.rows = self.rows, []
        for stage in range(self.stages.count):
            self.stage(stage)
        body = [*self.rows, *self.late_rows, *self.flat.row()]
        if place:
            head.append(Let("part", f"{place} & {PLACES - 1}"))
            body = [If("part >= low and part < high", body)]
        return [*head, *body]

    def column_loops(self) -> tuple[list[Any], list[Any]]:
        """The loops that reduce columns, and the sizes of those around them."""
        columns = self.columns
        assert columns is not None
        maps = [item for item in self.group.items if item.kind == "map" and is_cheap(item)]
        light = len(maps) <= RECOMPUTED_ITEMS and len(maps) + len(columns.items) == len(self.group.items)
        if light and columns.tiled and not self.stored:
            body = columns.loop_together(self.rows_together(TOGETHER), self.rows_together(1))
        else:
            body = columns.loop(self.row())
        body = [*columns.start(), *body, *columns.finish()]
        return columns.tiles(body) if columns.tiled else body, self.nest.rows[:-1]

    def rows_together(self, count: int) -> list[Any]:
        """The statements of a row, and of the next that are taken in with it, if only columns are reduced."""
        assert self.columns is not None
        loop: list[Any] = []
        items, name = self.columns.items, self.columns.row_name
        taken: list[list[Any]] = [[] for _ in items]
        self.rows, self.values, self.row_values = [], {}, {}
        self.nest.forget_bases()
        for k in range(count):
            self.nest.row_names[-1] = f"{name}_{k}" if k else name
            if k:
                self.rows.append(Let(self.nest.row_names[-1], f"{name} + {k * self.columns.apart}"))
            for values, item in zip(taken, items, strict=True):
                values.append(self.operand(item.operands[0], 0, loop))
            # what was read stays known by its place, which names the row; what an item computed has another value
            caches = self.values, self.row_values
            self.values, self.row_values = ({k: v for k, v in c.items() if not isinstance(k, int)} for c in caches)
        self.nest.row_names[-1] = name
        loop += [self.columns.add(item, *values) for values, item in zip(taken, items, strict=True)]
        return [*self.rows, self.inner_loop(loop)]

    def stage(self, stage: int) -> None:
        self.now = stage
        for item in self.group.items:
            if item.kind not in ("map", "lookup") or self.stages.is_full(item):
                continue
            if self.stages.of[item.id] == stage:
                value = self.value(item, stage)
                if item.id in self.stored:
                    body, late = self.rows, self.late_rows
                    if not self.is_row(item):
                        body, late = self.prologue, self.late_scalars
                    store = self.store(item, value, body, "", body)
                    (late if self.overwrites(item) else body).append(store)
        if self.nest.inner is None:
            return
        self.values.clear()
        loop: list[Any] = []
        sinks = self.stages.sinks(stage)
        reductions = [item for item in sinks if item.kind == "rows"]
        stores = [item for item in sinks if item.kind == "map"]
        for item in stores:
            self.full(item, stage, loop)
        for item in sinks:
            if item.kind == "cols":
                assert self.columns is not None
                loop.append(self.columns.add(item, self.operand(item.operands[0], stage, loop)))
            elif item.kind == FLAT:
                loop.append(self.flat.add(item, self.operand(item.operands[0], stage, loop)))
        ready = {item.id: self.ready(item, stage) for item in reductions}
        runs = bool(loop or self.late) or len(reductions) > 1 or None in ready.values()
        laned = [item for item in reductions if runs and REDUCERS[item.function].registers and item.dtype.kind == "f"]
        if not self.nest.rows and runs and len(laned) < len(reductions):
            waiting = [(i, *(ready[i.id] or self.loaded(i, stage, loop, True))) for i in reductions]
            blocks, totals = in_blocks(self.nest, self.loop("k0", "k1", self.overwritten(loop)), waiting)
            self.rows.append(blocks)
            for item, total in totals:
                self.finish_row(item, total)
            self.rows += self.wrong_indices()
            return
        others = [(i, *(ready[i.id] or self.loaded(i, stage, loop, False))) for i in reductions if i not in laned]
        sums = [make_lanes(self.nest, item.dtype) for item in laned]
        loop += [own.add(self.operand(i.operands[0], stage, loop)) for i, own in zip(laned, sums, strict=True)]
        self.overwritten(loop)
        self.rows += lane_loops(self.nest, loop, sums) if sums else [self.inner_loop(loop)]
        size = self.nest.size(self.nest.inner) if reductions else ""
        for item, reducer, place in others:
            self.finish_row(item, Call(reducer, (place.buffer, place.base or "0", size)))
        for item, own in zip(laned, sums, strict=True):
            self.rows += own.total(size, name := self.name())
            self.keep_row(item, name)
        self.rows += self.wrong_indices()

    def overwritten(self, loop: list[Any]) -> list[Any]:
        """A loop's statements, and after all of its reads what it stores over something that it read."""
        loop += self.late
        self.late = []
        return loop

    def inner_loop(self, body: list[Any]) -> Loop:
        tiled = self.columns is not None and self.columns.tiled
        return self.loop(*(("c0", "c1") if tiled else ("0", self.nest.size(self.nest.inner) if body else "")), body)

    def finish_row(self, item: Item, call: Call) -> None:
        name = self.name()
        self.rows.append(Let(name, call, item.dtype))
        self.keep_row(item, name)

    def keep_row(self, item: Item, name: str) -> None:
        """Give the result of a reduction of a row, under a name, to those who need it."""
        value: Any = name
        if item.dtype != item.out.dtype:
            value = self.let(Call(f"to_{item.out.dtype.name}", (name,)), self.rows)
        self.row_values[item.id] = value
        if item.out.id in self.escaping:
            self.rows.append(Store(self.nest.own_place(item, self.rows, ""), value))

    # ---------------------------------------------------------------- operands of row reductions
    def ready(self, item: Item, stage: int) -> tuple[str, Place] | None:
        """The reducer of a row whose elements lie ready, and their place."""
        operand = item.operands[0]
        known = known_sum(operand) if REDUCERS[item.function] is SUM else None
        if known is not None and self.outside(known[1]) and not self.outside(operand):
            place = self.direct(known[1], stage)
            if place is not None:
                return f"block_{known[0]}", place
        place = self.direct(operand, stage) if self.outside(operand) else None
        return None if place is None else (REDUCERS[item.function].row, place)

    def outside(self, operand: Operand) -> bool:
        """Whether another kernel, or nobody, makes an operand."""
        return isinstance(operand.source, Access) and source_item(operand.source, self.own) is None

    def loaded(self, item: Item, stage: int, loop: list[Any], chunked: bool) -> tuple[str, Place]:
        """The reducer of a row whose elements the loop leaves at a place."""
        return REDUCERS[item.function].row, self.reduced_row(item.operands[0], stage, loop, chunked)

    def direct(self, operand: Operand, stage: int) -> Place | None:
        """Where a whole row of the operand lies in memory already, once the loop of the stage has run."""
        source = operand.source
        if not isinstance(source, Access):
            return None
        item = source_item(source, self.own)
        if source.buffer.dtype != operand.dtype:
            return None
        if item is not None:
            if item.id in self.stored and self.stages.is_full(item):
                return self.nest.own_place(item, self.rows, "c")
            if item.id in self.stages.saved:
                return Place(self.nest.slot(self.keep(item)))
            return None
        if is_literal(self.nest.strides(source.strides)[1], 1):
            return self.nest.place(source, self.rows, "c")
        return self.tiles.place(source, self.rows, "c")

    def reduced_row(self, operand: Operand, stage: int, loop: list[Any], chunked: bool) -> Place:
        """The place of the operand's row, stored there by the loop if it is nowhere else."""
        found = self.direct(operand, stage)
        if found is not None:
            if isinstance(operand.source, Access):
                item = source_item(operand.source, self.own)
                if item is not None and not self.stages.in_memory(item, stage):
                    self.full(item, stage, loop)
            return found
        name = ("row", self._identity(operand), operand.dtype, chunked)
        value = self.operand(operand, stage, loop)
        if name not in self.kept:
            self.kept[name] = self.nest.scratch(operand.dtype, BLOCK if chunked else self.nest.inner)
            place = Place(self.nest.slot(self.kept[name]), "km" if chunked else "", "c")
            loop.append(Store(place, value))
        return Place(self.nest.slot(self.kept[name]), "km" if chunked else "")

    def _identity(self, operand: Operand) -> Any:
        source = operand.source
        if isinstance(source, Const):
            return ("const", id(source))
        item = source_item(source, self.own)
        return ("item", item.id) if item is not None else ("access", id(source))

    def keep(self, item: Item) -> Scratch:
        if item.id not in self.kept:
            self.kept[item.id] = self.nest.scratch(item.out.dtype, self.nest.inner)
        return self.kept[item.id]

    # ---------------------------------------------------------------- values
    def name(self) -> str:
        self.count += 1
        return f"{self.letter}{self.count}"

    def let(self, value: Any, body: list[Any], dtype: np.dtype[Any] | None = None) -> str:
        name = self.name()
        body.append(Let(name, value, dtype))
        return name

    def is_row(self, item: Item) -> bool:  # not the whole kernel's
        return item.level > 0 or self.group.split == 0

    def value(self, item: Item, stage: int) -> Any:
        """The name of a value of the row or of the kernel."""
        if item.id in self.row_values:
            return self.row_values[item.id]
        body = self.rows if self.is_row(item) else self.prologue
        if item.kind == "lookup":
            value = self.pick(item, stage)
        else:
            assert item.kind == "map", "a reduction is used before its stage"
            value = self.applied(item, stage, body)
        self.row_values[item.id] = value
        return value

    def full(self, item: Item, stage: int, loop: list[Any]) -> Any:
        """The name of an element's value in the loop of a stage; computes, loads, stores as planned."""
        if item.id in self.values:
            return self.values[item.id]
        if self.stages.in_memory(item, stage):
            if item.id in self.stored:
                place = self.nest.own_place(item, self.rows, self.column)
            else:
                place = Place(self.nest.slot(self.keep(item)), "", self.column)
            self.values[item.id] = self.let(place, loop)
            return self.values[item.id]
        value = self.applied(item, stage, loop)
        self.values[item.id] = value
        if self.column != "c":
            return value
        if item.id in self.stored and self.stages.first[item.id] == stage:
            target = self.late if self.overwrites(item) else loop
            target.append(self.store(item, value, self.rows, "c", loop))
        elif item.id in self.stages.saved and self.stages.first[item.id] == stage:
            loop.append(Store(Place(self.nest.slot(self.keep(item)), "", "c"), value))
        return value

    def overwrites(self, item: Item) -> bool:
        """Whether the result goes where something lies that the kernel may still read."""
        return id(item.out.storage) in self.read_from

    def applied(self, item: Item, stage: int, body: list[Any]) -> Any:
        """The value of an item; of a long chain the first operations come first, so that calls nest only so deep."""
        self.depth += 1
        if self.depth > DEEP:
            for below in self.stages.before(item, stage, self.values.keys() | self.row_values.keys()):
                self.full(below, stage, body) if self.stages.is_full(below) else self.value(below, stage)
        value = self.apply(item, lambda operand: self.operand(operand, stage, body), body)
        self.depth -= 1
        return value

    def apply(self, item: Item, operand: Callable[[Operand], Any], body: list[Any]) -> Any:
        if item.function == ONE_OF_ROW:
            here = self.let(Call(EQUAL, (self.column, self.checked(item, 0))), body)
            return self.let(Call(CHOOSE, (here, operand(item.operands[0]), Constant(0, item.dtype))), body)
        if item.at is not None:
            return operand(item.operands[0]) if item.puts else self.take(item, body)
        values = tuple(operand(o) for o in item.operands)
        return values[0] if item.function == "" else self.let(Call(item.function, values), body, item.out.dtype)

    def operand(self, operand: Operand, stage: int, loop: list[Any]) -> Any:
        """The name or constant of an operand, in the consumer's dtype."""
        source = operand.source
        if isinstance(source, Const):
            return self.number(source, operand.dtype)
        item = source_item(source, self.own)
        if item is not None and self.stages.is_full(item):
            return self.converted(self.full(item, stage, loop), source.buffer.dtype, operand.dtype, self.values, loop)
        if item is not None:
            body, cache = (self.rows, self.row_values) if self.is_row(item) else (self.prologue, self.scalars)
            return self.converted(self.value(item, stage), source.buffer.dtype, operand.dtype, cache, body)
        if self.nest.column_varying(source):
            body, cache = loop, self.values
        elif self.nest.row_varying(source):
            body, cache = self.rows, self.row_values
        elif any(is_literal(n, 0) for n in self.nest.dims) and not all(is_literal(s, 0) for s in source.strides):
            return Constant(0, operand.dtype)  # it moves with loops that have no iterations: there is nothing to read
        else:
            body, cache = self.prologue, self.scalars
        bases = self.rows if self.nest.row_varying(source) else self.prologue
        place = self.tiles.place(source, bases, self.column) or self.nest.element(source, bases, self.column)
        if str(place) not in cache:
            cache[str(place)] = self.let(place, body)
        return self.converted(cache[str(place)], source.buffer.dtype, operand.dtype, cache, body)

    def converted(
        self, value: Any, have: np.dtype[Any], want: np.dtype[Any], cache: dict[Any, Any], body: list[Any]
    ) -> Any:
        if have == want or isinstance(value, Constant):
            return value
        name = (value, want)
        if name not in cache:
            cache[name] = self.let(Call(f"to_{want.name}", (value,)), body, want)
        return cache[name]

    def number(self, const: Const, dtype: np.dtype[Any]) -> Any:
        if not isinstance(const.value, Dim):
            return Constant(const.value, dtype)
        name, held = self.nest.size(const.value), const.dtype or dtype
        steps = [d for d in (held, dtype) if d.kind != "i" or d.itemsize != 8]
        for target in dict.fromkeys(steps):
            if (name, target) not in self.scalars:
                self.scalars[name, target] = self.let(Call(f"to_{target.name}", (name,)), self.prologue, target)
            name = self.scalars[name, target]
        return name
