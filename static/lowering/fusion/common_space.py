"""One space for two groups whose shapes differ by a reshape: (B*T, C) is (B, T, C) with two dimensions taken as one."""

from __future__ import annotations

from typing import Any

from common.core.sizes import same
from common.core.spec import numel
from static.lowering.groups import Group
from static.lowering.ir.items import Access, Item, Sizes, is_literal, make_access, size_key, sizes_key


def align(one: Group, two: Group) -> bool:
    """Rewrite one of two groups over the dimensions of the other, if both have as many elements."""
    if one.native or two.native or one.name == two.name or not one.dims or not two.dims:
        return False
    if any(access.in_pieces for group in (one, two) for item in group.items for access in item.accesses):
        return False
    if size_key(numel(one.dims)) != size_key(numel(two.dims)):
        return False
    for coarse, fine in ((one, two), (two, one)):
        runs = partition(coarse.dims, fine.dims)
        if runs is not None:
            refine(coarse, fine.dims, runs)
            return True
    for flat, other in ((one, two), (two, one)):
        if _is_flat(flat):
            _flatten(flat)
            refine(flat, other.dims, [len(other.dims)])
            return True
    return False


def partition(coarse: Sizes, fine: Sizes) -> list[int] | None:
    """For each coarse dimension, how many consecutive fine ones multiply to it; None if they do not."""
    counts, position = [], 0
    for size in coarse:
        product: Any = 1
        start = position
        while not same(product, size):
            if position == len(fine):
                return None
            product = product * fine[position]
            position += 1
        counts.append(position - start)
    return counts if position == len(fine) else None


def refine(group: Group, dims: Sizes, counts: list[int]) -> None:
    """Rewrite a group over finer dimensions; any access can follow, since one stride gives the others."""
    starts = [sum(counts[:i]) for i in range(len(counts) + 1)]
    breaks = 0
    for item in group.items:
        own = dims[: starts[len(item.dims)]]
        for operand in item.operands:
            if isinstance(operand.source, Access):
                access = operand.source
                operand.source = make_access(access.buffer, access.offset, own, _split(access.strides, own, counts))
                breaks |= operand.source.breaks
        if item.window is not None:
            access = item.window
            item.window = make_access(access.buffer, access.offset, own, _split(access.strides, own, counts))
            breaks |= item.window.breaks
        item.dims = own
        item.split = None if item.split is None else starts[item.split]
        item.lead = starts[item.lead]
        item.collect()
    group.split = None if group.split is None else starts[group.split]
    group.dims, group.name, group.breaks = dims, sizes_key(dims), breaks


def _split(strides: Sizes, dims: Sizes, counts: list[int]) -> Sizes:
    out: list[Any] = []
    for stride, count in zip(strides, counts, strict=False):
        run = dims[len(out) : len(out) + count]
        for i in range(count):
            out.append(0 if is_literal(stride, 0) else stride * numel(run[i + 1 :]))
    return tuple(out)


def _is_flat(group: Group) -> bool:
    """Whether every operand is a number or is read element by element, so that shape does not matter."""
    return group.split is None and all(_ignores_shape(item, len(group.dims)) for item in group.items)


def _ignores_shape(item: Item, count: int) -> bool:
    return (
        item.kind == "map"
        and item.window is None
        and len(item.dims) in (0, count)
        and all(access.prefix in (0, len(item.dims)) for access in item.accesses)
    )


def _flatten(group: Group) -> None:
    total = numel(group.dims)
    for item in group.items:
        dims = (total,) if item.dims else ()
        for operand in item.operands:
            if isinstance(operand.source, Access) and dims:
                access = operand.source
                operand.source = make_access(access.buffer, 0, dims, (1 if access.prefix else 0,))
        item.dims = dims
        item.collect()
    group.dims, group.name, group.breaks = (total,), sizes_key((total,)), 0
