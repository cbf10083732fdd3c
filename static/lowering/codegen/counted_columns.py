"""Rows of a few elements, one vector each: their number stands in the text.

A loop over three elements whose number is an argument tests, at every row, how many vectors they fill::

    if n1 == 3:
        for r0 in range(n3):
            for r1 in range(n2):
                q0 = r0 * n0 + r1 * 3
                for c in range(3):
                    ...

is one vector of three elements per row.
"""

from __future__ import annotations

from typing import Any

from common.core.numerics import LANES
from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.codegen.build import build
from static.lowering.codegen.loop_nest import InnerNest, Nest
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.codegen.short_columns import FEWEST_ELEMENTS
from static.lowering.groups import Group
from static.lowering.ir.items import Item, size_key

MOST = 2 * LANES
"""Elements of a row that is counted."""
SIDE_BY_SIDE = 4, 6
"""Elements of which one vector per row is as fast as vectors of many rows: for arithmetic, and for functions."""
OF_ROWS = 4
"""Operations of numbers of a row that may be done one by one."""


def counted_columns(group: Group, escaping: set[int], nest: Nest) -> tuple[dict[int, int], list[Any]] | None:
    """The length of rows by its argument, and the form for it; None if vectors of many rows are faster, or the text."""
    if nest.inner is None or not nest.rows or not 2 <= hint(nest.inner) <= MOST:
        return None
    columns, rows = hint(nest.inner), len(group.dims) if nest.inner_run is None else nest.inner_run[0]
    if hint(numel(group.dims)) < FEWEST_ELEMENTS or not all(map(_is_of_columns, group.items)):
        return None
    of_rows = [item for item in group.items if len(item.dims) <= rows]
    if len(of_rows) > OF_ROWS or not all(map(is_cheap, of_rows)):
        return None
    if hint(nest.rows[-1]) >= LANES and columns < SIDE_BY_SIDE[not all(map(is_cheap, group.items))]:
        return None
    own = InnerNest(group, nest, {size_key(nest.inner): columns})
    return {nest.argument(nest.inner): columns}, build(group, escaping, part=own).kernel.body


def _is_of_columns(item: Item) -> bool:
    """Whether it computes elements of columns, of whole arrays."""
    whole = item.at is None and not item.calls and not any(access.parted for access in item.accesses)
    return whole and item.kind in ("map", "cols")


__all__ = ["counted_columns"]
