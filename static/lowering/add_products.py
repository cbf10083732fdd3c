"""Sums of an array and a matrix product: one kernel, which adds to the array what it has in registers.

Gradients of one parameter that is used several times, or in every iteration of a loop, are such sums. A product that
only a sum reads, of an array of its shape, is stored nowhere; it is added whole, as the sum would add it. The kernel
runs where the product did, so the array has to be there by then: of two products the later one is added to the earlier.
To put off a product until the array is there would keep its operands for as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.dim import same
from common.kernels import gemm
from common.spec import numel
from static.lowering.groups import Group, single
from static.lowering.items import Access, Buffer, Item, Operand
from static.lowering.values import Work


def add_products(work: Work, groups: Sequence[Group]) -> list[Group]:
    """Groups in which a product and the sum that reads it are one kernel."""
    readers: dict[int, list[Group]] = {}
    for group in groups:
        for buffer in group.reads:
            readers.setdefault(buffer.id, []).append(group)
    bound = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    written = {value.id for _, value in work.writes}  # those are written in place by a loop
    gone: set[int] = set()
    made: dict[int, Group] = {}
    for group in groups:
        item = group.items[0]
        if len(group.items) > 1 or item.kind != "map" or item.function != "add" or item.out.id in written:
            continue
        for product, addend in sorted((item.operands, item.operands[::-1]), key=_made, reverse=True):
            maker, other = _product(item, product), _whole(item, addend)
            if maker is None or other is None or _made((addend,)) >= maker.id:
                continue
            if maker.out.id not in bound and len(readers[maker.out.id]) == 1:
                gone.add(maker.id)
                joined = made[id(group)] = single(_sum(item, maker, other))
                joined.why_not = group.why_not
                break
    return [made.get(id(group), group) for group in groups if not (group.native and group.items[0].id in gone)]


def _made(operands: Sequence[Operand]) -> int:
    """The number of the item that makes the first operand; -1 if it is there from the start."""
    source = operands[0].source
    return source.buffer.maker.id if isinstance(source, Access) and source.buffer.maker is not None else -1


def _product(item: Item, operand: Operand) -> Item | None:
    """The product of matrices of floats that an operand is."""
    buffer = _whole(item, operand)
    maker = None if buffer is None else buffer.maker
    is_one = maker is not None and maker.kind == "native" and maker.function in ("mm", "bmm")
    return maker if is_one and operand.dtype.kind == "f" else None


def _whole(item: Item, operand: Operand) -> Buffer | None:
    """The buffer whose elements, from the first to the last, are those of an operand, in the dtype of the result."""
    source = operand.source
    if not isinstance(source, Access) or source.prefix != len(item.dims) or source.buffer.constant is not None:
        return None
    buffer = source.buffer
    fits = buffer.dtype == operand.dtype == item.out.dtype and same(numel(buffer.shape), numel(item.dims))
    return buffer if fits else None


def _sum(item: Item, maker: Item, addend: Buffer) -> Item:
    (call,) = maker.calls
    made = Item(
        maker.id, item.node, "native", (), function="add", dtype=item.dtype, operands=[], results=item.results,
        inputs=[*maker.inputs, addend], calls=[gemm.added(call, item.dtype)],
    )  # fmt: skip
    item.out.maker = made
    return made


__all__ = ["add_products"]
