"""Reductions as items: rows, or columns batch by batch; other dimensions are copied into order first."""

from __future__ import annotations

from typing import Any

from common.core.shapes import contiguous_strides
from common.evaluate.reduction_kernels import reduced_dtype
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.graph import Node
from static.lowering.codegen.channel_sums import add_sum_of_channels
from static.lowering.ir.items import (
    ONE_OF_ROW,
    Access,
    ArrayBuffer,
    Const,
    Layout,
    Operand,
    breaks_within,
    is_literal,
    make_access,
    sizes_key,
    strip_ones,
)
from static.lowering.ir.program_values import Values


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
    if REDUCERS[how] is SUM and flags[-1] and sum(flags) == 1 and _sum_of_spread(values, node, layout):
        return
    first, last = flags.index(True), len(flags) - flags[::-1].index(True)
    if last < len(flags) and all(flags[first:last]):
        kind, order, lead, split = "cols", axes, first, last
    else:
        order = [i for i, f in zip(axes, flags) if not f] + [i for i, f in zip(axes, flags) if f]
        kind, lead, split = "rows", 0, len(flags) - sum(flags)
    dtype = reduced_dtype(how, value.spec.dtype)
    if REDUCERS[how] is SUM and add_sum_of_channels(values, node, layout, axes, flags, dtype):
        return
    values.item(
        node,
        kind,
        tuple(layout.shape[i] for i in order),
        function=how,
        dtype=dtype,
        operands=[Operand(_ordered(values, node, layout, order, split, lead if kind == "cols" else split), dtype)],
        results=[values.result(value)],
        split=split,
        lead=lead,
    )


def _sum_of_spread(values: Values, node: Node, layout: Layout) -> bool:
    """S of a row that is +0.0 but for one g is +0.0 + g, whatever the order: no loop is needed."""
    root = layout.root
    maker = root.maker if isinstance(root, ArrayBuffer) and layout.dense else None
    if maker is None or maker.function != ONE_OF_ROW or sizes_key(maker.dims) != sizes_key(strip_ones(layout.shape)):
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
        node, "map", maker.dims[:-1], function=SUM.join, dtype=dtype, operands=operands, results=[values.result(value)]
    )
    return True


def _ordered(values: Values, node: Node, layout: Layout, order: list[int], split: int, lead: int) -> Any:
    """The operand of a reduction over dimensions in `order`; copied if its rows after `lead`, or a row, are no run."""
    dims = tuple(layout.shape[i] for i in order)
    if isinstance(layout.root, Const):
        return layout.root
    strides = tuple(layout.strides[i] for i in order)
    access = make_access(layout.root, layout.offset, dims, strides)
    if not access.breaks >> split and not breaks_within(access.breaks, lead, split):
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
    function = SUM.join if REDUCERS[node.op.reduce] is SUM and dtype.kind == "f" else ""
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
