"""How long values are kept, how much that is, and nodes that compute some of them again instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count

from common.core.sizes import hint
from static.graph.nodes import Graph, Node, Value

Key = tuple[int, int]


@dataclass(slots=True)
class Life:
    """A value in memory: positions of its node, its last use, and all uses, those of views of it included."""

    value: Value
    start: int
    end: int
    nbytes: int
    uses: list[int]
    through_views: bool = False


def nbytes(value: Value) -> int:
    """Bytes of a value, for the sizes of the traced call."""
    return int(math.prod(map(hint, value.shape))) * value.dtype.itemsize


def lives(nodes: Sequence[Node], results: Sequence[Value]) -> dict[Key, Life]:
    """The lives of all values but inputs and views."""
    found: dict[Key, Life] = {}
    shown: dict[Key, Life] = {}  # by views too
    sizes: dict[int, int] = {}
    for position, node in enumerate(nodes):
        op = node.op
        view = op is not None and op.kind == "view"
        for value in node.operands:
            if type(value) is Value:
                life = shown.get((value.node.id, value.index))
                if life is not None:
                    life.end = position
                    life.uses.append(position)
                    life.through_views |= view
        if view:
            if (first := shown.get(next(node.values).key)) is not None:
                shown.update((value.key, first) for value in node.outputs)
        elif op is not None:
            for value in node.outputs:
                size = sizes.get(id(value.spec))
                if size is None:
                    size = sizes[id(value.spec)] = nbytes(value)
                key = node.id, value.index
                found[key] = shown[key] = Life(value, position, position, size, [])
    for value in results:
        life = shown.get(value.key)
        if life is not None:
            life.end, life.through_views = len(nodes), True
    return found


def usage(nodes: int, lived: Collection[Life]) -> list[int]:
    """Bytes that are kept behind each of so many nodes."""
    changes = [0] * (nodes + 2)
    for life in lived:
        changes[life.start] += life.nbytes
        changes[life.end] -= life.nbytes
    return list(accumulate(changes))[:nodes]


def runs_alone(node: Node) -> bool:
    """Whether a node is never part of a loop over elements with others."""
    return node.op is not None and node.op.kind not in ("elementwise", "reduction", "view")


def temporaries(nodes: Sequence[Node], results: Sequence[Value]) -> list[Life]:
    """The lives of what will lie in memory of the program's own, about.

    What is made and used between two kernels that are no loops over elements is not stored, because loops are fused;
    results have memory anyway. An operand of such a kernel lives as long as its results begin to.
    """
    own = [runs_alone(node) for node in nodes]
    before = [0, *accumulate(own)]
    given, found = {value.key for value in results}, []
    for key, life in lives(nodes, results).items():
        last = min(life.end, len(nodes) - 1)
        if key not in given and before[last + 1] > before[life.start]:
            if own[last]:
                life.end = last + 1
            found.append(life)
    return found


def computed_again(
    graph: Graph, peak: int, windows: Sequence[tuple[int, Collection[Key]]], behind: Sequence[Node] | None = None
) -> list[Node]:
    """Nodes of a graph in which values made up to a position are computed again where they are needed behind it.

    Each is computed again right before its first use in a window, and kept until its last use there.

    Parameters
    ----------
    windows : where each ends, in order, and the values that are computed again in it.
    behind : nodes that take the place of the last one, which reads what they need.
    """
    nodes = graph.nodes[: peak + 1]
    numbers = count(1 + max(node.id for node in graph.nodes))
    start = peak + 1
    for end, again in windows:
        copies: dict[Key, Value] = {}
        for node in graph.nodes[start:end]:
            if any(value.key in again for value in node.values):
                _copy([v.node for v in node.values if v.key in again], again, copies, nodes, numbers)
                node = _moved(node.id, node, again, copies)
            nodes.append(node)
        start = end
    if behind is not None:
        nodes[-1:] = [_moved(node.id, node, again, copies) for node in behind]
    return nodes


def _copy(
    waiting: list[Node], again: Collection[Key], copies: dict[Key, Value], nodes: list[Node], numbers: Iterator[int]
) -> None:
    """Append what is computed again to have some nodes; iterative, because chains are as long as networks are deep."""
    waiting.reverse()
    while waiting:
        node = waiting[-1]
        missing = [v.node for v in node.values if v.key in again and v.key not in copies]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if node.outputs[0].key not in copies:
            nodes.append(_moved(next(numbers), node, again, copies))
            copies.update((old.key, new) for old, new in zip(node.outputs, nodes[-1].outputs, strict=True))


def _moved(number: int, node: Node, again: Collection[Key], copies: dict[Key, Value]) -> Node:
    """A node that reads what was computed again."""
    operands = tuple(copies[x.key] if type(x) is Value and x.key in again else x for x in node.operands)
    specs = [value.spec for value in node.outputs]
    return Node(number, node.op, operands, node.attrs, specs, node.source, node.scope)
