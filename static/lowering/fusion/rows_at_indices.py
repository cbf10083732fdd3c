"""What may be one kernel with reads or writes of short rows at indices: what leaves their rows written out.

In the form for all sizes such rows take longer than a kernel that gathers them before.
"""

from __future__ import annotations

from common.compiler.close_steps import CLOSE
from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.codegen.short_rows import MOST_ITEMS, are_whole_rows, may_be_written_out
from static.lowering.groups import Group
from static.lowering.ir.items import ONE_OF_ROW, ArrayBuffer, Item, Sizes

REACH = 1 << 22
"""Bytes in which a kernel reads and writes at indices: processors find some thousand pages of 4096 bytes at once. Four
arrays of 1.9 MB took 20 ms in one kernel, in a kernel each 9 ms."""


def short_obstacle(one: Group, two: Group, dims: Sizes, split: int) -> str:
    """Why two groups are not one kernel whose dimensions from `split` on are such rows; empty if they are."""
    items = [*one.items, *two.items]
    few = len(items) * hint(numel(dims[split:])) <= MOST_ITEMS and hint(numel(dims[split:])) <= CLOSE
    if not (are_whole_rows(items, split) or (few and all(may_be_written_out(i, len(dims), split) for i in items))):
        return "rows of a few elements at indices are written out, and these could not be"
    if any(x.dim >= split for item in items for access in item.accesses for x in access.parted):
        return "rows of a few elements at indices are written out, and these lie in parts"
    sizes = [_sizes(group) for group in (one, two)]
    if all(sizes) and sum((sizes[0] | sizes[1]).values()) > REACH:
        return "places in several large arrays are found faster one array after the other"
    return ""


def _sizes(group: Group) -> dict[int, int]:
    """Bytes of the arrays in which a group reads or writes at indices."""
    arrays = (_at_places(item) for item in group.items)
    return {b.id: hint(numel(b.shape)) * b.dtype.itemsize for b in arrays if b is not None}


def _at_places(item: Item) -> ArrayBuffer | None:
    if item.at is None or item.function == ONE_OF_ROW:
        return None
    return item.out if item.puts else item.accesses[0].buffer


__all__ = ["short_obstacle"]
