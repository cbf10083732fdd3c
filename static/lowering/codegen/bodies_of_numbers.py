"""Bodies of loops whose values have a few elements each, as functions of numbers: states of filters, small matrices."""

from __future__ import annotations

from math import prod

import numpy as np

from static.graph import Graph, Node, Value
from static.graph.elements import Elements, Key, Mask, is_elementwise, is_reduction, shape_of
from static.passes.written_out_products import product_mask

MOST = 16
"""Elements of a value."""
MOST_ELEMENTS = 1024
"""Elements of all values that a body computes."""

_PLACED = ("join", "stack up", "pad")
"""How results are made of elements of operands, or of zeros."""


def of_numbers(region: Graph) -> tuple[Graph, list[int]] | None:
    """The region with each element of its results as a result of its own, and how many each has; None if it is not made
    of numbers.
    """
    apart: dict[Key, Mask] = {}
    total = 0
    for node in region.nodes:
        for value in node.outputs:
            total += prod(shape_of(value)) if _is_small(value) else MOST_ELEMENTS
        if total > MOST_ELEMENTS:
            return None
        if node.op is None or node.op.kind == "view" or not node.operands or node.op.parts in _PLACED:
            continue
        if not _is_function(node):
            return None
        apart[node.outputs[0].key] = (True,) * len(node.outputs[0].shape)
    if total > MOST_ELEMENTS or region.effects:
        return None
    places = [list(np.ndindex(*shape_of(value))) for value in region.outputs]
    return Elements(region, apart).of_region(places), list(map(len, places))


def _is_small(value: Value) -> bool:
    shape = shape_of(value)
    return all(type(n) is int for n in shape) and 0 < prod(shape) <= MOST


def _is_function(node: Node) -> bool:
    """Whether each element of a result is a function of a few numbers."""
    if is_reduction(node):
        return _is_small(node.operands[0])
    return is_elementwise(node) or product_mask(node) is not None


__all__ = ["of_numbers"]
