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

import re
from collections.abc import Sequence
from typing import Any

from common.compiler.close_steps import CLOSE
from common.compiler.loop_ir import Call, Let, Loop, Place, Run, text
from common.core.numerics import LANES
from common.core.sizes import hint
from common.core.spec import numel
from common.kernels.arrays.reducers import REDUCERS, SUM
from common.runtime.call_text import MAX_BUFFERS
from static.lowering.codegen.build import Built, build
from static.lowering.codegen.close_elements import close_form
from static.lowering.codegen.columns_outside import columns_outside
from static.lowering.codegen.counted_columns import counted_columns
from static.lowering.codegen.loop_nest import LONG, MANY, InnerNest, Nest
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.codegen.short_columns import short_columns
from static.lowering.codegen.written_rows import WrittenOut
from static.lowering.groups import Group
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    Item,
    size_key,
)
from static.lowering.ir.kernel_memory import Scratch
from static.lowering.memory.overlapping_parts import FEWEST_ROWS as FEWEST_WITH_PARTS

MOST_COLUMNS = 2 * LANES
"""Elements of a row that is written out: the code grows with them."""
MOST_IN_PARTS = 3 * LANES
"""Elements of several dimensions, such as matrices of six rows, whose operands lie in small parts."""
MOST_ITEMS = 640
"""Operations of all columns."""
FEWEST_ROWS = LANES // 4
"""Rows of which half a vector is worth writing."""
FEWEST_TURNED = 256
"""Rows for which longer ones are written out: the first call takes some 50 to 100 ms more for it."""
TURNED_ROWS = 64
"""Rows that are turned together."""
COSTLY = 16
"""Instructions of an elementary function; arithmetic takes less than reading elements several places apart."""
_VALUE = re.compile(r"\b[qtu]\d+\b")
FEW_OF_ROW = 2
"""Elementary functions of numbers of a row that take no longer than to take rows apart."""
LITERAL = 64
"""Numbers up to this stand in the text."""


def are_short(columns: int, rows: int) -> bool:
    """Whether rows are written out."""
    return 2 <= columns <= MOST_COLUMNS and rows >= (LANES if columns <= CLOSE else FEWEST_TURNED)


def build_rows(group: Group, escaping: set[int]) -> Built:
    """The kernel of a group; if rows or distances are short, with a form for these before the one for all sizes."""
    built = build(group, escaping)
    form = next(filter(None, (make(group, escaping, built.nest) for make in _FORMS)), None)
    if form is None or len(built.nest.bound) > MAX_BUFFERS:
        return built
    certain, body = form
    if _anonymous(body) == _anonymous(built.kernel.body):
        return built
    kernel, nest = built.kernel, built.nest
    many = bool(nest.rows) and hint(nest.rows[-1]) >= LONG and hint(numel(nest.dims)) >= MANY
    costly = many and not all(map(is_cheap, group.items))
    long = kernel.long or COSTLY * costly
    return Built(kernel.with_form(nest.dtypes, len(nest.ints), certain, body, long), nest, built.head, built.cut)


def longer(built: Built) -> tuple[int, list[tuple[Any, int]]] | None:
    """Another `Kernel.long`, and how large which sizes are where it is better; None for loops that compute little."""
    nest = built.nest
    length = nest.rows[-1] if built.kernel.first and nest.rows else nest.inner
    least = [(length, LONG), (numel(nest.dims), MANY)]
    if built.kernel.long or any(n is None or (type(n) is int and n < few) for n, few in least):
        return None
    return None if all(map(is_cheap, nest.group.items)) else (COSTLY if built.kernel.first else 1, least)


def _anonymous(statements: list[Any]) -> str:
    """The text of statements with names for values in the order in which they come."""
    names: dict[str, str] = {}
    return _VALUE.sub(lambda found: names.setdefault(found[0], f"v{len(names)}"), text(statements))


def _short_form(group: Group, escaping: set[int], nest: Nest) -> tuple[dict[int, int], list[Any]] | None:
    """Sizes of short rows by their arguments, and the form for them; None if they cannot be written out."""
    if nest.inner is None or not nest.rows or nest.inner_run is None:
        return None
    start = _first_of_parts(group) or nest.inner_run[0]
    if any(map(at_rows, group.items)) and are_whole_rows(group.items, start) and start == group.split:
        own = InnerNest(group, nest, {size_key(nest.inner): hint(nest.inner)})
        return {nest.argument(nest.inner): hint(nest.inner)}, build(group, escaping, part=own).kernel.body
    inside = any(bounds.dim >= start for item in group.items for access in item.accesses for bounds in access.parted)
    columns, rows = hint(numel(group.dims[start:])), hint(numel(group.dims[:start]))
    last = hint(nest.rows[-1]) if start == nest.inner_run[0] else rows
    most = MOST_IN_PARTS if inside else MOST_COLUMNS
    if not 2 <= columns <= most or last < FEWEST_ROWS or (inside and rows < FEWEST_WITH_PARTS):
        return None
    reduced = any(item.kind == "rows" or at_rows(item) for item in group.items)
    if columns >= LANES // 2 and not inside and not (reduced and last >= LANES):  # half a vector holds such a row
        return None
    turned = columns > CLOSE
    if turned and (last < FEWEST_TURNED or any(item.kind == "cols" for item in group.items)):
        return None
    if turned and any(x.dim < start for item in group.items for access in item.accesses for x in access.parted):
        return None
    if not all(may_be_written_out(item, len(group.dims), start) for item in group.items):
        return None
    outside = columns_outside(group, escaping, nest, start, columns) if start == nest.inner_run[0] else None
    if outside is not None:
        return {nest.argument(nest.inner): columns}, outside
    written = WrittenOut(group, escaping, start, numel(group.dims[start:]), columns, start == nest.inner_run[0])
    if len(written.items) > MOST_ITEMS:
        return None
    sizes = [] if written.is_run else [n for n in written.tail if type(n) is not int]
    certain = {nest.argument(n): hint(n) for n in [*(sizes or [written.inner]), *written.bounds]}
    own = _ShortNest(written, nest)
    certain |= {nest.argument(step): hint(step) for step in own.close_steps()}
    return certain, own.in_tiles(build(written.group, written.escaping, part=own).kernel.body)


def _first_of_parts(group: Group) -> int | None:
    """The first dimension that is written out where operands lie in parts of several small ones; None elsewhere."""
    if any(item.kind != "map" or item.at is not None for item in group.items):
        return None
    parted = sorted({x.dim for item in group.items for access in item.accesses for x in access.parted if x.dim})
    for start in parted:
        columns, rows = hint(numel(group.dims[start:])), hint(numel(group.dims[:start]))
        if columns <= CLOSE or (columns <= MOST_IN_PARTS and rows >= FEWEST_TURNED and start == parted[0]):
            return start
    return None


def at_rows(item: Item) -> bool:
    """Whether it reads or writes rows of a few elements at indices."""
    return item.at is not None and item.split is not None and item.function != ONE_OF_ROW


def are_whole_rows(items: Sequence[Item], start: int) -> bool:
    """Whether items of rows at indices, `start` dimensions of which are rows, are computed row by row.

    They are if they do but arithmetic, each with one vector. Longer rows, which fill a vector and whose columns are
    more code, are so with elementary functions, too, and with a few of those of numbers of a row.
    """
    if any(i.kind != "map" or i.calls or i.function == ONE_OF_ROW or i.split not in (None, start) for i in items):
        return False
    costly = [i for i in items if not (is_cheap(i) or i.gathers)]
    columns = next((hint(numel(i.dims[start:])) for i in items if at_rows(i)), 0)
    return not costly or (columns > CLOSE // 2 and sum(len(i.dims) <= start for i in costly) <= FEW_OF_ROW)


def may_be_written_out(item: Item, dims: int, start: int) -> bool:
    """Whether columns of an item are items, where `start` of so many dimensions are rows."""
    if item.calls:
        return False
    if item.function == ONE_OF_ROW:
        return item.at is None and item.split == start and len(item.dims) == dims
    if item.at is not None and len(item.dims) > start:
        return item.split == start
    if item.window is not None and item.kind != "map":
        return False
    if item.kind != "map" and any(bounds.dim >= start for access in item.accesses for bounds in access.parted):
        return False
    if item.kind == "map":
        return len(item.dims) == dims or len(item.dims) <= start
    known = REDUCERS[item.function]
    written = (item.kind in ("rows", "cols") and known is SUM) or (item.kind == "rows" and known.start is None)
    # sums of integers are the same in any order: longer rows of them are added up as they lie
    few = item.kind == "rows" and hint(numel(item.dims[start:])) < LANES
    kinds = "fi" if few else "f"
    return written and item.split == start and item.dtype.kind in kinds and item.dtype == item.out.dtype


class _ShortNest(InnerNest):
    """Names for the form for short rows."""

    def __init__(self, written: WrittenOut, around: Nest) -> None:
        known = {size_key(n): hint(n) for n in ([] if written.is_run else written.tail)}
        super().__init__(written.group, around, {**known, size_key(written.inner): written.columns})
        self.written = written
        self.read: dict[str, tuple[Place, str]] = {}
        self.made: dict[str, tuple[Place, str]] = {}

    def close_steps(self) -> list[Any]:
        """The sizes by which rows that are read or written lie a few places apart: from now on numbers in the text."""
        found = []
        for item in self.written.items:
            for access in item.accesses if item.window is None else [*item.accesses, item.window]:
                step = self.strides(access.strides)[1]
                if 2 <= hint(step) <= CLOSE and size_key(step) not in self.known:
                    self.known[size_key(step)] = hint(step)
                    found += [] if type(step) is int else [step]
        return found

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


_FORMS = short_columns, counted_columns, _short_form, close_form
