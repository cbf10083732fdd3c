"""Which values are kept for later, and which are computed again there: a minimum cut of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from static.graph.nodes import Node, Value

SOURCE, SINK = 0, 1
_TOTAL, _INFINITE = 1 << 28, 1 << 29
"""Capacities are 32-bit integers: all finite ones together, about, and more than that."""


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


def _near_source(edges: dict[tuple[int, int], float], count: int) -> Any:
    """Per vertex whether a way leads there from the source that a maximum flow leaves open."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    near = np.zeros(count, bool)
    near[SOURCE] = True
    if not edges:
        return near
    places = np.array(list(edges), np.int32)  # SciPy below 1.14 takes no others
    prices = np.array(list(edges.values()))
    finite = np.isfinite(prices)
    scale = _TOTAL / max(float(prices[finite].sum()), 1e-9)
    capacities = np.full(len(prices), _INFINITE, np.int32)
    capacities[finite] = np.ceil(prices[finite] * scale)
    network = csr_array((capacities, (places[:, 0], places[:, 1])), (count, count))
    left: Any = network - maximum_flow(network, SOURCE, SINK).flow
    left.eliminate_zeros()
    near[breadth_first_order(left, SOURCE, return_predecessors=False)] = True
    return near


__all__ = ["minimum_cut"]
