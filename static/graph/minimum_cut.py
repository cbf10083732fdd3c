"""Values to keep for later, and values to compute again there: a minimum cut of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from static.graph.nodes import Node, Value

SOURCE, SINK = 0, 1
_TOTAL, _INFINITE = 1 << 28, 1 << 29
"""Capacities are integers, so that a flow fills edges exactly: all finite ones together, about, and more than that."""


def minimum_cut(
    uses: Iterable[Value], keep: Callable[[Value], float], again: Callable[[Node], float | None]
) -> list[Value]:
    """The values to keep so that `uses` can be had later, at the least price; of equal cuts the one nearest to them.

    Parameters
    ----------
    uses : what is needed later.
    keep : the price of keeping a value; 0 if it exists anyway, inf if it cannot be kept.
    again : the price of computing a node again from its operands, in the same units; None if that is not to be done.

    References
    ----------
    Picard, Maximal closure of a graph and applications to combinatorial problems, 1976.
    """
    edges: dict[tuple[int, int], float] = {}
    numbers: dict[Any, int] = {}
    values: dict[Any, Value] = {}
    waiting = list(uses)
    for value in waiting:
        edges[SOURCE, _number(numbers, value.key, "used")] = math.inf
    while waiting:
        value = waiting.pop()
        if value.key in values:
            continue
        values[value.key] = value
        used, made = _number(numbers, value.key, "used"), _number(numbers, value.key, "made")
        price = keep(value)
        cost = again(value.node) if price else None
        edges[used, made] = price
        if cost is None:
            edges[made, SINK] = math.inf
            continue
        node = _number(numbers, value.node.id, "node")
        edges[made, node] = math.inf
        if (node, SINK) not in edges:
            edges[node, SINK] = cost
            for operand in value.node.values:
                edges[node, _number(numbers, operand.key, "used")] = math.inf
                waiting.append(operand)
    near = _near_source(edges, 2 + len(numbers))
    found = [v for key, v in values.items() if near[numbers[key, "used"]] and not near[numbers[key, "made"]]]
    return sorted(found, key=lambda v: v.key)


def _number(numbers: dict[Any, int], name: Any, part: str) -> int:
    """The number of a vertex."""
    return numbers.setdefault((name, part), 2 + len(numbers))


def _near_source(edges: dict[tuple[int, int], float], count: int) -> list[bool]:
    """Per vertex whether a way leads there from the source that a maximum flow leaves open.

    References
    ----------
    Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation, 1970.
    """
    scale = _TOTAL / max(sum(price for price in edges.values() if price < math.inf), 1e-9)
    ends: list[int] = []
    room: list[int] = []  # of an edge, and behind it of its reverse
    leaving: list[list[int]] = [[] for _ in range(count)]
    for (start, end), price in edges.items():
        leaving[start].append(len(ends))
        leaving[end].append(len(ends) + 1)
        ends += end, start
        room += _INFINITE if price == math.inf else math.ceil(price * scale), 0
    while True:
        depth = _depths(leaving, ends, room)
        if depth[SINK] < 0:
            return [d >= 0 for d in depth]
        _fill(leaving, ends, room, depth)


def _depths(leaving: list[list[int]], ends: list[int], room: list[int]) -> list[int]:
    """The number of open edges from the source to each vertex; -1 where no way is open."""
    depth = [-1] * len(leaving)
    depth[SOURCE] = 0
    reached = [SOURCE]
    for vertex in reached:
        for edge in leaving[vertex]:
            if room[edge] and depth[ends[edge]] < 0:
                depth[ends[edge]] = depth[vertex] + 1
                reached.append(ends[edge])
    return depth


def _fill(leaving: list[list[int]], ends: list[int], room: list[int], depth: list[int]) -> None:
    """Send as much through the shortest ways as they let through."""
    tried = [0] * len(leaving)
    way: list[int] = []
    vertex = SOURCE
    while True:
        if vertex == SINK:
            most = min(room[edge] for edge in way)
            for place, edge in reversed(list(enumerate(way))):
                room[edge] -= most
                room[edge ^ 1] += most
                if not room[edge]:
                    full = place
            del way[full:]
        elif tried[vertex] < len(leaving[vertex]):
            edge = leaving[vertex][tried[vertex]]
            if room[edge] and depth[ends[edge]] == depth[vertex] + 1:
                way.append(edge)
            else:
                tried[vertex] += 1
        elif way:
            tried[ends[way.pop() ^ 1]] += 1
        else:
            return
        vertex = ends[way[-1]] if way else SOURCE


__all__ = ["minimum_cut"]
