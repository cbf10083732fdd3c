"""Elementary functions of rows of a few elements: a loop over columns, which all do the same, around one over rows.

Written out, each column would be code of its own, and elementary functions are much code. What is but arithmetic is
written out, because reading rows once takes less time::

    for m0 in range(0, n1, 512):
        m1 = min(m0 + 512, n1)
        for r0 in range(3):
            u1 = b1[r0]
            for c in range(m0, m1):
                u2 = b0[r0 + c * 3]
                ...
                b2[r0 + c * 3] = u9
"""

from __future__ import annotations

from itertools import count
from typing import Any

from common.compiler.close_steps import CLOSE
from common.compiler.loop_ir import Let, Loop
from common.core.shapes import contiguous_strides
from common.core.sizes import hint
from static.lowering.codegen.build import build
from static.lowering.codegen.loop_nest import InnerNest, Nest
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.groups import Group
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    Item,
    Operand,
    Sizes,
    make_access,
    size_key,
    sizes_key,
)
from static.lowering.ir.kernel_memory import Scratch

LEAST = 3
"""Elementary functions of a column from which on columns are not written out."""
BLOCK = 512
"""Rows whose columns are gone through one after the other, so that they stay in the cache."""


def columns_outside(group: Group, escaping: set[int], nest: Nest, start: int, columns: int) -> list[Any] | None:
    """The statements for rows of so many elements, which the dimensions from `start` on are; None if they do not serve.

    Each column is computed in a pass of its own, so nothing may be overwritten that another one reads, and what rows
    share is computed for each column again.
    """
    costly = [item for item in group.items if len(item.dims) > start and not is_cheap(item)]
    if columns > CLOSE or len(nest.rows) != 1 or len(costly) < LEAST:
        return None
    written = [item.out.storage for item in group.items if item.out.id in escaping]
    if any(buffer.storage in written for buffer in group.reads):
        return None
    for item in group.items:
        if item.kind != "map" or item.function == ONE_OF_ROW or item.at is not None or item.calls:
            return None
        if len(item.dims) <= start and (item.out.id in escaping or (item.dims and not is_cheap(item))):
            return None
        if any(access.parted for access in item.accesses):
            return None
    turned = _Turned(group, escaping, start)
    own = _TurnedNest(turned, nest, {size_key(nest.inner): columns})
    steps = (own.strides(access.strides)[1] for item in turned.items for access in _places(item))
    if own.inner is None or len(own.rows) != 1 or any(hint(step) not in (0, 1, columns) for step in steps):
        return None
    *head, loop = build(turned.group, turned.escaping, part=own).kernel.body
    *lets, inner = loop.body
    if not isinstance(inner, Loop) or not all(isinstance(x, Let) for x in [*head, *lets]):
        return None
    rows = inner.stop
    passes = Loop(loop.var, loop.stop, [*lets, Loop(inner.var, "m1", inner.body, start="m0")])
    return [*head, Loop("m0", rows, [Let("m1", f"min(m0 + {BLOCK}, {rows})"), passes], step=str(BLOCK))]


class _Turned:
    """The items of a group over a space whose last dimensions, from `start` on, come first.

    Attributes
    ----------
    original : new buffer's id -> the buffer that it stands for.
    """

    def __init__(self, source: Group, escaping: set[int], start: int) -> None:
        self._start, self._count, self._numbers = start, len(source.dims), count(1 << 40)
        self.items, self.escaping, self.original = list[Item](), set[int](), dict[int, ArrayBuffer]()
        self._made: dict[int, ArrayBuffer] = {}
        self.dims = (*source.dims[start:], *source.dims[:start])
        for item in source.items:
            dims = self.dims if item.dims else ()
            out = self._made[item.out.id] = ArrayBuffer(next(self._numbers), item.out.dtype, dims)
            window = None
            if item.out.id in escaping:
                place = item.window or make_access(item.out, 0, item.dims, contiguous_strides(item.dims))
                window = self._access(item.out, place.offset, place.strides, dims)
                self.original[out.id] = out.into = item.out
                self.escaping.add(out.id)
            operands = [Operand(self._source(x.source, dims), x.dtype) for x in item.operands]
            out.maker = made = Item(
                next(self._numbers), item.node, "map", dims, item.function, item.dtype, operands, [out],
                window=window,
            )  # fmt: skip
            self.items.append(made)
        breaks = 0
        for item in self.items:
            for access in _places(item):
                breaks |= access.breaks
        self.group = Group(self.items, self.dims, sizes_key(self.dims), None, breaks)

    def _source(self, source: Any, dims: Sizes) -> Any:
        if not isinstance(source, Access):
            return source
        made = self._made.get(source.buffer.id)
        if made is not None:
            return make_access(made, 0, dims, contiguous_strides(dims) if made.shape else (0,) * len(dims))
        return self._access(source.buffer, source.offset, source.strides, dims)

    def _access(self, buffer: ArrayBuffer, offset: Any, strides: Sizes, dims: Sizes) -> Access:
        whole = (*strides, *[0] * (self._count - len(strides)))
        return make_access(buffer, offset, dims, (*whole[self._start :], *whole[: self._start]) if dims else ())


def _places(item: Item) -> list[Access]:
    return item.accesses if item.window is None else [*item.accesses, item.window]


class _TurnedNest(InnerNest):
    """Names for it."""

    def __init__(self, turned: _Turned, around: Nest, known: dict[Any, int]) -> None:
        super().__init__(turned.group, around, known)
        self.original = turned.original

    def slot(self, thing: ArrayBuffer | Scratch) -> str:
        """The name of a buffer's slot."""
        return super().slot(self.original.get(thing.id, thing) if isinstance(thing, ArrayBuffer) else thing)
