"""Groups whose short rows are written out: every element of a row is an item of its own over the rows.

See `static.lowering.codegen.short_rows`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE
from common.core.numerics import LANES
from common.core.op import CHOOSE, EQUAL
from common.core.shapes import contiguous_strides
from common.core.sizes import hint
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.groups import Group
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    Bounds,
    Const,
    Item,
    Jump,
    Operand,
    Sizes,
    is_literal,
    make_access,
    size_key,
    sizes_key,
    strip_ones,
)


@dataclass(eq=False)
class WrittenOut:
    """A group with its columns written out.

    Attributes
    ----------
    is_run : whether the columns are one run of places; else each dimension of them has a stride of its own.
    original : new buffer's id -> the buffer of the group that it stands for, a column of it maybe.
    bounds : of operands that lie in parts, where these end, if they are no numbers in the text.
    place_of : id of a new access -> its column, where that is not part of the offset.
    """

    source: Group
    outside: set[int]
    start: int
    inner: Any
    columns: int
    is_run: bool
    items: list[Item] = field(default_factory=list)
    bounds: list[Any] = field(default_factory=list)
    escaping: set[int] = field(default_factory=set)
    original: dict[int, ArrayBuffer] = field(default_factory=dict)
    place_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own = {item.out.id for item in self.source.items}
        self._made: dict[tuple[int, int], ArrayBuffer] = {}
        self._same: dict[tuple[int, int], Operand] = {}  # columns that are copies of others, or numbers
        self._above: set[int] = set()  # ids of sums with +0.0, which are never -0.0
        self.tail = self.source.dims[self.start :]
        self._places = list(np.ndindex(*map(hint, self.tail)))
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
                if full and (same := self._same_as(item, function, operands)) is not None:
                    self._same[item.out.id, j] = same
                    continue
                place = (*self._spot(offset, strides, j), strides[: self.start]) if full else None
                part = None if place is None else (place[0], place[2], place[1], j)
                made = self._add(item, "map", dims, operands, function, part)
                self._made[item.out.id, j if full else -1] = made
                if not full:
                    self._keep(item, made)

    def _same_as(self, item: Item, function: str, operands: list[Operand]) -> Operand | None:
        """The operand, or number, that a column of a map is for certain."""
        if item.out.id in self.outside or item.dtype != item.out.dtype:
            return None
        if function == "":
            (x,) = operands
            return x if isinstance(x.source, Const) or x.source.buffer.dtype == x.dtype == item.dtype else None
        if function != SUM.join or item.dtype.kind != "f":
            return None
        zeros = [_is_plus_zero(x) for x in operands]
        if any(zeros):
            other = operands[zeros.index(True) - 1]
            if all(zeros) or (isinstance(other.source, Access) and other.source.buffer.id in self._above):
                return other
        return None

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
        if join == SUM.join and item.dtype.kind == "f":
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
            window=window, at=item.at if function == item.function else None,
        )  # fmt: skip
        out.maker = made
        self.items.append(made)
        if function == SUM.join and item.dtype.kind == "f" and kind == "map":
            read = (x.source.buffer.id for x in operands if isinstance(x.source, Access))
            if any(map(_is_plus_zero, operands)) or not self._above.isdisjoint(read):
                self._above.add(out.id)
        return out

    def _spot(self, offset: Any, strides: Sizes, j: int) -> tuple[Any, Any]:
        """Where column `j` is: an offset of its row, and the step between columns, 0 if the offset is the column's."""
        if self.is_run or len(strides) <= self.start:
            return offset, strides[-1] if len(strides) > self.start else 0
        steps = strides[self.start :]
        if sizes_key(steps) == sizes_key(contiguous_strides(self.tail)):
            return offset, 1
        for index, step in zip(self._places[j], steps, strict=True):
            offset = offset + index * step
        return offset, 0

    def _column(self, operand: Operand, dims: Sizes, j: int) -> Operand:
        """Column `j` of an operand."""
        access = operand.source
        if isinstance(access, Const):
            return operand
        own, strides = len(dims), access.strides
        if access.buffer.id in self._own:
            if (same := self._same.get((access.buffer.id, j))) is not None:
                return Operand(same.source, operand.dtype)
            made = self._made.get((access.buffer.id, -1)) or self._made[access.buffer.id, j]
            shape = made.shape
            steps = (*contiguous_strides(shape), *[0] * (own - len(shape)))
            return Operand(make_access(made, 0, dims, steps), operand.dtype)
        offset, inside = access.offset, [x for x in access.parted if x.dim >= self.start]
        for x in inside:
            index, stop = self._places[j][x.dim - self.start], x.stop if isinstance(x, Bounds) else None
            self.bounds += [n for n in (x.start, stop) if n is not None and type(n) is not int]
            beyond = index >= hint(x.start)
            if isinstance(x, Jump):
                offset = offset + x.distance if beyond else offset
            elif not (beyond and index < hint(x.stop)):
                return Operand(Const(access.outside), operand.dtype)
        if inside and self._is_of_whole_rows(access, offset, j, dims):
            place = self._place(access.buffer, 0, dims, strides[:own], 1, offset + j)
            return Operand(place, operand.dtype)
        whole = not access.in_pieces
        offset, step = self._spot(offset, strides, j)
        place = self._place(access.buffer, offset, dims, strides[:own], step, j, whole, not inside)
        if not whole:
            place.within = tuple(x for x in access.within if x.dim < self.start)
            place.jump = access.jump if access.jump is not None and access.jump.dim < self.start else None
            if place.in_pieces:
                place.outside, place.prefix = access.outside, None
                place.breaks |= access.breaks & ((1 << max(own - 1, 0)) - 1)
        return Operand(place, operand.dtype)

    def _is_of_whole_rows(self, access: Access, offset: Any, j: int, dims: Sizes) -> bool:
        """Whether column `j` of an operand in pieces is a column of rows that all exist, and that others read, too."""
        shape = strip_ones(access.buffer.shape)
        if type(offset) is not int or not 0 <= offset + j < self.columns or not self.is_run or not shape:
            return False
        if any(x.dim < self.start for x in access.parted) or size_key(shape[-1]) != size_key(self.inner):
            return False
        return sizes_key(access.strides) == sizes_key(contiguous_strides((*dims, self.inner)))

    def _place(
        self, buffer: ArrayBuffer, offset: Any, dims: Sizes, strides: Sizes, step: Any, j: int, whole: bool = True,
        complete: bool = True,
    ) -> Access:  # fmt: skip
        """Column `j` of an array; what is not `whole` is not turned, since some of its rows do not exist there.

        Of rows that are not `complete` other columns may not exist.
        """
        beside = complete and is_literal(step, 1) and bool(strides) and self._turns(strides[-1], whole)
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


def _is_plus_zero(operand: Operand) -> bool:
    value = operand.source.value if isinstance(operand.source, Const) else None
    return isinstance(value, (int, float)) and value == 0 and not math.copysign(1, value) < 0


__all__ = ["WrittenOut"]
