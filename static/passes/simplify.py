"""Algebra that is exact for every operand, NaN and signed zeros included."""

from __future__ import annotations

from typing import Any

from common.core.sizes import same
from static.graph import Graph, Node, Value, rebuild


def simplify(graph: Graph) -> Graph:
    """x * 1 -> x;  x / 1 -> x;  x ** 1 -> x;  -(-x) -> x;  reshape(x, shape of x) -> x;  expand(x, shape of x) -> x.

    The records say which ops these are: `neutral`, `involution`, `form_only` of `common.core.op.Op`.
    """
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        target = _same_as(node, replace)
        if target is not None and _same_spec(target, node.outputs[0]):
            replace[node.outputs[0].key] = target
    return rebuild(graph, graph.nodes, replace)


def _same_as(node: Node, replace: dict[tuple[int, int], Any]) -> Any:
    """The value that a node's result equals, or None."""
    op = node.op
    if op is None:
        return None
    operands = [replace.get(x.key, x) if type(x) is Value else x for x in node.operands]
    for position, number in op.neutral:
        x, c = operands[1 - position], operands[position]
        if type(x) is Value and isinstance(c, (int, float)) and c == number:
            return x
    x = operands[0] if len(operands) == 1 else None
    if type(x) is not Value:
        return None
    if op.involution and x.node.op is op:
        inner = x.node.operands[0]
        return replace.get(inner.key, inner) if type(inner) is Value else None
    return x if op.form_only else None


def _same_spec(a: Value, b: Value) -> bool:
    same_shape = len(a.shape) == len(b.shape) and all(same(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    return same_shape and a.dtype == b.dtype and a.spec.weak == b.spec.weak
