"""Gradients of slices that are added to others at the same places.

Those of slices that lie beside each other are parts of one array, and nothing has to be added. Those of a stencil,
``x[1:] - x[:-1]``, overlap nearly everywhere: in parts, each of them would be cut where any other one ends. Those of
the columns of short rows, ``p[:, 0]``, are read where they lie by a loop that has a row at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from common.compiler.close_steps import CLOSE, NEAR
from common.core.numerics import LANES
from common.core.sizes import hint, same, same_shape
from common.core.spec import numel
from common.kernels.arrays.reducers import SUM
from static.graph import Node, Value
from static.lowering.ir.items import Sizes, is_literal

FEWEST_ROWS = 4 * LANES
"""Rows for which loops that have a row at once are written: in images of as few the first call would take longer."""
ROW = 256
"""Columns up to which a few numbers around a part are no loop of their own: it would go by steps of a row."""
SEARCHED = 32
"""Values among which a column of what a part is added to is looked for."""


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


def are_read_whole(node: Node, shape: Sizes, users: Mapping[tuple[int, int], Sequence[Node]]) -> bool:
    """Whether columns among zeros are of short rows, and nothing takes columns of what they are added to."""
    sizes: Any = node.attrs.get("sizes", node.operands[0].shape)
    around = hint(shape[-1]) - hint(sizes[-1])
    if hint(shape[-1]) > (ROW if around <= NEAR else CLOSE) or hint(numel(shape[:-1])) < FEWEST_ROWS:
        return False
    waiting, seen = list(node.outputs), set[tuple[int, int]]()
    while waiting and len(seen) < SEARCHED:
        value = waiting.pop()
        seen.add(value.key)
        for user in users.get(value.key, ()):
            assert user.op is not None
            if user.op.parts in ("turn", "set slice", "set view") or _takes_columns(user):
                return False
            if user.op.kind == "elementwise":
                waiting += [x for x in user.outputs if x.key not in seen and same_shape(x.shape, shape)]
    return not waiting


def _takes_columns(node: Node) -> bool:
    """Whether it is a slice of the last dimension."""
    if node.op is None or node.op.parts != "part":
        return False
    return not (is_literal(node.attrs["starts"][-1], 0) and same(node.attrs["sizes"][-1], node.operands[0].shape[-1]))
