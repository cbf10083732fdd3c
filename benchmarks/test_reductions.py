"""Gate: reductions and scans of a million elements stay near the fastest of numpy, PyTorch and JAX in both engines."""

from typing import Any

import pytest

from benchmarks.gate import record
from benchmarks.peers import reductions as peers
from benchmarks.reductions import OURS, SHAPES, operand, samples

BOUND = 1.3
#: What misses the bound, by (function, where): a bound of its own, and why. "" stands for every place.
MISSES = {
    ("sum", "middle"): 1.6,  # float64, 100 rows of 100: 36 of them are added to the accumulators one by one
    ("mean", "middle"): 1.6,  # likewise
    ("amax", "middle"): 1.5,  # the maxima so far pass through the first-level cache at every row
    ("amin", "middle"): 1.5,  # likewise
    ("nansum", "flat"): 1.7,  # static writes a block of what it sums to the first-level cache and reads it again
    ("nansum", "last"): 1.7,  # likewise
    ("nansum", "middle"): 2.5,  # static stores what it sums over a dimension between others
    ("norm 2", "middle"): 2.5,  # likewise
    ("logsumexp", ""): 1.7,  # dynamic stores the exponentials
    ("cummax", ""): 1.6,  # a chain of two selections per element, value and place
    ("cummin", ""): 1.6,
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
