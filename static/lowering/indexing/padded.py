"""Parts among equal numbers, and arrays in two pieces, as operands that are read where their elements are.

The gradient of a slice is a part among zeros. One along a single dimension is kept in parts, see
`static.lowering.memory.concatenations`, unless it overlaps with others; of several dimensions there would be too many
parts. A loop over the whole reads such a part where it has elements, and takes the number elsewhere: the sum of the
gradients of all slices of an array, as a stencil has them, is one loop that reads each of them once. Nothing is filled,
copied or added in memory. What `roll` gives, two pieces of an array in another order, is read in the same way. The part
may be a cheap function of slices, as differences in a stencil are: then the slices are read so, and no array holds it.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from common.core.sizes import same, same_shape
from common.ops.shape.view import reshape_
from static.graph import Node, Value
from static.graph.elements import is_elementwise
from static.lowering.indexing.by_index import ByIndex
from static.lowering.ir.items import (
    Access,
    Bounds,
    Const,
    Jump,
    Layout,
    Operand,
    Sizes,
    dense_layout,
    is_literal,
    sizes_key,
    strip_ones,
)

DEPTH = 2
"""Functions of functions that are computed where their operands are placed."""


class Padded(ByIndex):
    """The nodes that place a part among equal numbers, or a piece behind another one."""

    def rolled(self, node: Node) -> bool:
        """Add a node that puts two pieces of one array together; False if it does not."""
        assert node.op is not None
        if node.op.parts != "join" or len(node.operands) != 2 or any(x.key in self.parts for x in node.operands):
            return False
        (value,), dim = node.outputs, node.attrs["dim"]
        first, second = (self.layout(x) for x in node.operands)
        if first.root is not second.root or isinstance(first.root, Const) or is_literal(value.shape[dim], 1):
            return False
        if sizes_key(first.strides) != sizes_key(second.strides):
            return False
        start = first.shape[dim]
        distance = second.offset - first.offset - start * first.strides[dim]
        read = Layout(first.root, first.offset, value.shape, first.strides, False)
        access = self.operand(read, value.shape)
        assert isinstance(access, Access)
        place = dim - sum(is_literal(n, 1) for n in value.shape[:dim])
        access.breaks |= _around(place, len(strip_ones(value.shape)))
        access.prefix, access.jump = None, Jump(place, start, distance)
        self._copy(node, access)
        return True

    def _copy(self, node: Node, read: Access) -> None:
        (value,) = node.outputs
        self.item(node, "map", strip_ones(value.shape), function="", dtype=value.dtype,
                  operands=[Operand(read, value.dtype)], results=[self.result(value)])  # fmt: skip

    def padded(self, node: Node) -> bool:
        """Add a node that does so; False if it does not, or has to be a kernel of its own."""
        spot = _spot(node)
        if spot is None:
            return False
        x, (value,) = node.operands[0], node.outputs
        while (inner := _spot(x.node)) is not None and inner.number.tobytes() == spot.number.tobytes():
            if not same_shape(inner.shape, spot.sizes):
                break
            starts = tuple(a + b for a, b in zip(spot.starts, inner.starts, strict=True))
            x, spot = x.node.operands[0], spot._replace(starts=starts, sizes=inner.sizes)
        layout = self._functions(node, x, spot, DEPTH)
        if layout is not None:
            self.layouts[value.key] = layout
            return True
        read = self._bordered(self.layout(x), spot)
        if read is not None:
            self._copy(node, read)
        return read is not None

    def _functions(self, node: Node, x: Value, spot: Spot, depth: int) -> Layout | None:
        """f(x, y) placed in an array of a number, as f of x and y that are placed in arrays of others, or None."""
        f = x.node
        if not (is_elementwise(f) and depth and x.dtype.kind == "f" and same_shape(spot.sizes, x.shape)):
            return None
        assert f.op is not None
        if f.op.costly or f.attrs or x.key in self.whole or x.key in self.parts or set(self.scalar(f)[1]) != {x.dtype}:
            return None
        if not all(user.op is not None and user.op.parts == "pad" for user in self.users[x.key]):
            return None
        layouts = []
        for y, outside in zip(f.operands, _around_operands(f, spot.number) or [None] * len(f.operands), strict=True):
            if outside is None or (type(y) is Value and not same_shape(y.shape, x.shape)):
                return None
            own = spot._replace(number=outside)
            layout = self._functions(node, y, own, depth - 1) if type(y) is Value else self.layout(y)
            if layout is None:
                read = self._bordered(self.layout(y), own) if y.node.op is None or y.node.op.kind == "view" else None
                if read is None:
                    return None
                out = self.buffer(y.dtype, spot.shape)
                self.item(node, "map", strip_ones(spot.shape), function="", dtype=y.dtype,
                          operands=[Operand(read, y.dtype)], results=[out])  # fmt: skip
                layout = dense_layout(out)
            layouts.append(layout)
        return self.compute(f, spot.shape, layouts)

    def _bordered(self, source: Layout, spot: Spot) -> Access | None:
        """How an array of a number is read in which a value is placed, or None."""
        shape, starts, sizes, number = spot
        if isinstance(source.root, Const):
            return None
        placed = reshape_.strided(source.offset, source.shape, source.strides, new_shape=tuple(sizes))
        if placed is None or any(is_literal(n, 1) and not is_literal(m, 1) for n, m in zip(shape, sizes, strict=True)):
            return None
        offset, _, strides = placed
        kept, within, breaks, dim = [], list[Bounds](), 0, 0
        for n, start, size, stride in zip(shape, starts, sizes, strides, strict=True):
            if is_literal(n, 1):
                continue
            offset = offset - start * stride
            kept.append(stride)
            if not (is_literal(start, 0) and same(size, n)):
                within.append(Bounds(dim, start, start + size))
                breaks |= _around(dim, len(strip_ones(shape)))
            dim += 1
        dims = strip_ones(shape)
        read = Layout(source.root, offset, dims, tuple(kept), False).access(dims, tuple(kept))
        assert isinstance(read, Access)
        read.breaks |= breaks
        read.prefix, read.within, read.outside = None, tuple(within), number.item()
        return read


class Spot(NamedTuple):
    """Where a value of some sizes is placed in an array of a number."""

    shape: Sizes
    starts: Sizes
    sizes: Sizes
    number: Any


def _spot(node: Node) -> Spot | None:
    """Where a node places its operand, side by side; None if it does not."""
    attrs = node.attrs
    if node.op is None or node.op.parts != "pad" or not all(is_literal(step, 1) for step in attrs.get("steps", ())):
        return None
    number = np.asarray(attrs.get("value", 0)).astype(node.outputs[0].dtype)[()]
    return Spot(attrs["shape"], attrs["starts"], attrs.get("sizes", node.operands[0].shape), number)


def _around_operands(f: Node, number: Any) -> tuple[Any, ...] | None:
    """Numbers around the operands with which a function of floats gives `number`, bit by bit; None if none is found."""
    kind, op = number.dtype.type, f.op
    assert op is not None
    tried = [(number, -number, kind(0), kind(1)) if type(x) is Value else (x,) for x in f.operands]
    if any(type(x) not in (Value, int, float) for x in f.operands):
        return None
    with np.errstate(all="ignore"):
        for numbers in product(*tried):
            if kind(op.scalar(*map(kind, numbers))).tobytes() == number.tobytes():
                return numbers
    return None


def _around(dim: int, count: int) -> int:
    """The breaks of a dimension that is run through by itself."""
    return ((1 << dim) | (1 << dim >> 1)) & ((1 << max(count - 1, 0)) - 1)
