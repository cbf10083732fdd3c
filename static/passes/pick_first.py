"""One element per row of what an elementwise function makes: picked from what that is made of."""

from __future__ import annotations

from typing import Any

from common.core.sizes import same_shape
from common.core.spec import Spec
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild

MOST = 4
"""Elementwise functions of the picked elements."""


def pick_first(graph: Graph) -> Graph:
    """pick(permute(f(x, y), p), i) -> f(pick(permute(x, p), i), pick(permute(y, p), i)), if nothing else reads f.

    The loss of images whose pixels have classes takes one logarithm per pixel, and would compute those of all classes.
    Where rows lie in memory as they are, the kernel that makes a row picks before it computes, without this pass.
    """
    ends = {node.id for node in graph.nodes if _picks(node) and _turned(node.operands[0])}
    if not ends:
        return graph
    users, bound = graph.users(), {value.key for value in graph.results}
    nodes: list[Node] = []
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        if node.id in ends:
            turn = node.operands[0].node
            source = turn.operands[0]
            alone = all(len(users[x.key]) == 1 and x.key not in bound for x in (turn.outputs[0], source))
            picker = _Picker(node, turn)
            found = picker.picked(source) if alone and _is_cheap(source) else None
            if found is not None:
                nodes += picker.made
                replace[node.outputs[0].key] = found
                continue
        nodes.append(node)
    return rebuild(graph, nodes, replace) if replace else graph


class _Picker:
    """What takes the place of one pick: `made` are the nodes."""

    def __init__(self, end: Node, turn: Node) -> None:
        self.end, self.turn = end, turn
        self.dims = turn.attrs["dims"]
        self.index, self.shape = end.operands[1], end.outputs[0].shape
        self.known: dict[tuple[int, int], Any] = {}
        self.made: list[Node] = []
        self.functions = 0

    def picked(self, x: Any) -> Any:
        """The picked elements of a value; None if it cannot be told which these are."""
        if type(x) is not Value or not x.ndim:
            return x
        if x.key not in self.known:
            self.known[x.key] = self._of_value(x)
        return self.known[x.key]

    def _of_value(self, x: Value) -> Any:
        if x.ndim != len(self.dims):
            return None
        *lead, rows = (x.shape[d] for d in self.dims)
        if type(rows) is int and rows == 1:
            return self.node(x, reshape_, (self.turned(x),), {"new_shape": tuple(lead)}, tuple(lead))
        if _is_cheap(x) and self.functions < MOST:
            self.functions += 1
            operands = [self.picked(y) for y in x.node.operands]
            if None not in operands:
                shape = self.shape if same_shape(tuple(lead), self.shape) else tuple(lead)
                return self.node(x, x.node.op, tuple(operands), x.node.attrs, shape)
        if not same_shape(tuple(lead), self.shape):
            return None
        return self.node(x, self.end.op, (self.turned(x), self.index), self.end.attrs, self.shape)

    def turned(self, x: Value) -> Value:
        """A value with its dimensions in the order in which they are picked from."""
        return self.node(x, self.turn.op, (x,), self.turn.attrs, tuple(x.shape[d] for d in self.dims))

    def node(self, x: Value, op: Any, operands: tuple[Any, ...], attrs: Any, shape: Any) -> Value:
        """A node in the place of what a value stands for."""
        spec, number = Spec(shape, x.dtype, x.spec.weak), derived_id(self.end.id, x.node.id, len(self.made))
        source = self.end.source if op is self.end.op else x.node.source
        self.made.append(Node(number, op, operands, attrs, [spec], source, self.end.scope))
        return self.made[-1].outputs[0]


def _picks(node: Node) -> bool:
    how = None if node.op is None else node.op.indexed
    return how is not None and how.one and not how.writes and type(node.operands[0]) is Value


def _turned(x: Value) -> bool:
    op = x.node.op
    return op is not None and op.parts == "turn" and x.node.attrs["dims"][-1] != x.ndim - 1


def _is_cheap(x: Any) -> bool:
    """Whether an elementwise function that costs about a load makes a value."""
    op = x.node.op if type(x) is Value else None
    return op is not None and op.kind == "elementwise" and not op.costly
