"""Sums over rows of functions that machine code is known for: no loop has to store what is summed."""

from __future__ import annotations

from typing import Any

from common.kernels.mapped import IN_LANES
from static.lowering.items import Access, Const, Item, Operand, is_literal, sizes_key


def known_sum(operand: Operand) -> tuple[str, Operand] | None:
    """The name in `common.kernels.mapped.IN_LANES` of what a sum's operand is, and of which operand."""
    if operand.dtype.kind != "f":
        return None
    for name, pattern in IN_LANES.items():
        found: list[Operand] = []
        if _match(pattern, operand, found) and all(_same(found[0], other) for other in found[1:]):
            return name, found[0]
    return None


def _match(pattern: Any, operand: Operand, found: list[Operand]) -> bool:
    """Whether an operand is made as a pattern says; collects what its elements are made of."""
    if pattern == "v":
        found.append(operand)
        return True
    if not isinstance(pattern, tuple):
        return isinstance(operand.source, Const) and is_literal(operand.source.value, pattern)
    item, (function, *parts) = _maker(operand), pattern
    if item is None or item.function != function:
        return False
    return all(_match(part, own, found) for part, own in zip(parts, item.operands, strict=True))


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
