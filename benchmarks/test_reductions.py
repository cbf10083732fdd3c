"""Gate: reductions and scans of a million elements stay near the fastest of numpy, PyTorch and JAX in both engines."""

from typing import Any

import pytest

from benchmarks.gate import record
from benchmarks.peers import reductions as peers
from benchmarks.reductions import OURS, SHAPES, operand, samples

BOUND = 1.3
#: What misses the bound, by (function, where): a bound of its own, and why. "" stands for every place.
MISSES = {
    ("norm 2", "flat"): 2.0,  # the squares pass through the first-level cache on their way into the lanes
    ("nansum", ""): 2.5,  # likewise, with a comparison per element
    ("norm 3", ""): 2.5,  # dynamic stores the cubes
    ("var", "middle"): 6.0,  # static stores what it sums over a dimension between others
    ("std", "middle"): 6.0,
    ("nanmean", "middle"): 4.0,
    ("count_nonzero", "middle"): 4.0,
    ("cummax", "last"): 1.6,  # a chain of two selections per element, value and place
    ("cummin", "last"): 1.6,
}
CASES = [(name, where, dtype) for name in peers.NAMES for where in SHAPES for dtype in ("float32", "float64")]


@pytest.mark.parametrize(("name", "where", "dtype"), CASES, ids=lambda value: value)
def test_reduction(benchmark: Any, name: str, where: str, dtype: str) -> None:
    found = samples(name, where, dtype, peers.installed())
    fastest = {library: float(times.min()) for library, times in found.items()}
    benchmark.extra_info["seconds"] = fastest
    record(benchmark, peers.call("dynamic", name, *operand(where, dtype)), [()])
    best = min(seconds for library, seconds in fastest.items() if library not in OURS)
    bound = max(BOUND, MISSES.get((name, where), 0), MISSES.get((name, ""), 0))
    for engine in OURS:
        assert fastest[engine] <= bound * best, f"{engine} {fastest[engine] / best:.2f} of the fastest, {bound} allowed"
