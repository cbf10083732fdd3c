"""Algebra that is exact for every operand, NaN and signed zeros included."""

from __future__ import annotations

from typing import Any

from common.core.sizes import same
from static.graph import Graph, Node, Value, rebuild


def simplify(graph: Graph) -> Graph:
    """x * 1 -> x;  x / 1 -> x;  -(-x) -> x;  reshape(x, shape of x) -> x;  expand(x, shape of x) -> x."""
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        target = _same_as(node, replace)
        if target is not None and _same_spec(target, node.outputs[0]):
            replace[node.outputs[0].key] = target
    return rebuild(graph, graph.nodes, replace)


def _same_as(node: Node, replace: dict[tuple[int, int], Any]) -> Any:
    """The value that a node's result equals, or None."""
    operands = [replace.get(x.key, x) if type(x) is Value else x for x in node.operands]
    match node.name, operands:
        case ("mul" | "div", [Value() as x, int() | float() as c]) if c == 1:
            return x
        case ("mul", [int() | float() as c, Value() as x]) if c == 1:
            return x
        case ("neg", [Value() as x]) if x.node.name == "neg":
            inner = x.node.operands[0]
            return replace.get(inner.key, inner) if type(inner) is Value else None
        case ("reshape" | "expand" | "to", [Value() as x]):
            return x
    return None


def _same_spec(a: Value, b: Value) -> bool:
    same_shape = len(a.shape) == len(b.shape) and all(same(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    return same_shape and a.dtype == b.dtype and a.spec.weak == b.spec.weak
