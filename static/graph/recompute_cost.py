"""Estimates of the time it takes to compute a node again, instead of keeping its results."""

from __future__ import annotations

import math
from typing import Any

from common.core.sizes import hint
from common.core.spec import numel
from static.graph.nodes import Node
from static.graph.side_effects import acts

MOVED, COSTLY, ADDED = 0.1, 1.5, 0.25
"""Nanoseconds per element of a simple operation, of a transcendental one, and of a sum."""
PYTHON = 1e9
"""Nanoseconds of what a callback does: never again, where that can be had."""
FLOPS = 30.0
"""Per nanosecond, of a product of matrices."""


def elements(shape: Any) -> float:
    """How many elements a shape has, where sizes are those of the traced call."""
    return float(hint(numel(shape)))


def nanoseconds(node: Node) -> float:
    """The nanoseconds of computing a node again, inside a kernel that exists anyway."""
    op, out = node.op, node.outputs[0]
    assert op is not None
    if op.kind == "control":
        return _control(node)
    if op.kind == "act":
        return PYTHON
    size = elements(out.shape)
    if op.kind == "view" or not node.operands:
        return 0.0
    if op.kind == "elementwise":
        return size * (COSTLY if op.costly else MOVED)
    given = max((elements(v.shape) for v in node.values), default=size)
    if op.product:
        a, b = (elements(v.shape) for v in list(node.values)[:2])
        return 100 + 2 * math.sqrt(max(a * b * size, 1.0)) / FLOPS
    return 50 + ADDED * max(given, size)


def cost_again(node: Node) -> float | None:
    """The cost of computing a node again; None for inputs and side effects."""
    return None if node.op is None or acts(node) else nanoseconds(node)


def _control(node: Node) -> float:
    regions = [sum(nanoseconds(x) for x in region.nodes if x.op is not None) for _, region in node.regions]
    return 50 + (max(regions) if node.name == "switch" else sum(regions) * hint(node.attrs["length"]))
