"""Residuals of a loop: the gradient reads some values back from the loop, and computes others again."""

from __future__ import annotations

import math
from typing import Any

from common.core.sizes import Dim
from static.graph import Graph, Node, Value
from static.graph.minimum_cut import minimum_cut
from static.graph.recompute_cost import elements, nanoseconds
from static.graph.region_edit import LoopEdit, Made, replace_nodes

STORED = 0.15
"""Nanoseconds per byte that is written to a stack and read back."""
STACK = 30.0
"""Nanoseconds per row of a stack, whatever its size."""


def save_residuals(graph: Graph) -> Graph:
    """g(h(x)) in the gradient of a loop that computes h(x) -> g(stack of h(x)), where reading back costs less.

    The gradient starts as a loop that computes again everything it needs from what was carried into each iteration.
    A minimum cut between that and what it needs finds the cheapest mixture. It changes no bit.
    """
    loops = {node.id: node for node in graph.nodes if node.name == "loop"}
    saved: dict[int, dict[Any, Value]] = {}
    read: dict[int, list[Any]] = {}
    for node in loops.values():
        first = loops.get(node.attrs.get("of", -1))
        keys = [] if first is None else _cut(first, node)
        if first is not None and keys:
            own = {v.key: v for x in first.attrs["body"].nodes for v in x.outputs}
            saved.setdefault(first.id, {}).update((key, own[key]) for key in keys)
            read[node.id] = keys
    if not read:
        return graph
    stacks: dict[Any, Value] = {}

    def make(node: Node) -> Made | None:
        if node.id not in saved and node.id not in read:
            return None
        edit = LoopEdit(node)
        moved: dict[Any, Value] = {}
        for number, key in enumerate(read.get(node.id, ())):
            value = next(v for x in edit.parts.body.nodes for v in x.outputs if v.key == key)
            moved[key] = Node(-(10**9) - number, None, (), {"name": "saved"}, (value.spec,), value.node.source).outputs[
                0
            ]
            edit.rows.append([stacks[node.attrs["of"], key], moved[key]])
        ends = len(edit.carried) + len(edit.stacked)
        wanted = saved.get(node.id, {})
        present = {v.key: v for x in edit.parts.body.nodes for v in x.outputs}
        edit.stacked += [[moved.get(key, present[key]), None] for key in wanted]
        made, places = edit.build(moved)
        stacks.update(((node.id, key), made.outputs[ends + i]) for i, key in enumerate(wanted))
        return made, places

    return replace_nodes(graph, make)


def _cut(first: Node, second: Node) -> list[Any]:
    """Keys of the values that `second` should read back from `first`."""
    there = {node.id for node in first.attrs["body"].nodes if node.op is not None and node.id >= 0}
    edit = LoopEdit(second)
    body = edit.parts.body
    shared = {node.id for node in body.nodes if node.id in there}
    outside = [v for node in body.nodes if node.id not in shared for v in node.values]
    demanded = [v for v in (*outside, *body.outputs) if v.node.id in shared]
    hidden = {v.key for (operand, v) in edit.rows if operand.node.id == first.id}
    cut = minimum_cut(
        demanded,
        lambda v: _stored(v) if v.node.id in shared or v.key in hidden else 0.0,
        lambda node: nanoseconds(node) if node.id in shared else None,
    )
    return [v.key for v in cut if v.node.id in shared]


def _stored(v: Value) -> float:
    """The cost of saving a value, in nanoseconds.

    Not saved are numbers, values of sizes that only a run finds, and results of nodes with regions, which the two loops
    may number differently.
    """
    control = v.node.op is not None and v.node.op.kind == "control"
    if control or v.spec.weak or any(isinstance(n, Dim) and "room" in str(n) for n in v.shape):
        return math.inf
    return STACK + STORED * elements(v.shape) * v.dtype.itemsize
