"""Gradients of slices that take every k-th element, whose elements lie between each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import count
from math import prod
from typing import Any, NamedTuple

from common.core.op import ADD
from common.core.sizes import same, same_shape
from common.core.spec import Spec
from common.ops.shape.cat import stack_of
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild

MOST = 16
"""Parts of an array that are stacked."""


def interleave(graph: Graph) -> Graph:
    """a, 0, a, 0, ... + 0, b, 0, b, ... -> reshape(stack(a + 0, b + 0, last)), if the two are all that there is.

    The halves of a wavelet, pairs of a rotation and fields of a chequerboard are such slices. Their gradients are
    written once, instead of zeros, then parts among them, then sums of whole arrays. Adding `+ 0.0` turns -0.0 into
    +0.0 here as it did there.
    """
    sums: dict[tuple[int, int], _Sum] = {}
    for node in graph.nodes:
        found = _sum(node, sums)
        if found is not None and len(found.parts) <= MOST:
            sums[node.outputs[0].key] = found
    if len(sums) < 3:
        return graph
    inside = set[tuple[int, int]]()
    replace: dict[tuple[int, int], Any] = {}
    made: list[list[Node]] = []
    for node in reversed(graph.nodes):
        own, key = [node], node.outputs[0].key if node.outputs else None
        if key in inside or (key in sums and _is_all(sums[key])):
            inside |= {x.key for x in node.values if node.name == ADD}
            if key not in inside:
                whole = _Whole(node, sums[key])
                own, replace[key] = whole.nodes, whole.value
        made.append(own)
    return rebuild(graph, [node for own in reversed(made) for node in own], replace) if replace else graph


class _Sum(NamedTuple):
    """A sum of parts among zeros, added from left to right, and of an array before them if there is one."""

    parts: list[Node]
    before: Value | None = None


def _sum(node: Node, sums: dict[tuple[int, int], _Sum]) -> _Sum | None:
    """The sum that a node is; None if it is no such sum."""
    if node.op is not None and node.op.parts == "pad" and any(step != 1 for step in node.attrs.get("steps", ())):
        return _Sum([node])
    if node.name != ADD or any(
        type(x) is not Value or not same_shape(x.shape, node.outputs[0].shape) for x in node.operands
    ):
        return None
    first, second = (sums.get(x.key) for x in node.operands)
    if second is None or second.before is not None or len(_by_start(second.parts)) != len(second.parts):
        return None
    if first is None:
        return _Sum(second.parts, node.operands[0]) if len(second.parts) == 1 else None
    return _Sum([*first.parts, *second.parts], first.before)


def _by_start(parts: list[Node]) -> dict[tuple[Any, ...], list[Node]]:
    found: dict[tuple[Any, ...], list[Node]] = {}
    for part in parts:
        found.setdefault(part.attrs["starts"], []).append(part)
    return found


def _is_all(total: _Sum) -> bool:
    """Whether the parts share no element or all, and leave none out, whatever the sizes of a call are."""
    parts, starts = total.parts, _by_start(total.parts)
    shape, sizes, steps = (parts[0].attrs[name] for name in ("shape", "sizes", "steps"))
    if any(type(step) is not int or step < 1 for step in steps) or len(starts) != prod(steps):
        return False
    if total.before is not None and len(starts) != len(parts):
        return False
    for part in parts:
        own = part.attrs
        if own["steps"] != steps or not same_shape(own["sizes"], sizes) or not same_shape(own["shape"], shape):
            return False
        for n, start, size, step in zip(shape, own["starts"], sizes, steps, strict=True):
            if type(start) is not int or not 0 <= start < step or not same(size, (n - start + step - 1) // step):
                return False
    return True


class _Whole:
    """The nodes that stand in the place of a sum of parts, and their value."""

    def __init__(self, total: Node, found: _Sum) -> None:
        self.nodes: list[Node] = []
        self._total, self._ids = total, self._numbers()
        attrs, shape = found.parts[0].attrs, total.outputs[0].shape
        self._sizes, self._steps = attrs["sizes"], attrs["steps"]
        self.value = self._of(_by_start(found.parts), len(shape) - 1)
        if found.before is not None:
            self.value = self._add(total.op, (found.before, self.value), total.attrs, shape)

    def _numbers(self) -> Iterator[int]:
        return (derived_id(self._total.id, i) for i in count())

    def _add(self, op: Any, operands: tuple[Any, ...], attrs: dict[str, Any], shape: tuple[Any, ...]) -> Value:
        total = self._total
        spec = Spec(shape, total.outputs[0].dtype, total.outputs[0].spec.weak)
        self.nodes.append(Node(next(self._ids), op, operands, attrs, [spec], total.source, total.scope))
        return self.nodes[-1].outputs[0]

    def _of(self, parts: dict[tuple[Any, ...], list[Node]], dim: int) -> Value:
        """Parts that differ in their starts along some dimensions, the last of which is `dim`, as one array."""
        while dim >= 0 and self._steps[dim] == 1:
            dim -= 1
        if dim < 0:
            (found,) = parts.values()
            return self._with_zero([part.operands[0] for part in found])
        apart = [{k: x for k, x in parts.items() if k[dim] == start} for start in range(self._steps[dim])]
        rows = [self._of(own, dim - 1) for own in apart]
        shape = rows[0].shape
        stacked = (*shape[: dim + 1], len(rows), *shape[dim + 1 :])
        whole = (*shape[:dim], self._total.outputs[0].shape[dim], *shape[dim + 1 :])
        between = self._add(stack_of(len(rows)), tuple(rows), {"dim": dim + 1}, stacked)
        return self._add(reshape_, (between,), {"new_shape": whole}, whole)

    def _with_zero(self, parts: list[Value]) -> Value:
        op, sizes = self._total.op, self._sizes
        own = [
            x if same_shape(x.shape, sizes) else self._add(reshape_, (x,), {"new_shape": sizes}, sizes) for x in parts
        ]
        value = reduce(lambda x, y: self._add(op, (x, y), {}, sizes), own)
        return self._add(op, (value, 0.0), {}, sizes) if value.dtype.kind == "f" else value


__all__ = ["interleave"]
