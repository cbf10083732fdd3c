"""Sums of channels: over the first and the last dimensions of arrays whose elements lie in order.

The eager engine's kernel sums them where they lie, channel by channel, without a copy in the order of the sum; and the
products of two arrays without storing them.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Let
from common.core.op import NativeCall
from common.core.spec import numel
from common.kernels.arrays.mapped_sums import IN_LANES, channels_source
from common.kernels.arrays.shared_parts import PARTS, WHOLE
from static.graph import Node
from static.lowering.ir.items import Access, ArrayBuffer, Layout
from static.lowering.ir.program_values import Values

_PRODUCT = IN_LANES["squares"][0]
"""The function of two elements that multiplies them."""


def add_sum_of_channels(
    values: Values, node: Node, layout: Layout, axes: list[int], flags: list[bool], dtype: np.dtype[Any]
) -> bool:
    """Add the item of such a sum; whether it is one.

    Parameters
    ----------
    axes, flags : dimensions of the operand that are not 1, and whether each is summed over.
    """
    runs = [[i for _, i in run] for _, run in groupby(zip(flags, axes), key=lambda pair: pair[0])]
    root = layout.root
    if len(runs) != 3 or not flags[0] or not isinstance(root, ArrayBuffer) or not layout.dense:
        return False
    assert node.op is not None
    (value,) = node.outputs
    if dtype.kind != "f" or not dtype == value.spec.dtype == root.dtype:
        return False
    inputs, body = [root], [Let("t0", "x0")]
    if (factors := _factors(root)) is not None:
        inputs = list(dict.fromkeys(factors))
        body = [Let("t0", Call(_PRODUCT, ["x0", f"x{len(inputs) - 1}"]))]
    n, channels, columns = (numel(tuple(layout.shape[i] for i in run)) for run in runs)
    source, scratch = channels_source(body, dtype, "f" * len(inputs)), n * columns * dtype.itemsize * PARTS
    call = NativeCall(source, "expression_channels", (n, channels, columns, WHOLE), scratch=scratch)
    values.item(
        node, "native", (), function=node.op.name, dtype=dtype, operands=[], results=[values.result(value)],
        inputs=inputs, calls=[call],
    )  # fmt: skip
    return True


def _factors(buffer: ArrayBuffer) -> list[ArrayBuffer] | None:
    """The arrays whose product, element by element, is all that lies in a buffer."""
    maker = buffer.maker
    if maker is None or maker.kind != "map" or maker.function != _PRODUCT or maker.dtype != buffer.dtype:
        return None
    found = []
    for operand in maker.operands:
        source = operand.source
        if not isinstance(source, Access) or {source.buffer.dtype, operand.dtype} != {buffer.dtype}:
            return None
        if source.prefix != len(maker.dims):
            return None
        found.append(source.buffer)
    return found
