"""Columns of a few elements: what is reduced is written out, and the loop goes over the columns.

The sum over 9 states of ``a[:, :, None] + transitions`` has a kernel whose loop over the states is written out, for the
number of states that there is now. Nothing waits in memory for the next state::

    if n0 == 9 and n1 == 9:
        for r0 in range(n2):
            u1 = b0[q0]
            u4 = b0[q0 + 1]
            ...
            for c in range(9):
                u2 = b1[c]
                u3 = add(u1, u2)
                ...
                b2[q1 + c] = u30
        return 0

Sums have the order of `static.lowering.codegen.short_rows`, extremes any.
"""

from __future__ import annotations

from typing import Any

from common.compiler.loop_ir import Place
from common.core.numerics import LANES
from common.core.shapes import contiguous_strides
from common.core.sizes import hint
from common.core.spec import numel
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.codegen.build import build
from static.lowering.codegen.loop_nest import InnerNest, Nest
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.codegen.written_rows import WrittenOut
from static.lowering.groups import Group
from static.lowering.ir.items import (
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

MOST = 2 * LANES
"""Elements of a column that is written out."""
MOST_ITEMS = 160
"""Operations of all of them: the code grows with them."""
MOST_FUNCTIONS = 12
"""Elementary functions of all of them, where a loop goes over the columns."""
FEWEST_COLUMNS = 3
"""Columns from which on a vector of them is worth it; fewer are written out as rows."""
FEWEST_ELEMENTS = 2048
"""Elements for which a kernel for one number of rows is worth its first call: a network's batch may have any number."""
KNOWN = 2 * LANES
"""Columns up to which their number stands in the text, by which rows are known to be apart."""


def short_columns(group: Group, escaping: set[int], nest: Nest) -> tuple[dict[int, int], list[Any]] | None:
    """Sizes by their arguments, and the form for them; None if columns are not short, or cannot be written out."""
    if nest.inner is None or hint(numel(group.dims)) * group.runs < FEWEST_ELEMENTS:
        return None
    if not are_short_columns(group, escaping, nest):
        return None
    assert group.split is not None
    lead, columns = group.lead, hint(nest.inner)
    turned, start = _ReducedLast(group, escaping, lead, group.split), len(group.dims) - 1
    written = WrittenOut(turned.group, escaping, start, group.dims[lead], hint(group.dims[lead]), True)
    known = [group.dims[lead], *([nest.inner] if columns <= KNOWN else [])]
    certain = {nest.argument(n): hint(n) for n in known}
    known += [nest.inner * j for j in range(2, written.columns)] if columns <= KNOWN else []
    own = _ColumnNest(written, nest, {size_key(n): hint(n) for n in known})
    return certain, build(written.group, written.escaping, part=own).kernel.body


def are_short_columns(group: Group, escaping: set[int], nest: Nest) -> bool:
    """Whether what a group reduces is written out."""
    lead, split = group.lead, group.split
    if split is None or split - lead != 1 or nest.inner is None or nest.inner_run is None:
        return False
    if nest.inner_run[0] != split or hint(nest.inner) < FEWEST_COLUMNS or not 2 <= hint(group.dims[lead]) <= MOST:
        return False
    count, costly = hint(group.dims[lead]), sum(not (is_cheap(item) or item.gathers) for item in group.items)
    if count * len(group.items) > MOST_ITEMS:
        return False
    if costly and hint(nest.inner) > KNOWN:  # elements of one row may be those of the next, for all that the text says
        stored = any(i.kind == "map" and i.out.id in escaping and len(i.dims) > split for i in group.items)
        if stored or count * costly > MOST_FUNCTIONS:
            return False
    reduces = any(item.kind == "cols" for item in group.items)
    return reduces and _ReducedLast(group, escaping, lead, split).possible


def is_short_batch(group: Group, escaping: set[int]) -> bool:
    """Whether few elements of each column of a batch are reduced, so that this takes less than a kernel for any."""
    short = 0 < group.lead < len(group.dims) and 2 <= hint(group.dims[group.lead]) <= MOST_FUNCTIONS
    return (
        short
        and hint(numel(group.dims)) * group.runs >= FEWEST_ELEMENTS
        and are_short_columns(group, escaping, Nest(group))
    )


class _ReducedLast:
    """The items of a group, with the dimension that is reduced behind all others.

    Attributes
    ----------
    possible : whether they can be written out.
    """

    def __init__(self, source: Group, escaping: set[int], lead: int, split: int) -> None:
        self._lead, self._split, self._dims, self._escaping = lead, split, source.dims, escaping
        self._own = {item.out.id for item in source.items}
        self.possible = all(map(self._is_possible, source.items))
        dims = self._turned(source.dims)
        self.group = Group([], dims, sizes_key(dims), len(dims) - 1, 0)
        if self.possible:
            self.group.items += [self._item(item) for item in source.items]

    def _is_possible(self, item: Item) -> bool:
        if item.puts or item.calls or item.kind not in ("map", "cols"):
            return False
        if any(access.parted for access in item.accesses) or len(item.results) > 1:
            return False
        inside = [x for x in item.accesses if x.buffer.id not in self._own]
        if len(item.dims) > self._split and not all(_is_even(x.strides[self._split :]) for x in inside):
            return False
        if item.kind == "cols":
            known = REDUCERS[item.function]
            whole = item.dtype.kind == "f" and item.dtype == item.out.dtype and item.window is None
            return (
                whole
                and item.split == self._split
                and item.lead == self._lead
                and (known is SUM or known.start is None)
            )
        if len(item.dims) == self._split:
            return item.out.id not in self._escaping and item.window is None
        return len(item.dims) == len(self._dims) or len(item.dims) <= self._lead

    def _turned(self, sizes: Sizes) -> Sizes:
        """Sizes, or strides, of all dimensions in the new order."""
        return (*sizes[: self._lead], *sizes[self._split :], *sizes[self._lead : self._split])

    def _item(self, item: Item) -> Item:
        if len(item.dims) <= self._lead:
            return item
        dims, window = self.group.dims, None
        if item.kind == "map" and item.out.id in self._escaping:
            place = item.window or make_access(item.out, 0, item.dims, contiguous_strides(item.dims))
            window = make_access(place.buffer, place.offset, dims, self._turned(place.strides))
        operands = [Operand(self._source(x.source), x.dtype) for x in item.operands]
        kind, split = ("rows", len(dims) - 1) if item.kind == "cols" else ("map", None)
        return Item(
            item.id,
            item.node,
            kind,
            dims,
            item.function,
            item.dtype,
            operands,
            item.results,
            split=split,
            window=window,
            at=item.at,
        )

    def _source(self, source: Access | Const) -> Access | Const:
        if isinstance(source, Const) or source.buffer.id in self._own:
            return source
        strides = (*source.strides, *[0] * (len(self._dims) - len(source.strides)))
        return make_access(source.buffer, source.offset, self.group.dims, self._turned(strides))


def _is_even(strides: Sizes) -> bool:
    """Whether columns lie side by side, or are one."""
    return not strides or is_literal(strides[-1], 1) or all(is_literal(step, 0) for step in strides)


class _ColumnNest(InnerNest):
    """Names for the form for short columns."""

    def __init__(self, written: WrittenOut, around: Nest, known: dict[Any, int]) -> None:
        super().__init__(written.group, around, known)
        self.written = written

    def place(self, access: Access, rows: list[Any], column: str, part: ArrayBuffer | None = None) -> Place:
        """The element at which an access is: those of a column have one base, and distances that are numbers."""
        (outer, inner), offset = self.strides(access.strides), access.offset
        beside = offset if type(offset) is int else self.known.get(size_key(offset))
        if not beside or not is_literal(inner, 1):
            return super().place(access, rows, column, part)
        slot = self.slot(access.buffer if part is None else part)
        return Place(slot, self.base(0, outer, rows), column, "", str(beside))

    def slot(self, thing: ArrayBuffer | Scratch) -> str:
        """The name of a buffer's slot."""
        return super().slot(self.written.original.get(thing.id, thing) if isinstance(thing, ArrayBuffer) else thing)


__all__ = ["short_columns"]
