"""Less memory at the peak: sums that cost a load are computed again, where what they are made of is kept anyway."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any

from common.dim import hint
from common.spec import numel
from static.graph import Graph, Node, Value, rebuild

WORTHWHILE = 1 << 23
"""Bytes kept at the peak from which on this is done: less lies in a cache, and computing again would cost time only."""

STEPS = 6
"""Of so many values that follow from each other one is kept: a chain as long is computed at one go, in one loop."""

Key = tuple[int, int]


def compute_again(graph: Graph) -> Graph:
    """y = f(x, ...) here and needed long after -> y = f(x, ...) again there, if x, ... are needed there, too.

    In ``x + tanh(layer(x))``, layer by layer, both each x and each tanh are kept for the backward pass; but an x is the
    sum of the one before and the tanh. This is the idea of checkpoints, where nothing costly has to be repeated.

    References
    ----------
    Griewank, Walther, Algorithm 799: revolve, 2000.
    Chen and others, Training deep nets with sublinear memory cost, 2016.
    """
    lives = _lives(graph)
    peak = _peak(len(graph.nodes), lives)
    kept = {key: life for key, life in lives.items() if life.start <= peak < life.end}
    if sum(life.nbytes for life in kept.values()) < WORTHWHILE:
        return graph
    again = _chosen(kept, peak, {value.key for value in graph.inputs})
    return _write(graph, again, peak) if again else graph


@dataclass(slots=True)
class _Life:
    """A value in memory: position of its node, of its last use, and of the uses of the value itself, not of a view."""

    value: Value
    start: int
    end: int
    nbytes: int
    direct: list[int]
    through_views: bool = False


def _lives(graph: Graph) -> dict[Key, _Life]:
    """The lives of all values but inputs and views."""
    lives: dict[Key, _Life] = {}
    roots: dict[Key, Key] = {}
    for position, node in enumerate(graph.nodes):
        view = node.op is not None and node.op.kind == "view"
        for value in node.values:
            life = lives.get(roots.get(value.key, value.key))
            if life is not None:
                life.end = position
                if view or value.key in roots:
                    life.through_views = True
                else:
                    life.direct.append(position)
        for value in node.outputs:
            if view:
                first = next(node.values)
                roots[value.key] = roots.get(first.key, first.key)
            elif node.op is not None:
                nbytes = hint(numel(value.shape)) * value.spec.dtype.itemsize
                lives[value.key] = _Life(value, position, position, nbytes, [])
    for value in graph.results:
        life = lives.get(roots.get(value.key, value.key))
        if life is not None:
            life.end, life.through_views = len(graph.nodes), True
    return lives


def _peak(nodes: int, lives: dict[Key, _Life]) -> int:
    """The position behind which most memory is in use."""
    changes = [0] * (nodes + 2)
    for life in lives.values():
        changes[life.start] += life.nbytes
        changes[life.end] -= life.nbytes
    used = list(accumulate(changes))
    return max(range(nodes), key=used.__getitem__, default=0)


def _chosen(kept: dict[Key, _Life], peak: int, inputs: set[Key]) -> dict[Key, int]:
    """Values that need not be kept, and how many values follow from each other up to them."""
    again: dict[Key, int] = {}
    for key, life in kept.items():
        op = life.value.node.op
        if op is None or op.kind != "elementwise" or op.costly or life.through_views:
            continue
        needed = min(position for position in life.direct if position > peak)
        operands = [value.key for value in life.value.node.values if value.key not in inputs]
        if all(o in kept and kept[o].end >= needed for o in operands):
            steps = 1 + max((again.get(o, 0) for o in operands), default=0)
            if steps <= STEPS:
                again[key] = steps
    return again


def _write(graph: Graph, again: dict[Key, int], peak: int) -> Graph:
    """The graph in which the chosen values are computed again before they are first needed behind the peak."""
    nodes = graph.nodes[: peak + 1]
    numbers = count(1 + max(node.id for node in graph.nodes))
    copies: dict[Key, Value] = {}

    def append(number: int, node: Node, operands: tuple[Any, ...]) -> Node:
        specs = [value.spec for value in node.outputs]
        nodes.append(Node(number, node.op, operands, node.attrs, specs, node.source, node.scope))
        return nodes[-1]

    def copy(value: Any) -> Any:
        if type(value) is not Value or value.key not in again:
            return value
        if value.key not in copies:
            operands = tuple(copy(x) for x in value.node.operands)
            copies[value.key] = append(next(numbers), value.node, operands).outputs[0]
        return copies[value.key]

    for node in graph.nodes[peak + 1 :]:
        operands = tuple(copy(x) for x in node.operands)
        append(node.id, node, operands)
    return rebuild(graph, nodes, {})


__all__ = ["compute_again"]
