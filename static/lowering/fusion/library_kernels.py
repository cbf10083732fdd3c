"""Sums of functions with kernels of their own: rows are summed without storing elements, columns by the eager engine's
kernels, several rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from common.core.spec import numel
from common.kernels.arrays import mapped_sums, sums
from common.kernels.arrays.mapped_sums import IN_LANES
from common.kernels.arrays.reducers import REDUCERS
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Const, Item, Operand, is_literal, make_access, sizes_key
from static.lowering.ir.kernel_memory import ColumnScratch, Scratch


class KnownColumns(NamedTuple):
    """A call of a kernel of `common.kernels`: its name and source, what its slots are, and its arguments."""

    name: str
    source: str
    things: list[ArrayBuffer | Scratch]
    sizes: list[Any]


def known_sum(operand: Operand) -> tuple[str, Operand] | None:
    """The name in `common.kernels.arrays.mapped_sums.IN_LANES` of what a sum's operand is, and of which operand."""
    return next(((name, found["v"]) for name, found, _ in _known(operand, IN_LANES)), None)


def _known(operand: Operand, patterns: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Operand], set[int]]]:
    """Names of the patterns that make an operand, what it is made of by names, and the ids of the items between."""
    for name, pattern in patterns.items() if operand.dtype.kind == "f" else ():
        found: dict[str, Operand] = {}
        between: set[int] = set()
        if _match(pattern, operand, found, between):
            yield name, found, between


def _match(pattern: Any, operand: Operand, found: dict[str, Operand], between: set[int]) -> bool:
    """Whether an operand is made as a pattern says; collects what its elements are made of."""
    if isinstance(pattern, str):
        return _same(found.setdefault(pattern, operand), operand)
    if not isinstance(pattern, tuple):
        return isinstance(operand.source, Const) and is_literal(operand.source.value, pattern)
    item, (function, *parts) = _maker(operand), pattern
    if item is None or item.function != function:
        return False
    between.add(item.id)
    pairs = zip(parts, item.operands, strict=True)
    return all(_match(part, own, found, between) for part, own in pairs)


def known_columns(group: Group, escaping: set[int]) -> KnownColumns | None:
    """The kernel that reduces columns of a whole array, or of a known function of it, where a group does only that.

    Parameters
    ----------
    escaping : ids of the buffers that something outside the group reads.
    """
    *maps, item = group.items
    if item.kind != "cols" or item.dtype != item.out.dtype:
        return None
    name, found, scratch = item.function, {"v": item.operands[0]}, 0
    make = getattr(sums, f"{name}_cols_source")
    if maps:
        if name != mapped_sums.REDUCTION or any(i.out.id in escaping for i in maps):
            return None
        own = {i.id for i in maps}
        known = [(n, f) for n, f, between in _known(item.operands[0], mapped_sums.PATTERNS) if between == own]
        if not known:
            return None
        name, found = known[0]
        make, scratch = partial(mapped_sums.cols_source, name, out=item.dtype), int(name in mapped_sums.OF_TWO)
    buffers = [_whole(item, found[letter], letter == "m") for letter in ("v", "m") if letter in found]
    if None in buffers:
        return None
    sizes = [numel(item.dims[a:b]) for a, b in ((0, item.lead), (item.lead, item.split), (item.split, None))]
    things: list[Any] = [*buffers, item.out]
    if REDUCERS[item.function].columns:
        things.append(Scratch(item.dtype, ColumnScratch(sizes[1], sizes[2], item.dtype.itemsize, sums.TILE, scratch)))
    return KnownColumns(f"{name}_cols", make(dtype=item.dtype), things, sizes)


def _whole(item: Item, operand: Operand, of_columns: bool) -> ArrayBuffer | None:
    """The buffer whose elements an operand is, in order and in the item's dtype; one per column if `of_columns`."""
    source = operand.source
    if not isinstance(source, Access) or {source.buffer.dtype, operand.dtype} != {item.dtype}:
        return None
    dims, strides = item.dims, source.strides
    if of_columns:
        if not all(is_literal(s, 0) for s in strides[item.lead : item.split]):
            return None
        dims, strides = (x[: item.lead] + x[item.split :] for x in (dims, strides))
        source = make_access(source.buffer, source.offset, dims, strides)
    return source.buffer if source.prefix == len(dims) else None


def _maker(operand: Operand) -> Item | None:
    """The map that makes an operand, element by element and in the same dtype."""
    source = operand.source
    if not isinstance(source, Access) or source.buffer.maker is None or source.buffer.dtype != operand.dtype:
        return None
    item = source.buffer.maker
    return item if item.kind == "map" and source.prefix == len(item.dims) == len(source.strides) else None


def _same(one: Operand, two: Operand) -> bool:
    """Whether two operands are the same elements in the same dtype."""
    a, b = one.source, two.source
    if not isinstance(a, Access) or not isinstance(b, Access) or one.dtype != two.dtype:
        return False
    return a.buffer is b.buffer and sizes_key((a.offset, *a.strides)) == sizes_key((b.offset, *b.strides))
