"""Parts among equal numbers, and arrays in two pieces, as operands that are read where their elements are.

The gradient of a slice is a part among zeros. One along a single dimension is kept in parts, see
`static.lowering.memory.concatenations`, unless it overlaps with others; of several dimensions there would be too many
parts. A loop over the whole reads such a part where it has elements, and takes the number elsewhere: the sum of the
gradients of all slices of an array, as a stencil has them, is one loop that reads each of them once. Nothing is filled,
copied or added in memory. What `roll` gives, two pieces of an array in another order, is read in the same way.
"""

from __future__ import annotations

import numpy as np

from common.core.sizes import same
from common.ops.shape.view import reshape_
from static.graph import Node
from static.lowering.indexing.by_index import ByIndex
from static.lowering.ir.items import Access, Bounds, Const, Jump, Layout, Operand, is_literal, sizes_key, strip_ones


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
        assert node.op is not None
        if node.op.parts != "pad":
            return False
        (x,), (value,), attrs = node.operands, node.outputs, node.attrs
        shape, starts, sizes = attrs["shape"], attrs["starts"], attrs.get("sizes", x.shape)
        source = self.layout(x)
        if isinstance(source.root, Const) or not all(is_literal(step, 1) for step in attrs.get("steps", ())):
            return False
        placed = reshape_.strided(source.offset, source.shape, source.strides, new_shape=tuple(sizes))
        if placed is None or any(is_literal(n, 1) and not is_literal(m, 1) for n, m in zip(shape, sizes, strict=True)):
            return False
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
        read.prefix, read.within = None, tuple(within)
        read.outside = np.asarray(attrs.get("value", 0)).astype(value.dtype).item()
        self._copy(node, read)
        return True


def _around(dim: int, count: int) -> int:
    """The breaks of a dimension that is run through by itself."""
    return ((1 << dim) | (1 << dim >> 1)) & ((1 << max(count - 1, 0)) - 1)
