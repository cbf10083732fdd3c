"""Reductions as items: rows, columns, or columns batch by batch; other dimensions are copied into order first."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from common.eager_kernels import LANED, reduced_dtype
from common.op import NativeCall
from common.shapes import contiguous_strides
from common.spec import numel
from static.graph import Node
from static.lowering.items import (
    Access,
    Buffer,
    Const,
    Layout,
    Operand,
    dense_layout,
    is_literal,
    make_access,
    sizes_key,
    strip_ones,
)
from static.lowering.memory import ColumnScratch
from static.lowering.values import Values


def add_reduction(values: Values, node: Node) -> None:
    """Add the items of a reduction."""
    assert node.op is not None
    (value,), how = node.outputs, node.op.reduce
    layout, reduced = values.layout(node.operands[0]), set(node.attrs["dim"])
    axes = [i for i, n in enumerate(layout.shape) if not is_literal(n, 1)]
    flags = [i in reduced for i in axes]
    if not any(flags):
        _reduce_nothing(values, node, layout)
        return
    if how == "sum" and flags[-1] and sum(flags) == 1 and _sum_of_spread(values, node, layout):
        return
    kept, summed = [i for i, f in zip(axes, flags) if not f], [i for i, f in zip(axes, flags) if f]
    by_columns = bool(kept) and flags == sorted(flags, reverse=True)
    between = not by_columns and flags[-1] is False
    if between and layout.dense and sum(a != b for a, b in pairwise(flags)) == 2:
        _reduce_between(values, node, layout, flags, axes)
        return
    order = axes if by_columns else kept + summed
    split = len(summed) if by_columns else len(kept)
    source = _ordered(values, node, layout, order, split, by_columns)
    dtype = reduced_dtype(how, value.spec.dtype)
    values.item(
        node,
        "cols" if by_columns else "rows",
        tuple(layout.shape[i] for i in order),
        function=how,
        dtype=dtype,
        operands=[Operand(source, dtype)],
        results=[values.result(value)],
        split=split,
    )


def _sum_of_spread(values: Values, node: Node, layout: Layout) -> bool:
    """S of a row that is +0.0 but for one g is +0.0 + g, whatever the order: no loop is needed."""
    root = layout.root
    maker = root.maker if isinstance(root, Buffer) and layout.dense else None
    if maker is None or maker.function != "spread" or sizes_key(maker.dims) != sizes_key(strip_ones(layout.shape)):
        return False
    (value,), (g, _) = node.outputs, maker.operands
    source = g.source
    if isinstance(source, Access):
        source = make_access(source.buffer, source.offset, maker.dims[:-1], source.strides[:-1])
    dtype = value.spec.dtype
    if dtype != g.dtype:
        return False
    operands = [Operand(source, dtype), Operand(Const(0), dtype)]
    values.item(
        node, "map", maker.dims[:-1], function="add", dtype=dtype, operands=operands, results=[values.result(value)]
    )
    return True


def _ordered(values: Values, node: Node, layout: Layout, order: list[int], split: int, by_columns: bool) -> Any:
    """The operand of a reduction over dimensions in `order`; copied if a side of it is not one run."""
    dims = tuple(layout.shape[i] for i in order)
    if isinstance(layout.root, Const):
        return layout.root
    strides = tuple(layout.strides[i] for i in order)
    access = make_access(layout.root, layout.offset, dims, strides)
    inner = access.breaks >> split
    outer = access.breaks & ((1 << max(split - 1, 0)) - 1)
    if not inner and not (by_columns and outer):
        return access
    permuted = Layout(layout.root, layout.offset, dims, strides, False)
    return make_access(values.copy(node, permuted), 0, dims, contiguous_strides(dims))


def _reduce_nothing(values: Values, node: Node, layout: Layout) -> None:
    """A reduction over sizes of 1: max(x) = x, and S(x) = +0.0 + x, which turns -0.0 into +0.0."""
    assert node.op is not None
    (value,) = node.outputs
    dtype = value.spec.dtype
    operands = [
        Operand(
            values.operand(
                Layout(
                    layout.root,
                    layout.offset,
                    strip_ones(layout.shape),
                    tuple(s for n, s in zip(layout.shape, layout.strides or layout.shape) if not is_literal(n, 1)),
                    False,
                ),
                strip_ones(layout.shape),
            ),
            dtype,
        )
    ]
    function = "add" if node.op.reduce == "sum" and dtype.kind == "f" else ""
    if function:
        operands.append(Operand(Const(0.0), dtype))
    values.item(
        node,
        "map",
        strip_ones(layout.shape),
        function=function,
        dtype=dtype,
        operands=operands,
        results=[values.result(value)],
    )


def _reduce_between(values: Values, node: Node, layout: Layout, flags: list[bool], axes: list[int]) -> None:
    """One run of dimensions in the middle of a contiguous array: sums of columns, batch by batch."""
    from common.kernels import sums

    assert node.op is not None
    assert isinstance(layout.root, Buffer)
    (value,), how = node.outputs, node.op.reduce
    first, last = flags.index(True), len(flags) - flags[::-1].index(True)
    sizes = [layout.shape[i] for i in axes]
    ints = (numel(tuple(sizes[:first])), numel(tuple(sizes[first:last])), numel(tuple(sizes[last:])))
    source, dtype = layout.root, value.spec.dtype
    work = reduced_dtype(how, dtype)
    if source.dtype != work:
        source = values.fresh_copy(node, layout, work)
    out = values.result(value) if dtype == work else values.buffer(work, value.spec.shape)
    text = getattr(sums, f"{how}_cols_source")(work)
    scratch = ColumnScratch(ints[1], ints[2], work.itemsize, sums.TILE) if how in LANED else 0
    call = NativeCall(text, f"{how}_cols", ints, scratch=scratch)
    values.item(node, "native", (), function=how, dtype=work, operands=[], results=[out], inputs=[source], calls=[call])
    if dtype != work:
        values.layouts[value.key] = dense_layout(values.fresh_copy(node, dense_layout(out), dtype))
