"""Elementwise functions between a permutation and the one that takes it back."""

from __future__ import annotations

from typing import Any

from common.core.spec import Spec
from common.ops.shape.view import expand_, reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild


def turn_back(graph: Graph) -> Graph:
    """permute(f(permute(x, p)), q) -> f(x), if q takes p back and nothing else reads f.

    The gradient of an einsum has them, around what its result is multiplied by: f would read with strides what a copy
    would then put in order again. Numbers may be operands, too, and rows and columns, as of an outer product.
    """
    if not any(_is_turn(node) for node in graph.nodes):
        return graph
    users, bound = graph.users(), {value.key for value in graph.results}
    nodes: list[Node] = []
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        (x, *_) = node.operands or (None,)
        if _is_turn(node) and type(x) is Value and x.node.op is not None and x.node.op.kind == "elementwise":
            made: dict[tuple[int, int], Node] = {}
            if _turned(x, tuple(node.attrs["dims"]), node, users, bound, made) is not None and made:
                nodes += made.values()
                replace[node.outputs[0].key] = made[x.key].outputs[0]
                continue
        nodes.append(node)
    return rebuild(graph, nodes, replace) if replace else graph


def _is_turn(node: Node) -> bool:
    return node.op is not None and node.op.parts == "turn"


def _is_number(x: Any) -> bool:
    return all(type(n) is int and n == 1 for n in x.shape)


def _is_line(x: Any) -> bool:
    """Whether elements lie along one dimension, so that its place is a matter of the shape."""
    return sum(not (type(n) is int and n == 1) for n in x.shape) == 1


def _line(x: Value, shape: tuple[Any, ...], end: Node, made: dict[tuple[int, int], Node]) -> Value:
    spec = Spec(shape, x.dtype, x.spec.weak)
    new = Node(derived_id(end.id, *x.key), reshape_, (x,), {"new_shape": shape}, [spec], end.source, end.scope)
    made[x.key] = new
    return new.outputs[0]


def _turned(
    x: Value, dims: tuple[int, ...], end: Node, users: Any, bound: Any, made: dict[tuple[int, int], Node]
) -> Any:
    """The operand that `x` with its dimensions in another order is, without a copy; None if there is none.

    Parameters
    ----------
    end : the node that puts them in this order.
    made : the nodes that it takes, by the values that they stand for.
    """
    if _is_number(x):
        return x
    node = x.node
    if x.key in made:
        return made[x.key].outputs[0]
    if _is_line(x):
        shape = ((1,) * len(dims) + tuple(x.shape))[-len(dims) :]
        return _line(x, tuple(shape[d] for d in dims), end, made)
    if len(x.shape) != len(dims):
        return None
    if _is_turn(node):
        back = node.attrs["dims"]
        return node.operands[0] if all(back[d] == i for i, d in enumerate(dims)) else None
    shape, attrs, operands = tuple(x.shape[d] for d in dims), node.attrs, list[Any]()
    if node.op is expand_ and _is_number(node.operands[0]):
        attrs, operands = {**attrs, "new_shape": shape}, [*node.operands]
    elif node.op is None or node.op.kind != "elementwise" or x.key in bound or len(users[x.key]) != 1:
        return None
    for y in node.operands if not operands else ():
        if type(y) is Value and (y := _turned(y, dims, end, users, bound, made)) is None:
            return None
        operands.append(y)
    spec = Spec(shape, x.dtype, x.spec.weak)
    new = Node(derived_id(end.id, node.id), node.op, tuple(operands), attrs, [spec], node.source, node.scope)
    made[x.key] = new
    return new.outputs[0]
