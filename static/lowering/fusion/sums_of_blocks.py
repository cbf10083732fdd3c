"""Sums of everything are begun by the kernel that makes the elements, where its loops go over rows.

``((x - m) ** 2).sum()`` is one loop over all elements where x and m run evenly, and the sum is part of it. If m is one
row for all, the loop goes over rows, and the sum needs another kernel, for which everything would be stored. So the
loop over rows adds up the blocks of the sum as it makes them (`static.lowering.codegen.flat_sums`), and that kernel
sums the list of these, a thousandth of the elements. The sum is defined like this, so no bit changes.
"""

from __future__ import annotations

from common.core.numerics import BLOCK
from common.core.shapes import contiguous_strides
from common.core.sizes import hint, same
from common.core.spec import numel
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.codegen.flat_sums import FLAT
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.codegen.short_rows import MOST_COLUMNS
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item, Operand, is_literal, make_access, sizes_key
from static.lowering.ir.program_values import Work

WORTHWHILE = 1 << 22
"""Bytes of an array from which on it pays: what stays in the second cache is stored and read as fast, and the first
call takes some 20 ms more.
"""
COLUMNS = range(MOST_COLUMNS + 1, 8193)
"""Elements of a row: shorter ones are written out, and longer ones would not stay in the nearest cache."""


def begin_sums(work: Work, groups: list[Group]) -> list[Group]:
    """Groups in which sums are begun by those that make the elements; `work` has their items."""
    group_of = {item.id: group for group in groups for item in group.items}
    users = work.users()
    bound = {b.id for b, _ in work.outputs} | {value.id for _, value in work.writes}
    begun: dict[int, list[Item]] = {}
    for group in groups:
        sums = [item for item in group.items if item.dims]
        makers = [_maker(item, group, group_of, users, bound) for item in sums]
        if not sums or None in makers or len({sizes_key(item.dims) for item in sums}) > 1:
            continue
        for item, maker in zip(sums, makers, strict=True):
            assert maker is not None
            begun.setdefault(maker.id, []).append(_begin(work, item, group_of[maker.id]))
        group.dims, group.breaks = sums[0].dims, 0
        group.name = sizes_key(group.dims)
    if begun:
        work.items = [one for item in work.items for one in (item, *begun.get(item.id, ()))]
        work.kept = {i for i, item in enumerate(work.items) if item.id in work.kept}
        for i, item in enumerate(work.items):
            item.id = i
        for group in groups:
            group.items.sort(key=lambda item: item.id)
    return groups


def _maker(
    item: Item, group: Group, group_of: dict[int, Group], users: dict[int, list[Item]], bound: set[int]
) -> Item | None:
    """The item that makes what is summed, if its kernel can begin the sum and nothing else needs the elements."""
    if item.kind != "rows" or item.split != 0 or REDUCERS[item.function] is not SUM:
        return None
    source = item.operands[0].source
    maker = source.buffer.maker if isinstance(source, Access) else None
    if maker is None or not isinstance(source, Access) or source.prefix != len(item.dims):
        return None
    own = group_of[maker.id]
    full = maker.kind == "map" and len(maker.dims) == len(own.dims) and maker.window is None and not maker.puts
    if own is group or not full or not same(numel(source.buffer.shape), numel(item.dims)):
        return None
    if maker.out.id in bound or any(user is not item and group_of[user.id] is not own for user in users[maker.out.id]):
        return None
    return maker if _goes_by_rows(own) and _is_large(maker) else None


def _is_large(maker: Item) -> bool:
    return hint(numel(maker.dims)) * maker.out.dtype.itemsize >= WORTHWHILE


def _goes_by_rows(group: Group) -> bool:
    """Whether a kernel's loops over rows make one element after the other, in their order."""
    if not group.breaks or any(item.kind not in ("map", "rows", FLAT) for item in group.items):
        return False
    last = max(i for i in range(len(group.dims)) if i == 0 or group.breaks >> (i - 1) & 1 or i == group.split)
    if hint(numel(group.dims[last:])) not in COLUMNS:
        return False
    if any(i.at is not None and i.puts for i in group.items):
        return False
    if not all(
        is_literal(a.strides[-1], 0) or is_literal(a.strides[-1], 1) for i in group.items for a in _full(i, group)
    ):
        return False
    return not any(len(item.dims) < len(group.dims) and not is_cheap(item) for item in group.items)


def _full(item: Item, group: Group) -> list[Access]:
    return [access for access in item.accesses if len(access.strides) == len(group.dims)]


def _begin(work: Work, item: Item, group: Group) -> Item:
    """The item that sums blocks, in the group that makes the elements; the sum reads what it makes."""
    blocks = (numel(item.dims) + BLOCK - 1) // BLOCK
    parts = ArrayBuffer(len(work.buffers), item.dtype, (blocks,))
    work.buffers.append(parts)
    (operand,) = item.operands
    assert isinstance(operand.source, Access)
    dims = group.dims
    made = operand.source.buffer.maker
    assert made is not None
    begun = Item(
        len(work.items) + item.id, item.node, FLAT, dims, item.function, item.dtype,
        [Operand(make_access(made.out, 0, dims, contiguous_strides(dims)), item.dtype)], [parts],
    )  # fmt: skip
    parts.maker = begun
    group.items.append(begun)
    item.dims = (blocks,)
    item.operands = [Operand(make_access(parts, 0, item.dims, (1,)), item.dtype)]
    item.collect()
    return begun
