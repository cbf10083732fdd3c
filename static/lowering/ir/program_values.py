"""The values of a program while it is made into items: buffers, views of them, and how items read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.core.errors import CompileError
from common.core.shapes import contiguous_strides
from common.core.sizes import same
from common.core.spec import numel
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value
from static.lowering.ir.items import (
    Access,
    ArrayBuffer,
    Const,
    Item,
    Layout,
    Operand,
    Sizes,
    dense_layout,
    is_literal,
    sizes_key,
    strip_ones,
)


@dataclass(slots=True)
class Work:
    """The items of a program and where its results go.

    Attributes
    ----------
    inputs : one buffer per input of the graph.
    outputs : (buffer, shape) per output; each buffer is computed and belongs to one output only.
    writes : (state, computed buffer) per effect.
    carried : of a loop's body, (input, output) per value that the next iteration gets.
    kept : ids of the items whose results plans keep, see `static.lowering.fusion.size_only`.
    """

    graph: Graph
    buffers: list[ArrayBuffer] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    inputs: list[ArrayBuffer] = field(default_factory=list)
    outputs: list[tuple[ArrayBuffer, Sizes]] = field(default_factory=list)
    writes: list[tuple[ArrayBuffer, ArrayBuffer]] = field(default_factory=list)
    carried: list[tuple[ArrayBuffer, ArrayBuffer]] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)

    def users(self) -> dict[int, list[Item]]:
        """The items that read each buffer, by its id, in program order, each item once."""
        found: dict[int, list[Item]] = {}
        for item in self.items:
            for buffer in dict.fromkeys(item.reads):
                found.setdefault(buffer.id, []).append(item)
        return found


class Values:
    """The values of a graph, as far as it has been gone through.

    Attributes
    ----------
    layouts : value key -> where its elements lie.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.work = graph, Work(graph)
        self.layouts: dict[tuple[int, int], Layout] = {}
        self.copies: dict[Any, ArrayBuffer] = {}

    def buffer(self, dtype: np.dtype[Any], shape: Sizes) -> ArrayBuffer:
        """A new buffer."""
        made = ArrayBuffer(len(self.work.buffers), dtype, shape)
        self.work.buffers.append(made)
        return made

    def item(self, node: Node, kind: str, dims: Sizes, **fields: Any) -> Item:
        """A new item; its results know it."""
        made = Item(len(self.work.items), node, kind, dims, **fields)
        self.work.items.append(made)
        for buffer in made.results:
            buffer.maker = made
        return made

    def result(self, value: Value) -> ArrayBuffer:
        """The buffer of a value that is computed."""
        buffer = self.buffer(value.spec.dtype, value.spec.shape)
        self.layouts[value.key] = dense_layout(buffer)
        return buffer

    def layout(self, operand: Any) -> Layout:
        """Where the elements of an operand lie."""
        if type(operand) is Value:
            return self.layouts[operand.key]
        return Layout(Const(operand), 0, (), (), False)

    def view(self, node: Node) -> Layout:
        """Where the elements of a view lie."""
        assert node.op is not None
        source = self.layout(node.operands[0])
        shape = node.outputs[0].spec.shape
        root = source.root
        if isinstance(root, Const):
            return Layout(root, 0, shape, (0,) * len(shape), False)
        attrs = {name: node.attrs[name] for name in node.op.attrs}
        placed = node.op.strided(source.offset, source.shape, source.strides, **attrs)
        if placed is None:
            root = self.contiguous(node, source)
            source = dense_layout(root)
            placed = node.op.strided(source.offset, source.shape, source.strides, **attrs)
        offset, shape, strides = placed
        whole = source.dense and node.op is reshape_  # where sizes are equal by guards only
        return Layout(root, offset, shape, strides, whole or is_dense(root, offset, shape, strides))

    def contiguous(self, node: Node, layout: Layout) -> ArrayBuffer:
        """The buffer that holds exactly this value; made by a copy where needed."""
        if isinstance(layout.root, ArrayBuffer) and layout.dense:
            return layout.root
        return self.copy(node, layout)

    def beginning(self, node: Node, layout: Layout) -> ArrayBuffer:
        """A buffer that begins with exactly this value, for a kernel that reads no further."""
        return (
            layout.root
            if isinstance(layout.root, ArrayBuffer) and _is_prefix(layout)
            else self.contiguous(node, layout)
        )

    def copy(self, node: Node, layout: Layout) -> ArrayBuffer:
        """A buffer that a copy of the value fills; equal copies share it."""
        root, shape = layout.root, layout.shape
        if isinstance(root, Const):
            assert root.dtype is not None
            return self.fresh_copy(node, layout, root.dtype)
        name = (root.id, sizes_key((layout.offset, *shape)), sizes_key(layout.strides))
        if name not in self.copies:
            self.copies[name] = self.fresh_copy(node, layout, root.dtype)
        return self.copies[name]

    def fresh_copy(self, node: Node, layout: Layout, dtype: np.dtype[Any]) -> ArrayBuffer:
        """A new buffer that a copy of the value fills."""
        out = self.buffer(dtype, layout.shape)
        operand = Operand(self.operand(layout, layout.shape), dtype)
        self.item(node, "map", strip_ones(layout.shape), function="", dtype=dtype, operands=[operand], results=[out])
        return out

    def operand(self, layout: Layout, shape: Sizes) -> Access | Const:
        """How an item over `shape` reads a value that broadcasts to it."""
        lead = len(shape) - len(layout.shape)
        dims, strides = [], []
        for i, n in enumerate(shape):
            if is_literal(n, 1):
                continue
            own = i >= lead and not is_literal(layout.shape[i - lead], 1)
            dims.append(n)
            strides.append(layout.strides[i - lead] if own and layout.strides else 0)
        return layout.access(tuple(dims), tuple(strides))


def _is_prefix(layout: Layout) -> bool:
    """Whether a view is the beginning of its buffer, such as the first rows of a matrix."""
    wanted = contiguous_strides(layout.shape)
    steps = zip(layout.shape, layout.strides, wanted, strict=True)
    return is_literal(layout.offset, 0) and all(is_literal(n, 1) or same(a, b) for n, a, b in steps)


def is_dense(root: ArrayBuffer, offset: Any, shape: Sizes, strides: Sizes) -> bool:
    """Whether a view is its whole buffer under another shape."""
    if not is_literal(offset, 0) or not same(numel(shape), numel(root.shape)):
        return False
    wanted = contiguous_strides(shape)
    return all(is_literal(n, 1) or same(a, b) for n, a, b in zip(shape, strides, wanted, strict=True))


def unsupported(node: Node, why: str) -> CompileError:
    """The error for a node that cannot be lowered."""
    file, line, _ = node.source
    return CompileError(f"{node.name} at {file}:{line} cannot be compiled: {why}")
