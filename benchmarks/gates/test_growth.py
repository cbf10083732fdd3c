"""Gate: 10,000 nodes are traced, differentiated, optimised, lowered and planned in 5 s, and in linear time."""

from typing import Any

import pytest

from benchmarks.growth import SHAPES, grow

NODES, SECONDS, FACTOR = 10_000, 5.0, 2.5


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_nodes(benchmark: Any, shape: str) -> None:
    """A node of 10,000 takes at most 2.5 times as long as one of 1,000; ten times if anything were quadratic."""
    grow(shape, 100)
    small = min((grow(shape, NODES // 10) for _ in range(3)), key=lambda found: found.total)
    large = min((grow(shape, NODES) for _ in range(2)), key=lambda found: found.total)
    benchmark.extra_info.update(nodes=large.nodes, seconds=large.seconds, small=small.seconds)
    benchmark.pedantic(grow, (shape, NODES // 10), rounds=1)
    assert large.nodes >= 0.85 * NODES
    assert large.total <= SECONDS
    assert large.total / large.nodes <= FACTOR * small.total / small.nodes
