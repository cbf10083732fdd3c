"""Reading and writing at indices that are data, as part of the loops around them.

Indices are checked before (`static.lowering.indexing.index_checks`), but those that a loop computes, by that loop
(`static.lowering.indexing.indexed_access`): they need not be stored. What is written to begins as a copy,
or as zeros; the loop that makes rows adds them, or stores them, at their places one after the other, in the order in
which the op is defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE
from common.core.numerics import LANES
from common.core.op import IndexUse
from common.core.shapes import contiguous_strides
from common.core.sizes import Dim, hint
from common.core.spec import numel
from common.kernels.arrays import copying
from static.graph import Node
from static.lowering.codegen.short_rows import are_short
from static.lowering.indexing.index_checks import PerRow, native_calls
from static.lowering.indexing.paired import Paired
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    AtIndex,
    Const,
    Layout,
    Operand,
    Sizes,
    is_literal,
    sizes_key,
    strip_ones,
)
from static.lowering.memory.update_in_place import begins_as_copy

SHORTEST_ROW = 16
"""Elements of the shortest innermost loop in which a kernel reads a row at an index, or elements at one each. Rows of
up to `CLOSE` elements are written out (`static.lowering.codegen.short_rows`); those in between are gathered first."""

SHORT = (
    f"few rows of a table, those of {CLOSE + 1} to {SHORTEST_ROW - 1} elements, of short rows, or with gaps, "
    "are gathered first"
)


def why_gathered(node: Node) -> str:
    """Why an op that reads at indices is a kernel of its own."""
    found = None if node.op is None else node.op.indexed
    return SHORT if found is not None and not (found.writes or found.one) else ""


class ByIndex(Paired):
    """The nodes that read and write at indices.

    Attributes
    ----------
    parallel : whether threads share the loops; rows that are written out are of one thread.
    """

    parallel = False

    def by_index(self, node: Node) -> bool:
        """Add a node that reads or writes at indices; False if it is none, or has to be a kernel of its own."""
        assert node.op is not None
        found = node.op.indexed
        if found is None:
            return False
        if found.one:
            return not is_literal(_row(node, found)[-1], 1) and self.one_per_row(node, found)
        if found.pairs and self.paired(node):
            return True
        return self.put(node, found) if found.writes else self.take(node)

    def one_per_row(self, node: Node, how: IndexUse) -> bool:
        """One element per row, which lies at an index that is data."""
        row = _row(node, how)
        (value,), dims, rows = node.outputs, strip_ones(row), row[:-1]
        x, index = (self.layout(operand) for operand in node.operands)
        first = self.rows_of(x, rows) if how.writes else self.operand(x, row)
        if are_short(hint(row[-1]), hint(numel(rows))):  # no loop over the row, which would check the index
            column, after = self.indices(node, PerRow(index, 0, row[-1]), row, row[-1])
            calls = []
        else:
            column, after, calls = Operand(self.rows_of(index, rows), np.dtype(np.int64)), [], list(native_calls(node))
        self.item(
            node,
            "map" if how.writes else "lookup",
            dims,
            function=ONE_OF_ROW,
            dtype=value.spec.dtype,
            operands=[Operand(first, value.spec.dtype), column],
            results=[self.result(value)],
            split=len(dims) - 1,
            calls=calls,
            after=after,
        )
        return True

    def take(self, node: Node) -> bool:
        """Rows or elements of a table, one per index, as a map that reads them; False if loops over them were short."""
        if self.take_elements(node):
            return True
        if len(node.operands) > 2:
            return False
        (value,), dim, wrap = node.outputs, node.attrs["dim"], node.attrs.get("wrap", False)
        table, shape = self.layout(node.operands[0]), value.shape
        before, behind = table.strides[:dim], table.strides[dim + 1 :]
        count = len(shape) - len(before) - len(behind)
        rows, inner = self.per_row(node, shape), strip_ones(shape[dim + count :])
        run = inner or shape[dim : dim + count]
        found = rows or PerRow(self.layout(node.operands[1]), 0, 1)
        if isinstance(table.root, Const) or not strip_ones(found.layout.shape):
            return False
        row = self.operand(Layout(table.root, table.offset, shape, (*before, *(0,) * count, *behind), False), shape)
        assert isinstance(row, Access)
        uneven = inner and rows is not None and not is_literal(row.strides[-1], 1)
        split = None if rows is None else self.few(shape, dim, count, behind)
        if uneven or (split is None and (hint(numel(run)) < SHORTEST_ROW or _is_of_short_rows(inner))):
            return False
        index, after = self.indices(node, found, shape, table.shape[dim])
        at = AtIndex(table.shape[dim], table.strides[dim], wrap)
        self._taken(node, row, [index], at, after=after, split=split)
        return True

    def few(self, shape: Sizes, dim: int, count: int, steps: Sizes) -> int | None:
        """How many dimensions there are before those of rows of few elements, which are written out; None of others.

        The indices of the rows, of `count` dimensions, vary within a loop; elements lie side by side, by their `steps`.
        """
        inner, rows = shape[dim + count :], shape[dim : dim + count]
        if self.parallel or not 2 <= hint(numel(inner)) <= CLOSE or hint(numel(rows)) < LANES:
            return None
        if sizes_key(steps) != sizes_key(contiguous_strides(inner)):
            return None
        return len(strip_ones(shape[: dim + count]))

    def take_elements(self, node: Node) -> bool:
        """Elements of a table at indices that are computed, or of which each has several, as a map that checks them.

        So a loop that computes indices need not store them. False if elements share indices.
        """
        (value,), dim, (x, *given) = node.outputs, node.attrs["dim"], node.operands
        table, indices, shape = self.layout(x), [self.layout(index) for index in given], value.shape
        computed = any(isinstance(i.root, ArrayBuffer) and _is_computed(i.root) for i in indices)
        if isinstance(table.root, Const) or not (computed or len(indices) > 1):
            return False
        if not all(_is_per_element(index, shape) for index in indices) or hint(numel(shape)) < SHORTEST_ROW:
            return False
        before, behind = table.strides[:dim], table.strides[dim + len(indices) :]
        count = len(shape) - len(before) - len(behind)
        row = self.operand(Layout(table.root, table.offset, shape, (*before, *(0,) * count, *behind), False), shape)
        operands = [Operand(self.operand(index, shape), np.dtype(np.int64)) for index in indices]
        (extent, *extents), (step, *steps) = (x[dim : dim + len(indices)] for x in (table.shape, table.strides))
        at = AtIndex(extent, step, node.attrs.get("wrap", False), further=tuple(zip(extents, steps, strict=True)))
        self._taken(node, row, operands, at, calls=list(native_calls(node)))
        return True

    def _taken(self, node: Node, row: Any, indices: Sequence[Operand], at: AtIndex, **more: Any) -> None:
        """The map of a gather: rows of a table where its indices say."""
        (value,) = node.outputs
        if isinstance(row, Access):
            row.prefix = None  # also where the table has one row, its elements come from memory
        self.item(
            node, "map", strip_ones(value.shape), function="take", dtype=value.dtype,
            operands=[Operand(row, value.dtype), *indices], results=[self.result(value)], at=at, **more,
        )  # fmt: skip

    def put(self, node: Node, how: IndexUse) -> bool:
        """Rows that are written, or added, at an index each, by the loop that makes them; False if none does."""
        (value,), dim, wrap = node.outputs, node.attrs["dim"], node.attrs.get("wrap", False)
        if how.pairs:
            return False
        *x, v, _ = node.operands
        source, shape, strides = self.layout(v), v.shape, contiguous_strides(value.shape)
        count = v.ndim - value.ndim + 1
        per_row = self.per_row(node, shape) if shape else None
        if per_row is None or (_is_ready(source) and not how.own) or value.dtype.kind == "b":
            return False
        inner = shape[dim + count :]
        split = self.few(shape, dim, count, contiguous_strides(inner))
        run = inner if self.parallel or strip_ones(inner) else shape
        if split is None and (not strip_ones(shape) or hint(numel(run)) < SHORTEST_ROW or _is_of_short_rows(inner)):
            return False
        out = self.result(value)
        index, after = self.indices(node, per_row, shape, value.shape[dim])
        steps = (*strides[:dim], *(0,) * count, *strides[dim + 1 :])
        window = self.operand(Layout(out, 0, shape, steps, False), shape)
        assert isinstance(window, Access)
        self.item(
            node,
            "map",
            strip_ones(shape),
            function="put",
            dtype=out.dtype,
            operands=[Operand(self.operand(source, shape), out.dtype), index],
            results=[out],
            after=[self.begin(node, out, [self.layout(operand) for operand in x], after), *after],
            split=split,
            window=window,
            at=AtIndex(value.shape[dim], strides[dim], wrap, how.join),
        )
        return True

    def begin(self, node: Node, out: ArrayBuffer, x: list[Layout], after: list[ArrayBuffer]) -> ArrayBuffer:
        """The memory of a result, filled with zeros, or with a copy of another value."""
        begun = self.buffer(out.dtype, out.shape)
        begun.into = out
        number = x[0].root.value if x and isinstance(x[0].root, Const) else 0
        inputs: list[ArrayBuffer] = []
        if x and (not isinstance(x[0].root, Const) or isinstance(number, Dim)):
            inputs = [self.beginning(node, x[0])]
            call = copying.copy(out.dtype, copying.copy_args(out.shape), (0, 1))
        else:
            call = copying.fill(out.dtype, numel(out.shape), number, (0,))
        item = self.item(node, "native", (), function="begin", dtype=out.dtype, operands=[], results=[begun],
                         inputs=inputs, calls=[call], after=after)  # fmt: skip
        if inputs:
            begins_as_copy(item, [0], inputs)
        return begun


def _is_of_short_rows(inner: Sizes) -> bool:
    """Whether a row of a table has rows of a few elements itself, as those of heads: loops over these are short."""
    return len(strip_ones(inner)) > 1 and hint(strip_ones(inner)[-1]) < LANES // 2


def _is_ready(source: Layout) -> bool:
    """Whether a value lies in memory as it is, made by no loop of the program."""
    root = source.root
    return isinstance(root, ArrayBuffer) and source.dense and (root.maker is None or root.maker.kind == "native")


def _is_computed(buffer: ArrayBuffer) -> bool:
    """Whether a loop over elements makes an array."""
    return buffer.maker is not None and buffer.maker.kind == "map" and bool(buffer.maker.function)


def _is_per_element(index: Layout, shape: Sizes) -> bool:
    """Whether each element of a shape has an index of its own."""
    own = sizes_key(index.shape) == sizes_key(shape) and isinstance(index.root, ArrayBuffer)
    return own and not any(is_literal(s, 0) and not is_literal(n, 1) for n, s in zip(shape, index.strides, strict=True))


def _row(node: Node, how: IndexUse) -> Sizes:
    """Of what has one element per row, the shape that has the whole rows."""
    return node.outputs[0].shape if how.writes else node.operands[0].shape
