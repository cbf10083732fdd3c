"""Operands that lie across the rows of a loop, such as a transposed matrix: turned tile by tile.

Where a row is read with a long stride, each element is on a cache line of its own, which the next row needs again. So
some rows are done together, and before them what they read is written to scratch memory in their order, which takes
each line once::

    for m0 in range(0, n0, 16):
        m1 = min(m0 + 16, n0)
        turn_rows(b3, 0, b0, m0, n1, n2, m1 - m0, n1)
        for r0 in range(m0, m1):
            q0 = (r0 - m0) * n1
            for c in range(n1):
                t1 = b3[q0 + c]
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from common.compiler.loop_ir import Call, Let, Loop, Place, Run
from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.codegen.loop_nest import Nest
from static.lowering.codegen.row_blocks import in_blocks
from static.lowering.groups import Group
from static.lowering.ir.items import Access, is_literal, size_key, sizes_key

ROWS = 16
"""Rows that are done together: as many floats as a cache line holds."""
LONGEST = 65536
"""Elements of a row up to which a tile stays in the last cache: 4 MB of floats."""
MOST = 4
"""Operands that are turned."""
SMALL = 4096
"""Elements of which all lines stay in the cache anyway."""


class Tiles:
    """The operands of a group that are turned, for a loop over rows.

    Attributes
    ----------
    row : which of the row loops goes by tiles; -1 if none does.
    accesses : what is turned, each element once.
    turned : what `_lies` says of an access -> the scratch memory that holds its tile.
    in_order : whether a row is done before the next one begins, see `static.lowering.codegen.row_blocks`.
    """

    def __init__(self, group: Group, nest: Nest, allowed: bool) -> None:
        self.nest, self.row, self.turned = nest, -1, dict[Any, str]()
        self.accesses: dict[Any, Access] = {}
        self.in_order = not allowed or any(item.kind in ("cols", "flat") or item.puts for item in group.items)
        if not allowed or nest.inner is None or not nest.rows:
            return
        if any(i.kind in ("cols", "flat") or i.at is not None for i in group.items):
            return
        if hint(nest.inner) > LONGEST or hint(numel(group.dims)) <= SMALL:
            return
        own = {item.id for item in group.items}
        read = [access for item in group.items for access in item.accesses]
        outside = [a for a in read if not a.in_pieces and (a.buffer.maker is None or a.buffer.maker.id not in own)]
        across = [(row, a) for a in outside if (row := self._across(a)) is not None]
        if across:
            ((self.row, _),) = Counter(row for row, _ in across).most_common(1)
            found = {_lies(a): a for row, a in across if row == self.row}
            self.accesses = dict(list(found.items())[:MOST])

    def _across(self, access: Access) -> int | None:
        """The row loop along which an access goes from element to element, if the inner loop does not."""
        outer, inner = self.nest.strides(access.strides)
        if is_literal(inner, 0) or is_literal(inner, 1):
            return None
        return next((i for i, stride in enumerate(outer) if is_literal(stride, 1) or is_literal(stride, -1)), None)

    def _goes_back(self, access: Access) -> bool:
        """Whether the rows that are done together lie in the memory of an access from the last to the first."""
        return is_literal(self.nest.strides(access.strides)[0][self.row], -1)

    def place(self, access: Access, rows: list[Any], column: str) -> Place | None:
        """Where an element lies in its tile; None if the access is not turned."""
        nest, where = self.nest, _lies(access)
        if where not in self.accesses or access.in_pieces:
            return None
        if where not in self.turned:
            assert nest.inner is not None
            self.turned[where] = nest.slot(nest.scratch(access.buffer.dtype, ROWS * nest.inner))
        name = nest.row_names[self.row]
        row = f"(m1 - 1 - {name})" if self._goes_back(access) else f"({name} - m0)"
        base = nest.named(f"{row} * {nest.size(nest.inner)}", rows)
        return Place(self.turned[where], base, column)

    def loops(self, body: list[Any], rows: list[Any]) -> list[Any]:
        """The loops over rows, around the statements of one."""
        nest = self.nest
        if rows and self.row < 0 and not self.in_order and (block := in_blocks(nest, body)) is not None:
            body, rows = [block], rows[:-1]
        count = len(rows)
        if self.row >= 0:
            fills: list[Any] = []
            for where, access in self.accesses.items():
                fills += self._fill(access, self.turned[where]) if where in self.turned else []
            body = [*fills, Loop(nest.row_names[self.row], "m1", body, start="m0")]
        for i in reversed(range(self.row + 1, count)):
            body = [Loop(nest.row_names[i], nest.size(rows[i]), body)]
        if self.row >= 0:
            end = Let("m1", f"min(m0 + {ROWS}, {nest.size(rows[self.row])})")
            body = [Loop("m0", nest.size(rows[self.row]), [end, *body], step=str(ROWS))]
        for i in reversed(range(max(self.row, 0))):
            body = [Loop(nest.row_names[i], nest.size(rows[i]), body)]
        return body

    def _fill(self, access: Access, tile: str) -> list[Any]:
        """The statements that turn a tile of an operand."""
        nest, lets = self.nest, list[Any]()
        assert nest.inner is not None
        outer, inner = nest.strides(access.strides)
        nest.forget_bases()
        base = nest.base(access.offset, [0 if i == self.row else stride for i, stride in enumerate(outer)], lets)
        first = "1 - m1" if self._goes_back(access) else "m0"
        first = f"{base} + {first}" if base else first
        columns = nest.size(nest.inner)
        sizes = columns, nest.size(inner), "m1 - m0", columns
        return [*lets, Run(Call("turn_rows", (tile, "0", nest.slot(access.buffer), first, *sizes)))]


def _lies(access: Access) -> Any:
    """A hashable name of where the elements of an access lie."""
    return access.buffer.id, size_key(access.offset), sizes_key(access.strides)
