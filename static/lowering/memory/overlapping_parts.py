"""Gradients of slices that are added to others at the same places.

Those of slices that lie beside each other are parts of one array, and nothing has to be added. Those of a stencil,
``x[1:] - x[:-1]``, overlap nearly everywhere: in parts, each of them would be cut where any other one ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from common.core.sizes import hint
from common.kernels.arrays.reducers import SUM
from static.graph import Node, Value
from static.lowering.ir.items import is_literal


def overlapping(nodes: Sequence[Node]) -> set[int]:
    """The ids of the nodes that place a part among zeros where another part is added to it."""
    sums: dict[tuple[int, int], list[Node]] = {}  # value -> the parts that it is a sum of, of all sums of the same
    for node in nodes:
        if node.op is None or len(node.outputs) != 1:
            continue
        key = node.outputs[0].key
        if node.op.parts == "pad" and all(is_literal(step, 1) for step in node.attrs.get("steps", ())):
            sums[key] = [node]
        elif node.op.name == SUM.join:
            found = [own for x in node.operands if type(x) is Value and (own := sums.get(x.key)) is not None]
            if found:
                sums[key] = large = max(found, key=len)
                large += [pad for own in found if own is not large for pad in own]
    different = {id(own): own for own in sums.values()}
    return {node.id for own in different.values() if _overlap(own) for node in own}


def _overlap(pads: Iterable[Node]) -> bool:
    """Whether two of them share some elements but not all, at the sizes of the traced call."""
    spans = {_span(node) for node in pads}
    dims = {dim for dim, _, _ in spans}
    return len(spans) > 1 and (len(dims) > 1 or any(a[2] > b[1] for a, b in pairwise(sorted(spans))))


def _span(node: Node) -> tuple[int, int, int]:
    """The first dimension along which a part does not fill the whole, and from where to where it does."""
    attrs = node.attrs
    sizes: Any = attrs.get("sizes", node.operands[0].shape)
    places = list(zip(map(hint, attrs["shape"]), map(hint, attrs["starts"]), map(hint, sizes), strict=True))
    dim = next((d for d, (n, start, size) in enumerate(places) if start or size != n), 0)
    return (dim, places[dim][1], places[dim][1] + places[dim][2]) if places else (0, 0, 1)
