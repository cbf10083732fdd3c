"""Indices that are data, checked by a kernel before the loops that use them.

So nothing is read or written outside, and these loops cannot fail. Equal checks are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.op import NativeCall
from common.core.shapes import contiguous_strides
from common.core.spec import Spec, numel
from common.kernels.arrays import coordinates
from static.graph import Graph, Node
from static.lowering.ir.items import ArrayBuffer, Layout, Operand, Sizes, is_literal, sizes_key
from static.lowering.ir.program_values import is_dense
from static.lowering.memory.concatenations import InParts


class PerRow(NamedTuple):
    """Indices of rows.

    Attributes
    ----------
    layout : where they lie.
    lead : how many dimensions come before theirs.
    used : the number of elements of a row, where none is looked at if that is 0, else 1.
    """

    layout: Layout
    lead: int
    used: Any


class Checked(InParts):
    """Values, and indices of rows.

    Attributes
    ----------
    checks : what is there once indices are checked, by what is checked.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.checks: dict[Any, ArrayBuffer] = {}

    def indices(
        self, node: Node, per_row: PerRow, shape: Sizes, extent: Any, errors: Any = None
    ) -> tuple[Operand, list[ArrayBuffer]]:
        """The operand of an item over a shape that has an index per row, and what is there once all are checked.

        Parameters
        ----------
        errors : what tells of wrong ones; that of the node's own kernel by default.
        """
        index, used = per_row.layout, per_row.used
        repeats = [is_literal(step, 0) for step in index.strides]  # of an expanded one, each index is checked once
        once = tuple(1 if r else n for n, r in zip(index.shape, repeats, strict=True))
        if any(repeats) and isinstance(index.root, ArrayBuffer):
            used = used * numel(tuple(n for n, r in zip(index.shape, repeats, strict=True) if r))
            dense = is_dense(index.root, index.offset, once, index.strides)
            index = Layout(index.root, index.offset, once, index.strides, dense)
        buffer = self.contiguous(node, index)
        (*_, own) = native_calls(node)
        wrap = node.attrs.get("wrap", False)
        errors = own.errors if errors is None else errors
        call = coordinates.check(buffer.dtype, numel(buffer.shape), extent, wrap, used, errors)
        name = buffer.id, *sizes_key(call.ints)
        if name not in self.checks:
            token = self.buffer(np.dtype(np.int64), ())
            self.item(node, "native", (), function="check", dtype=token.dtype, operands=[], results=[token],
                      inputs=[buffer], calls=[call])  # fmt: skip
            self.checks[name] = token
        steps = [0 if r else step for r, step in zip(repeats, contiguous_strides(index.shape), strict=True)]
        behind = len(shape) - per_row.lead - len(steps)
        strides = (*(0,) * per_row.lead, *steps, *(0,) * behind)
        which = self.operand(Layout(buffer, 0, shape, strides, False), shape)
        return Operand(which, np.dtype(np.int64)), [self.checks[name]]

    def per_row(self, node: Node, shape: Sizes) -> PerRow | None:
        """The indices of the rows of a shape; None if they vary within a row."""
        dim, index = node.attrs["dim"], self.layout(node.operands[-1])
        assert node.op is not None
        assert node.op.indexed is not None
        if not node.op.indexed.own:
            return PerRow(index, dim, 1)
        end = dim + 1
        if not all(is_literal(s, 0) for s in index.strides[end:]):
            return None
        own, strides = shape[:end], index.strides[:end]
        dense = isinstance(index.root, ArrayBuffer) and is_dense(index.root, index.offset, own, strides)
        return PerRow(Layout(index.root, index.offset, own, strides, dense), 0, numel(shape[end:]))


def native_calls(node: Node) -> Sequence[NativeCall]:
    """The calls of a node that is a kernel of its own."""
    assert node.op is not None
    specs = [Spec(v.spec.shape, v.spec.dtype) for v in node.values]
    return node.op.native(specs, [v.spec for v in node.outputs], node.attrs)
