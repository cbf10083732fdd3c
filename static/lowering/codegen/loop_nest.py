"""The loops of a group: its space as runs of dimensions, and the names of sizes, buffers and places in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE
from common.compiler.loop_ir import Constant, Guarded, Let, Place
from common.core.shapes import contiguous_strides
from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item, Sizes, is_literal, size_key
from static.lowering.ir.kernel_memory import ColumnScratch, Scratch

LONG, MANY = 256, 8192
"""Columns, and elements of all rows, from which on the time of a call counts more than that of its code."""


class Nest:
    """Names for one kernel.

    Attributes
    ----------
    rows, inner : sizes of the outer loops, and of the innermost loop (None for a 0-d space).
    row_names : names of the outer loops' indices.
    bound : what each slot of the kernel is: a buffer or scratch.
    ints : what each int argument of the kernel is: an int or a Dim.
    """

    def __init__(self, group: Group) -> None:
        self.group, self.dims = group, group.dims
        self.runs = self._cut(group)
        sizes = [numel(self.dims[a : b + 1]) for a, b in self.runs]
        flat = group.split == len(self.dims)
        self.inner = None if flat or not sizes else sizes.pop()
        self.inner_run = self.runs.pop() if self.inner is not None else None
        self.rows = sizes
        self.row_names = [f"r{i}" for i in range(len(sizes))]
        self.bound: list[ArrayBuffer | Scratch] = []
        self.ints: list[Any] = []
        self.dtypes: list[np.dtype[Any]] = []
        self._slots: dict[int, int] = {}
        self._names: dict[Any, str] = {}
        self._bases: dict[str, str] = {}
        self._count = 0

    def _cut(self, group: Group) -> list[tuple[int, int]]:
        runs, first = [], 0
        for i in range(len(self.dims)):
            last = i == len(self.dims) - 1
            if last or group.breaks >> i & 1 or i + 1 in (group.split, group.lead):
                runs.append((first, i))
                first = i + 1
        return runs

    @property
    def long(self) -> int:
        """1 if the inner loop has many iterations, and is reached often enough to be worth its code; else 0."""
        return int(self.inner is not None and hint(self.inner) >= LONG and hint(numel(self.dims)) >= MANY)

    # ---------------------------------------------------------------- names
    @property
    def names(self) -> int:
        """How many bases of rows have names."""
        return self._count

    def size(self, value: Any) -> str:
        """The name of the int argument that holds a size, stride or offset; equal values share one."""
        name = size_key(value)
        if name not in self._names:
            self._names[name] = f"n{len(self.ints)}"
            self.ints.append(value)
        return self._names[name]

    def argument(self, value: Any) -> int:
        """The position of the int argument that holds a size."""
        return int(self.size(value)[1:])

    def slot(self, thing: ArrayBuffer | Scratch) -> str:
        """The name of a buffer's slot; a state and what is written into it directly share one, parts do not overlap."""
        part = isinstance(thing, ArrayBuffer) and thing.maker is not None and thing.maker.window is not None
        if (
            part
            and isinstance(thing, ArrayBuffer)
            and thing.storage not in [buffer.storage for buffer in self.group.reads]
        ):
            own: ArrayBuffer | Scratch = thing
        else:
            own = thing.storage if isinstance(thing, ArrayBuffer) else thing
        if id(own) not in self._slots:
            self._slots[id(own)] = len(self.bound)
            self.bound.append(own)
            self.dtypes.append(thing.dtype)
        return f"b{self._slots[id(own)]}"

    def scratch(self, dtype: np.dtype[Any], elements: Any) -> Scratch:
        """New scratch memory; `elements` is a size or a `ColumnScratch`."""
        nbytes = elements if isinstance(elements, ColumnScratch) else elements * dtype.itemsize
        return Scratch(dtype, nbytes)

    # ---------------------------------------------------------------- places
    def strides(self, strides: Sizes) -> tuple[list[Any], Any]:
        """Strides of the row loops and of the inner loop, of an access over leading dimensions of the space."""
        last = [strides[b] if b < len(strides) else 0 for _, b in self.runs]
        if self.inner_run is None:
            return last, 0
        b = self.inner_run[1]
        return last, strides[b] if b < len(strides) else 0

    def batch_strides(self, lead: int) -> list[Any]:
        """Strides of the row loops over the first `lead` dimensions, of an array of these and of the columns."""
        assert self.inner is not None
        strides = contiguous_strides((*self.dims[:lead], self.inner))
        return [strides[b] for _, b in self.runs if b < lead]

    def row_varying(self, access: Access) -> bool:
        """Whether it moves with a row loop."""
        parted = any(not self._is_inner(dim) for dim in _parted(access))
        return parted or any(not is_literal(s, 0) for s in self.strides(access.strides)[0])

    def column_varying(self, access: Access) -> bool:
        """Whether it moves with the inner loop."""
        parted = any(self._is_inner(dim) for dim in _parted(access))
        return parted or not is_literal(self.strides(access.strides)[1], 0)

    def _row(self, dim: int) -> str:
        """The index of the row loop over a dimension."""
        (row,) = [name for name, (_, last) in zip(self.row_names, self.runs, strict=True) if last == dim]
        return row

    def _further(self, place: Place, by: str, rows: list[Any]) -> Place:
        base = self.named(" + ".join(filter(None, (place.base, by))), rows)
        return Place(place.buffer, base, place.var, place.step, place.beside)

    def _is_inner(self, dim: int) -> bool:
        return self.inner_run is not None and self.inner_run[1] == dim

    def element(self, access: Access, rows: list[Any], column: str) -> Place | Guarded:
        """The element of an access, within its bounds; adds the base of its row, and its conditions, to `rows`."""
        place = self.place(access, rows, column)
        if access.jump is not None:
            dim, start, distance = access.jump
            if not self._is_inner(dim):
                further = self.named(f"{self.size(distance)} if {self._row(dim)} >= {self.size(start)} else 0", rows)
                return self._further(place, further, rows)
            other = self._further(place, self.size(distance), rows)
            return Guarded(place, other, "", column, "", self.size(start))
        if not access.within:
            return place
        tests: list[str] = []
        start = stop = ""
        for bounds in access.within:
            if self._is_inner(bounds.dim):
                start, stop = "" if is_literal(bounds.start, 0) else self.size(bounds.start), self.size(bounds.stop)
                continue
            row = self._row(bounds.dim)
            tests += [] if is_literal(bounds.start, 0) else [f"{row} >= {self.size(bounds.start)}"]
            tests.append(f"{row} < {self.size(bounds.stop)}")
        holds, outside = " and ".join(tests), Constant(access.outside, access.buffer.dtype)
        if not stop:
            return Guarded(place, outside, self.named(holds, rows))
        if not place.var:  # one element per row, read where the row has it
            of_row = Guarded(place, outside, holds) if holds else place
            return Guarded(self.named(of_row, rows), outside, "", column, start, stop)
        if holds:
            stop = self.named(f"{stop} if {holds} else 0", rows)
        return Guarded(place, outside, "", column, start, stop)

    def place(self, access: Access, rows: list[Any], column: str, part: ArrayBuffer | None = None) -> Place:
        """The element at which an access is, of a part under its own name; adds the base of its row to `rows`."""
        outer, inner = self.strides(access.strides)
        name = self.slot(access.buffer if part is None else part)
        if type(inner) is int and 1 < inner <= CLOSE and type(access.offset) is int:  # places of one base are a window
            terms = self.base(0, outer, rows), str(access.offset) if access.offset else ""
            return Place(name, " + ".join(filter(None, terms)), column, str(inner))
        base = self.base(access.offset, outer, rows)
        if is_literal(inner, 0):
            return Place(name, base)
        return Place(name, base, column, "" if is_literal(inner, 1) else self.size(inner))

    def own_place(self, item: Item, rows: list[Any], column: str) -> Place:
        """The element of an item's result: of a window, or of a contiguous buffer over its dimensions."""
        if item.window is not None:
            return self.place(item.window, rows, column, item.out)
        outer, inner = self.strides(contiguous_strides(self.dims[: item.level]))
        base = self.base(0, outer, rows)
        return Place(self.slot(item.out), base, "" if is_literal(inner, 0) else column)

    def forget_bases(self) -> None:
        """Begin a row loop of its own, which does not see what another one has named."""
        self._bases.clear()

    def base(self, offset: Any, outer: list[Any], rows: list[Any]) -> str:
        """The name of ``offset + r0 * s0 + ...``; empty if that is 0."""
        terms = [] if is_literal(offset, 0) else [self.size(offset)]
        for i, stride in enumerate(outer):
            if is_literal(stride, 1):
                terms.append(self.row_names[i])
            elif not is_literal(stride, 0):
                terms.append(f"{self.row_names[i]} * {self.size(stride)}")
        if len(terms) < 2 and "*" not in "".join(terms):
            return "".join(terms)
        return self.named(" + ".join(terms), rows)

    def named(self, value: str | Place | Guarded, rows: list[Any]) -> str:
        """The name of an expression in a row."""
        text = str(value)
        if text not in self._bases:
            self._bases[text] = f"q{self._count}"
            self._count += 1
            rows.append(Let(self._bases[text], value))
        return self._bases[text]


def _parted(access: Access) -> list[int]:
    """The dimensions of which an access has conditions."""
    return [bounds.dim for bounds in access.within] + ([] if access.jump is None else [access.jump.dim])


class InnerNest(Nest):
    """Names for a form of a kernel that is used where some sizes are certain numbers.

    Parameters
    ----------
    around : the names of the kernel, whose slots and arguments these are.
    known : size -> the number that it is.
    """

    def __init__(self, group: Group, around: Nest, known: dict[Any, int]) -> None:
        super().__init__(group)
        self.around, self.known = around, known
        self.bound, self.ints, self.dtypes = around.bound, around.ints, around.dtypes
        self._count = around.names

    def size(self, value: Any) -> str:
        """The name of a size, or the number that it is."""
        number = self.known.get(size_key(value))
        return self.around.size(value) if number is None else str(number)

    def slot(self, thing: ArrayBuffer | Scratch) -> str:
        """The name of a buffer's slot."""
        return self.around.slot(thing)

    def scratch(self, dtype: np.dtype[Any], elements: Any) -> Scratch:
        """New scratch memory."""
        return self.around.scratch(dtype, elements)
