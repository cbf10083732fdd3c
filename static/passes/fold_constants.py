"""Constant folding, with the kernels that the program itself would run."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.op import FILL, REGISTRY
from common.core.sizes import Dim
from common.evaluate.specialise import run
from static.graph import Graph, Node, Value, rebuild


def fold_constants(graph: Graph) -> Graph:
    """f(constants) -> constant, for 0-d results that do not depend on sizes."""
    known: dict[tuple[int, int], np.ndarray] = {}
    nodes = []
    for node in graph.nodes:
        result = _evaluate(node, known)
        if result is None:
            nodes.append(node)
            continue
        known[node.outputs[0].key] = result
        nodes.append(node if _is_constant(node) else _constant(node, result))
    return rebuild(graph, nodes, {})


def _evaluate(node: Node, known: dict[tuple[int, int], np.ndarray]) -> np.ndarray | None:
    """The value of a 0-d node made of constants, else None."""
    op = node.op
    if op is None or op.nout != 1 or node.outputs[0].spec.shape != () or _symbolic(node.attrs):
        return None
    if op.literal:
        return np.array(node.attrs["value"], node.outputs[0].dtype)
    if op.kind not in ("elementwise", "reduction", "view") and not _is_constant(node):
        return None
    operands = [known.get(x.key) if type(x) is Value else x for x in node.operands]
    if any(x is None for x in operands) or (not operands and not _is_constant(node)):
        return None
    if not op.casts and any(type(x) is Value and x.spec.weak for x in node.operands):
        return None
    return np.asarray(run(op, operands, node.attrs))


def _is_constant(node: Node) -> bool:
    """Whether an attribute is the value."""
    return node.op is not None and type(node.op.fill) is str


def _symbolic(attrs: Any) -> bool:
    if isinstance(attrs, dict):
        return any(_symbolic(v) for v in attrs.values())
    if isinstance(attrs, tuple):
        return any(_symbolic(v) for v in attrs)
    return isinstance(attrs, Dim)


def _constant(node: Node, result: np.ndarray) -> Node:
    attrs = {"shape": (), "value": result.item(), "dtype": result.dtype}
    return Node(node.id, REGISTRY[FILL], (), attrs, (node.outputs[0].spec,), node.source, node.scope)
