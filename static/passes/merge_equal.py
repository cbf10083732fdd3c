"""Common subexpression elimination."""

from __future__ import annotations

import struct
from typing import Any

from common.core import sizes
from static.graph import Graph, Node, Value, rebuild


def merge_equal(graph: Graph) -> Graph:
    """f(x, a), f(x, a) -> one f(x, a): same op, operands and attributes."""
    first: dict[Any, Node] = {}
    replace: dict[tuple[int, int], Any] = {}
    kept = []
    for node in graph.nodes:
        if node.op is not None and node.op.kind not in ("control", "act"):
            weak = tuple(value.spec.weak for value in node.outputs)
            key = (node.name, tuple(_operand(x, replace) for x in node.operands), _plain(node.attrs), weak)
            known = first.setdefault(key, node)
            if known is not node:
                for old, new in zip(node.outputs, known.outputs, strict=True):
                    replace[old.key] = new
                continue
        kept.append(node)
    return rebuild(graph, kept, replace)


def _operand(x: Any, replace: dict[tuple[int, int], Any]) -> Any:
    return replace.get(x.key, x).key if type(x) is Value else _plain(x)


def _plain(x: Any) -> Any:
    """A hashable form in which 1, 1.0 and True differ, 0.0 and -0.0 too, and symbolic sizes compare structurally."""
    if isinstance(x, dict):
        return tuple((k, _plain(v)) for k, v in x.items())
    if isinstance(x, (tuple, list)):
        return tuple(_plain(v) for v in x)
    if isinstance(x, sizes.Dim):
        return ("dim", sizes.key(x))
    return (type(x), struct.pack("d", x)) if isinstance(x, float) else (type(x), x)
