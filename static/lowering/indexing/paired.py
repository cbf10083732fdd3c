"""One element of each row of a matrix, as ``x[arange(n), y]`` says it: the loop over a row reads or makes it.

The first index counts the rows, so that no table of places is needed: a loss takes its element from the row that it has
just computed, and the gradient, zeros but for one element per row, is not stored before it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.op import CHOOSE, LESS
from common.core.sizes import hint, same, same_shape
from common.kernels.arrays import coordinates
from common.kernels.arrays.reducers import SUM
from static.graph import Node, Value
from static.lowering.codegen.short_rows import are_short
from static.lowering.indexing.index_checks import Checked, PerRow, native_calls
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    AtIndex,
    Const,
    Layout,
    Operand,
    Sizes,
    dense_layout,
    is_literal,
)

INT64 = np.dtype(np.int64)


class Paired(Checked):
    """The nodes that read or write at pairs of indices of which the first ones count."""

    def paired(self, node: Node) -> bool:
        """Add a node that reads one element of each row, or adds one to each row of zeros; False if it does not."""
        assert node.op is not None
        assert node.op.indexed is not None
        writes, (value,), (first, rows, *columns) = node.op.indexed.writes, node.outputs, node.operands
        shape = value.shape if writes else first.shape
        counted = shape[:1]
        if len(columns) != 1 or len(shape) != 2 or not _counts(rows, shape[0]) or any(is_literal(n, 1) for n in shape):
            return False
        if not same_shape(columns[0].shape, counted) or (writes and not same_shape(first.shape, counted)):
            return False
        x = self.layout(first)
        if writes:  # what is added to zeros is +0.0 where it is -0.0
            x = self._computed(node, SUM.join, value.dtype, counted, x, 0)
        index, fields = self._column(node, self.layout(columns[0]), shape)
        self.item(
            node,
            "map" if writes else "lookup",
            shape,
            function=ONE_OF_ROW,
            dtype=value.dtype,
            operands=[Operand(self.rows_of(x, counted) if writes else self.operand(x, shape), value.dtype), index],
            results=[self.result(value)],
            split=1,
            **fields,
        )
        return True

    def _column(self, node: Node, index: Layout, shape: Sizes) -> tuple[Operand, dict[str, Any]]:
        """The index of a row, and who checks it: the loop over the row, or a kernel before if that is written out."""
        wrap, counted = node.attrs["wrap"], shape[:1]
        if not are_short(hint(shape[1]), hint(shape[0])):
            at = AtIndex(shape[0], 0, wrap, further=((shape[1], 1),))
            return Operand(self.rows_of(index, counted), INT64), {"calls": list(native_calls(node)), "at": at}
        row = PerRow(index, 0, shape[1])
        column, after = self.indices(node, row, shape, shape[1], coordinates.WrongIndex(shape[1:], 1, wrap))
        if wrap:
            negative = self._computed(node, LESS, INT64, counted, index, 0, dtype=np.dtype(np.bool_))
            end = self._computed(node, SUM.join, INT64, counted, index, shape[1])
            chosen = self._computed(node, CHOOSE, INT64, counted, negative, end, index)
            column = Operand(self.rows_of(chosen, counted), INT64)
        return column, {"after": after}

    def _computed(
        self, node: Node, function: str, wanted: np.dtype[Any], shape: Sizes, *operands: Any, dtype: Any = None
    ) -> Layout:
        """The result of a scalar function over a shape."""
        out = self.buffer(dtype or wanted, shape)
        sources = [self.operand(x, shape) if isinstance(x, Layout) else Const(x) for x in operands]
        dtypes = [x.buffer.dtype if isinstance(x, Access) and x.buffer.dtype.kind == "b" else wanted for x in sources]
        self.item(node, "map", shape, function=function, dtype=wanted, results=[out],
                  operands=[Operand(source, own) for source, own in zip(sources, dtypes, strict=True)])  # fmt: skip
        return dense_layout(out)

    def rows_of(self, layout: Layout, rows: Sizes) -> Access | Const:
        """How an item over rows and columns reads a value that has one element per row."""
        shape, strides = (*layout.shape, 1), (*layout.strides, 0)
        return self.operand(Layout(layout.root, layout.offset, shape, strides, False), (*rows, 0))


def _counts(index: Any, rows: Any) -> bool:
    """Whether an index is 0, 1, 2 and so on, one for each row."""
    attrs = index.node.attrs if type(index) is Value else {}
    return attrs.keys() == {"start", "step", "count"} and (
        is_literal(attrs["start"], 0) and is_literal(attrs["step"], 1) and same(attrs["count"], rows)
    )
