"""The minimum cut beside SciPy's maximum flow, which shares no code with it."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from static.graph.minimum_cut import _INFINITE, _TOTAL, SINK, SOURCE, _near_source


def network(rng: random.Random) -> tuple[dict[tuple[int, int], float], int]:
    """Random prices, some of them 0, equal or endless, of edges that may form circles."""
    count = rng.randint(3, 30)
    edges = {}
    for _ in range(rng.randint(1, 4 * count)):
        start, end = rng.randrange(count), rng.randrange(count)
        if start != end and start != SINK and end != SOURCE:
            endless = rng.random() < 0.2 and (start, end) != (SOURCE, SINK)
            edges[start, end] = math.inf if endless else rng.choice([0.0, 1.0, rng.random() * 100, rng.random()])
    return edges, count


def by_scipy(edges: dict[tuple[int, int], float], count: int) -> list[bool]:
    """The nodes that a maximum flow leaves within reach of the source."""
    prices = np.array(list(edges.values()))
    finite = np.isfinite(prices)
    capacities = np.full(len(prices), _INFINITE, np.int32)
    capacities[finite] = np.ceil(prices[finite] * (_TOTAL / max(sum(prices[finite].tolist()), 1e-9)))
    places = np.array(list(edges), np.int32)
    flows = csr_array((capacities, (places[:, 0], places[:, 1])), (count, count))
    left = flows - maximum_flow(flows, SOURCE, SINK).flow
    left.eliminate_zeros()
    near = breadth_first_order(left, SOURCE, return_predecessors=False)
    return [vertex in near for vertex in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_the_cut_next_to_the_source_is_that_of_a_maximum_flow(seed):
    rng = random.Random(seed)
    for _ in range(40):
        edges, count = network(rng)
        if edges:
            assert _near_source(edges, count) == by_scipy(edges, count)


def test_nothing_is_cut_where_there_is_nothing():
    assert _near_source({}, 2) == [True, False]
