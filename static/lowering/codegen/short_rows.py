"""Rows of a few elements: their columns are written out, and the loop over rows goes by vectors.

A row of three coordinates fills a fifth of a vector, and its sum goes through memory. So a kernel of such rows begins
with a second form of its group, for the size that rows have now. In that form every element of a row is a value of its
own, a sum over the row is a chain of additions, and a sum of columns is one sum per column::

    if n0 == 3:
        for c in range(n1):
            u1 = b0[c * 3]
            u2 = b0[c * 3 + 1]
            ...
            b1[c] = u9
        return 0

S adds element i of a short row to lane i mod 16, and then halves the lanes. Lanes without elements hold +0.0, so the
chain adds what is there in this order, and +0.0 once: that turns -0.0 into +0.0, which is all that the zeros do. The
greatest element of a row is a chain too, in any order.

Rows of more elements than close steps serve are turned before, some rows at a time, and so are the results after::

    for m0 in range(0, n1, 64):
        m1 = min(m0 + 64, n1)
        turn_rows(b2, 0, b0, m0 * 20, 64, 20, 20, m1 - m0)
        for c in range(m0, m1):
            u1 = b2[0 - m0 + c]
            u2 = b2[64 - m0 + c]
            ...
        turn_rows(b1, m0 * 20, b3, 0, 20, 64, m1 - m0, 20)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE
from common.compiler.loop_ir import Call, If, Kernel, Let, Loop, Place, Return, Run
from common.core.numerics import LANES
from common.core.op import CHOOSE, EQUAL
from common.core.shapes import contiguous_strides
from common.core.sizes import hint
from common.core.spec import numel
from common.kernels.arrays.reducers import REDUCERS, SUM
from common.runtime.call_text import MAX_BUFFERS
from static.lowering.codegen.build import Built, build
from static.lowering.codegen.close_elements import close_form
from static.lowering.codegen.loop_nest import LONG, MANY, InnerNest, Nest
from static.lowering.groups import Group
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    Const,
    Item,
    Operand,
    Sizes,
    is_literal,
    make_access,
    size_key,
    sizes_key,
)
from static.lowering.ir.kernel_memory import Scratch

MOST_COLUMNS = 2 * LANES
"""Elements of a row that is written out: the code grows with them."""
MOST_ITEMS = 200
"""Operations of all columns."""
FEWEST_ROWS = LANES // 4
"""Rows of which half a vector is worth writing."""
FEWEST_TURNED = 256
"""Rows for which longer ones are written out: the first call takes some 50 to 100 ms more for it."""
TURNED_ROWS = 64
"""Rows that are turned together."""
COSTLY = 16
"""Instructions of an elementary function; arithmetic takes less than reading elements several places apart."""
LITERAL = 64
"""Numbers up to this stand in the text."""


def are_short(columns: int, rows: int) -> bool:
    """Whether rows are written out."""
    return 2 <= columns <= MOST_COLUMNS and rows >= (LANES if columns <= CLOSE else FEWEST_TURNED)


def build_rows(group: Group, escaping: set[int]) -> Built:
    """The kernel of a group; if rows or distances are short, with a form for these before the one for all sizes."""
    built = build(group, escaping)
    short = _short_form(group, escaping, built.nest) or close_form(group, escaping, built.nest)
    if short is None or len(built.nest.bound) > MAX_BUFFERS:
        return built
    kernel, nest = built.kernel, built.nest
    many = bool(nest.rows) and hint(nest.rows[-1]) >= LONG and hint(numel(nest.dims)) >= MANY
    long = kernel.long or COSTLY * many
    written = Kernel(nest.dtypes, len(nest.ints), [short, *kernel.body], long)
    return Built(written, built.nest, built.head, built.cut)


def _short_form(group: Group, escaping: set[int], nest: Nest) -> If | None:
    """The form for short rows, under the condition that they are; None if they are not, or cannot be written out."""
    if nest.inner is None or not nest.rows or nest.inner_run is None:
        return None
    columns = hint(nest.inner)
    start = nest.inner_run[0]
    if not 2 <= columns <= MOST_COLUMNS or hint(nest.rows[-1]) < FEWEST_ROWS:
        return None
    reduced = any(item.kind == "rows" for item in group.items)
    if columns >= LANES // 2 and not (reduced and hint(nest.rows[-1]) >= LANES):  # half a vector holds such a row
        return None
    turned = columns > CLOSE
    if turned and (hint(nest.rows[-1]) < FEWEST_TURNED or any(item.kind == "cols" for item in group.items)):
        return None
    if turned and any(access.in_pieces for item in group.items for access in item.accesses):
        return None
    if not all(_may_be_written_out(item, len(group.dims), start) for item in group.items):
        return None
    written = _WrittenOut(group, escaping, start, nest.inner, columns)
    if len(written.items) > MOST_ITEMS:
        return None
    condition = f"{nest.size(nest.inner)} == {columns}"
    own = _ShortNest(written, nest)
    body = own.in_tiles(build(written.group, written.escaping, part=own).kernel.body)
    return If(condition, [*body, Return("0")])


def _may_be_written_out(item: Item, dims: int, start: int) -> bool:
    if item.at is not None or item.calls:
        return False
    if item.function == ONE_OF_ROW:
        return item.split == start and len(item.dims) == dims
    if item.window is not None and item.kind != "map":
        return False
    if any(bounds.dim >= start for access in item.accesses for bounds in access.parted):
        return False
    if item.kind == "map":
        return len(item.dims) == dims or len(item.dims) <= start
    known = REDUCERS[item.function]
    written = (item.kind in ("rows", "cols") and known is SUM) or (item.kind == "rows" and known.start is None)
    return written and item.split == start and item.dtype.kind == "f" and item.dtype == item.out.dtype


@dataclass(eq=False)
class _WrittenOut:
    """A group with its columns written out.

    Attributes
    ----------
    original : new buffer's id -> the buffer of the group that it stands for, a column of it maybe.
    place_of : id of a new access -> its column, where that is not part of the offset.
    """

    source: Group
    outside: set[int]
    start: int
    inner: Any
    columns: int
    items: list[Item] = field(default_factory=list)
    escaping: set[int] = field(default_factory=set)
    original: dict[int, ArrayBuffer] = field(default_factory=dict)
    place_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own = {item.out.id for item in self.source.items}
        self._made: dict[tuple[int, int], ArrayBuffer] = {}
        self._numbers = count(1 << 40)
        for item in self.source.items:
            self._write_out(item)
        leads = {item.lead for item in self.source.items if item.kind == "cols"}
        breaks = 0
        for item in self.items:
            for access in item.accesses if item.window is None else [*item.accesses, item.window]:
                breaks |= access.breaks
        dims = self.source.dims[: self.start]
        self.group = Group(self.items, dims, sizes_key(dims), min(leads) if leads else None, breaks)

    def _write_out(self, item: Item) -> None:
        full = len(item.dims) > self.start
        dims = item.dims[: self.start]
        if item.kind == "rows":
            self._reduced_row(item, dims)
        elif item.kind == "lookup":
            self._looked_up(item, dims)
        elif item.kind == "cols":
            strides = contiguous_strides((*dims[: item.lead], self.inner))[: item.lead]
            for j in range(self.columns):
                operands = [self._column(o, dims, j) for o in item.operands]
                self._add(item, "rows", dims, operands, item.function, (0, strides, 1, j), item.lead)
        else:
            window = item.window
            offset, strides = (window.offset, window.strides) if window else (0, contiguous_strides(item.dims))
            for j in range(self.columns if full else 1):
                operands, function = [self._column(o, dims, j) for o in item.operands], item.function
                if function == ONE_OF_ROW:
                    g, index = operands
                    operands, function = [self._is_here(item, index, dims, j), g, Operand(Const(0), item.dtype)], CHOOSE
                made = self._add(
                    item,
                    "map",
                    dims,
                    operands,
                    function,
                    (offset, strides[: self.start], strides[-1], j) if full else None,
                )
                self._made[item.out.id, j if full else -1] = made
                if not full:
                    self._keep(item, made)

    def _is_here(self, item: Item, index: Operand, dims: Sizes, j: int) -> Operand:
        """Whether the index of a row is `j`."""
        out = ArrayBuffer(next(self._numbers), np.dtype(np.bool_), dims)
        operands = [index, Operand(Const(j), index.dtype)]
        made = Item(next(self._numbers), item.node, "map", dims, EQUAL, index.dtype, operands, [out])
        out.maker = made
        self.items.append(made)
        return self._whole(out, dims)

    def _looked_up(self, item: Item, dims: Sizes) -> None:
        """The element of a row at its index: the last one, unless it is one of those before."""
        row, index = item.operands
        found, made = self._column(row, dims, self.columns - 1), item.out
        for j in reversed(range(self.columns - 1)):
            here = self._is_here(item, self._column(index, dims, 0), dims, j)
            made = self._add(item, "map", dims, [here, self._column(row, dims, j), found], CHOOSE, None)
            found = self._whole(made, dims)
        self._made[item.out.id, -1] = made
        self._keep(item, made)

    def _reduced_row(self, item: Item, dims: Sizes) -> None:
        """The additions of S: to the lanes, then halves of these as far as they hold elements; or an extreme."""
        join = REDUCERS[item.function].join
        terms = [self._column(item.operands[0], dims, j) for j in range(self.columns)]
        made = item.out

        def joined(j: int, other: int) -> None:
            nonlocal made
            made = self._add(item, "map", dims, [terms[j], terms[other]], join, None)
            terms[j] = self._whole(made, dims)

        for j in range(LANES, self.columns):
            joined(j % LANES, j)
        half = LANES // 2
        while half:
            for j in range(min(half, max(min(self.columns, LANES, 2 * half) - half, 0))):
                joined(j, j + half)
            half //= 2
        if join == SUM.join:
            made = self._add(item, "map", dims, [terms[0], Operand(Const(0.0), item.dtype)], join, None)
        self._made[item.out.id, -1] = made
        self._keep(item, made)

    def _whole(self, buffer: ArrayBuffer, dims: Sizes) -> Operand:
        return Operand(make_access(buffer, 0, dims, contiguous_strides(dims)), buffer.dtype)

    def _keep(self, item: Item, made: ArrayBuffer) -> None:
        self.original[made.id] = item.out
        made.into = item.out
        if item.out.id in self.outside:
            self.escaping.add(made.id)

    def _add(
        self, item: Item, kind: str, dims: Sizes, operands: list[Operand], function: str,
        part: tuple[Any, Sizes, Any, int] | None, split: int | None = None,
    ) -> ArrayBuffer:  # fmt: skip
        """Add an item; `part` says where its result lies: offset and strides of rows, step and number of a column."""
        out = ArrayBuffer(next(self._numbers), item.out.dtype, dims if split is None else dims[:split])
        window = None
        if part is not None:
            offset, strides, step, j = part
            window = self._place(item.out, offset, dims[: len(strides)], strides, step, j)
            self._keep(item, out)
        elif kind == item.kind:
            window = item.window
        made = Item(
            next(self._numbers), item.node, kind, dims, function, item.dtype, operands, [out], split=split,
            window=window,
        )  # fmt: skip
        out.maker = made
        self.items.append(made)
        return out

    def _column(self, operand: Operand, dims: Sizes, j: int) -> Operand:
        """Column `j` of an operand."""
        access = operand.source
        if isinstance(access, Const):
            return operand
        own, strides = len(dims), access.strides
        step = strides[-1] if len(strides) > self.start else 0
        if access.buffer.id in self._own:
            made = self._made.get((access.buffer.id, -1)) or self._made[access.buffer.id, j]
            shape = made.shape
            steps = (*contiguous_strides(shape), *[0] * (own - len(shape)))
            return Operand(make_access(made, 0, dims, steps), operand.dtype)
        whole = not access.in_pieces
        place = self._place(access.buffer, access.offset, dims, strides[:own], step, j, whole)
        if not whole:
            place.within, place.outside, place.jump, place.prefix = access.within, access.outside, access.jump, None
            place.breaks |= access.breaks & ((1 << max(own - 1, 0)) - 1)
        return Operand(place, operand.dtype)

    def _place(
        self, buffer: ArrayBuffer, offset: Any, dims: Sizes, strides: Sizes, step: Any, j: int, whole: bool = True
    ) -> Access:
        """Column `j` of an array; what is not `whole` is not turned, since some of its rows do not exist there."""
        beside = is_literal(step, 1) and bool(strides) and self._turns(strides[-1], whole)
        if not beside and j and not is_literal(step, 0):
            offset = offset + j * step
        access = make_access(buffer, offset, dims, strides)
        if beside:
            self.place_of[id(access)] = j
        return access

    def _turns(self, stride: Any, whole: bool) -> bool:
        """Whether rows so far apart are read and written column by column, or turned."""
        if size_key(stride) == size_key(self.inner):
            return True
        return whole and hint(stride) > CLOSE and all(item.kind != "cols" for item in self.source.items)


class _ShortNest(InnerNest):
    """Names for the form for short rows."""

    def __init__(self, written: _WrittenOut, around: Nest) -> None:
        super().__init__(written.group, around, {size_key(written.inner): written.columns})
        self.written = written
        self.read: dict[str, tuple[Place, str]] = {}
        self.made: dict[str, tuple[Place, str]] = {}

    def size(self, value: Any) -> str:
        """The name of a size; small numbers are numbers in the text."""
        name = size_key(value)
        return str(name) if type(name) is int and 0 <= name <= LITERAL else super().size(value)

    def slot(self, thing: ArrayBuffer | Scratch) -> str:
        """The name of a buffer's slot."""
        return super().slot(self.written.original.get(thing.id, thing) if isinstance(thing, ArrayBuffer) else thing)

    def place(self, access: Access, rows: list[Any], column: str, part: ArrayBuffer | None = None) -> Place:
        """The element at which an access is."""
        place = super().place(access, rows, column, part)
        if id(access) not in self.written.place_of:
            return place
        j = self.written.place_of[id(access)]
        if place.var and not (place.step.isdigit() and int(place.step) <= CLOSE):
            tiles, buffer = (self.read, access.buffer) if part is None else (self.made, part)
            return self._turned(tiles, place, buffer, j)
        if not j:
            return place
        if place.var:
            return Place(place.buffer, place.base, place.var, place.step, str(j))
        return Place(place.buffer, f"{place.base} + {j}" if place.base else str(j))

    def _turned(self, tiles: dict[str, tuple[Place, str]], place: Place, buffer: ArrayBuffer, j: int) -> Place:
        """Where element `j` of a row lies in the tile of a buffer."""
        if str(place) not in tiles:
            tiles[str(place)] = place, self.slot(self.scratch(buffer.dtype, TURNED_ROWS * self.written.columns))
        return Place(tiles[str(place)][1], f"{j * TURNED_ROWS} - m0", place.var)

    def in_tiles(self, body: list[Any]) -> list[Any]:
        """The statements, with the loop over rows in tiles if there are any."""
        if not self.read and not self.made:
            return body
        made: list[Any] = []
        for statement in body:
            if isinstance(statement, Loop) and statement.var == "c":
                made.append(self._tiled(statement))
            elif isinstance(statement, Loop):
                made.append(Loop(statement.var, statement.stop, self.in_tiles(statement.body)))
            else:
                made.append(statement)
        return made

    def _tiled(self, loop: Loop) -> Loop:
        columns = str(self.written.columns)
        rows, width = "m1 - m0", str(TURNED_ROWS)
        body: list[Any] = [Let("m1", f"min(m0 + {TURNED_ROWS}, {loop.stop})")]
        for place, tile in self.read.values():
            sizes = width, place.step, columns, rows
            body.append(Run(Call("turn_rows", (tile, "0", place.buffer, _first(place), *sizes))))
        body.append(Loop("c", "m1", loop.body, start="m0"))
        for place, tile in self.made.values():
            sizes = place.step, width, rows, columns
            body.append(Run(Call("turn_rows", (place.buffer, _first(place), tile, "0", *sizes))))
        return Loop("m0", loop.stop, body, step=width)


def _first(place: Place) -> str:
    """The first element of a tile."""
    return f"{place.base} + m0 * {place.step}" if place.base else f"m0 * {place.step}"
