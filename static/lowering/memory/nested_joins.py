"""A value that is put together, and is a part of another one that is: it is made where it lies in that one.

Padding an image puts rows around it, then columns around these. If the rows were put together on their own, everything
would be copied twice. So they are put together in the memory of the result, and the columns, made of them, are read
there. So are the blocks of a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from common.core.op import NativeCall
from common.core.shapes import contiguous_strides
from common.core.sizes import same
from common.kernels.arrays import copying
from static.graph import Node, Value
from static.lowering.ir.items import ArrayBuffer, Item, Layout, is_literal


class Copied(NamedTuple):
    """A part that is copied: which input of the item it is, where it is read, and where it begins in its dimension."""

    position: int
    layout: Layout
    start: Any


class Joined(NamedTuple):
    """A value that copies alone put together."""

    item: Item
    value: Value
    dim: int
    copies: list[Copied]


def read_by_one(value: Value, end: Node, users: Any, whole: Any) -> bool:
    """Whether nothing but `end` reads a value, or a view of it."""
    if value.key in whole:
        return False
    return all(
        user is end
        or (user.op is not None and user.op.kind == "view" and read_by_one(user.outputs[0], end, users, whole))
        for user in users.get(value.key, ())
    )


def nested(
    layouts: Sequence[Layout], dim: int, node: Node, joined: dict[int, Joined], users: Any, whole: Any
) -> dict[int, Joined]:
    """The buffers among the parts of a value that can be made in its memory, and how they are put together.

    Parameters
    ----------
    node : what makes the value.
    joined : the values that copies put together, by their buffers.
    users, whole : see `static.lowering.memory.concatenations.InParts`.
    """
    found: dict[int, Joined] = {}
    for layout in layouts:
        root = layout.root
        own = joined.get(root.id) if isinstance(root, ArrayBuffer) and layout.dense else None
        if own is not None and isinstance(root, ArrayBuffer) and root.id not in found:
            readers = [x for x in layouts if x.root is root]
            if sum(x.dense for x in readers) == 1 and all(_differs_along(x, own.value.shape, dim) for x in readers):
                if read_by_one(own.value, node, users, whole):
                    found[root.id] = own
    return found


def _differs_along(layout: Layout, shape: Any, dim: int) -> bool:
    """Whether a view is of whole arrays in all other dimensions, which lie as they do in the array."""
    if len(layout.shape) != len(shape):
        return False
    steps = zip(layout.shape, shape, layout.strides, contiguous_strides(shape), strict=True)
    return all(d == dim or (same(n, m) and (is_literal(n, 1) or same(a, b))) for d, (n, m, a, b) in enumerate(steps))


def move(layouts: Sequence[Layout], dim: int, inside: dict[int, Joined], out: ArrayBuffer) -> dict[int, Any]:
    """Let values be put together in the memory of the one whose parts they are; by their buffers, where they begin.

    Parameters
    ----------
    layouts, dim : the parts, and along which dimension they follow each other.
    inside : what `nested` has found.
    """
    strides, offsets, start = contiguous_strides(out.shape), dict[int, Any](), 0
    for layout in layouts:
        if isinstance(layout.root, ArrayBuffer) and layout.dense and layout.root.id in inside:
            offsets[layout.root.id] = offset = start * strides[dim]
            own = inside[layout.root.id]
            layout.root.into = out
            own.item.copied, own.item.copies = None, frozenset()
            own.item.calls = [_copy(x, own, offset, strides) for x in own.copies]
        start = start + layout.shape[dim]
    return offsets


def _copy(x: Copied, own: Joined, offset: Any, strides: Any) -> NativeCall:
    """The call that copies a part to its place in memory with strides, from an element on."""
    read = x.layout
    place = offset + x.start * strides[own.dim]
    args = copying.copy_args(read.shape, read.offset, read.strides, place, strides)
    return copying.copy(own.value.dtype, args, (x.position, len(own.item.inputs)))


def moved(layout: Layout, dim: int, offset: Any, strides: Any) -> Layout:
    """A view of a value that has been moved."""
    own = tuple(a if d == dim else b for d, (a, b) in enumerate(zip(layout.strides, strides, strict=True)))
    return Layout(layout.root, offset + layout.offset, layout.shape, own, False)
