"""Products of transposed matrices, which read them as they lie."""

from __future__ import annotations

from typing import Any

from common.core.sizes import same
from common.core.spec import Spec
from static.graph import Graph, Node, Value, derived_id, rebuild


def turn_products(graph: Graph) -> Graph:
    """product(x^T, y) -> product(x, y, trans_a=True); so with y, and if only dimensions before are reshaped.

    The order in which an element is added up does not depend on how a matrix lies.
    """
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        if node.op is None or not node.op.product:
            nodes.append(node)
            continue
        operands, attrs = list(node.operands), dict(node.attrs)
        for i, name in enumerate(node.op.inputs):
            flag = f"trans_{name}"
            while flag in attrs and (found := _turned(operands[i], node.id, i)) is not None:
                operands[i], made = found
                nodes += made
                attrs[flag] = not attrs[flag]
        if attrs != node.attrs:
            changed = True
            specs = [value.spec for value in node.outputs]
            node = Node(node.id, node.op, tuple(operands), attrs, specs, node.source, node.scope)
        nodes.append(node)
    return rebuild(graph, nodes, {}) if changed else graph


def _turned(x: Any, *of: int) -> tuple[Value, list[Node]] | None:
    """The value of which the last two dimensions change places in `x`, an operand `of` a node, and the nodes that it
    takes; None if there is none.
    """
    if type(x) is not Value or x.node.op is None:
        return None
    op, attrs, ndim = x.node.op, x.node.attrs, len(x.shape)
    if op.parts == "turn":
        last_two = (*range(ndim - 2), ndim - 1, ndim - 2)
        inner = x.node.operands[0]
        return (inner, []) if tuple(attrs["dims"]) == last_two and type(inner) is Value else None
    if not op.form_only or set(attrs) != {"new_shape"}:
        return None
    (before,) = x.node.operands
    if type(before) is not Value or len(before.shape) < 2 or ndim < 2:
        return None
    if not all(same(m, n) for m, n in zip(x.shape[-2:], before.shape[-2:], strict=True)):
        return None
    found = _turned(before, *of)
    if found is None:
        return None
    inner, made = found
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    node = Node(
        derived_id(*of, x.node.id),
        op,
        (inner,),
        {"new_shape": shape},
        [Spec(shape, x.dtype, x.spec.weak)],
        x.node.source,
    )
    return node.outputs[0], [*made, node]
