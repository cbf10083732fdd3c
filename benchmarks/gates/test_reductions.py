"""Gate: reductions and scans of a million elements stay near the fastest of numpy, PyTorch and JAX in both engines."""

from typing import Any

import numpy as np
import pytest

from benchmarks.gates.frame import record
from benchmarks.peers import peer_reductions as peers
from benchmarks.reduction_times import OURS, SHAPES, operand, samples

BOUND = 1.3
CASES = [(name, where, dtype) for name in peers.NAMES for where in SHAPES for dtype in ("float32", "float64")]


@pytest.mark.parametrize(("name", "where", "dtype"), CASES, ids=lambda value: value)
def test_reduction(benchmark: Any, name: str, where: str, dtype: str) -> None:
    found = samples(name, where, dtype, peers.installed())
    fastest = {library: float(np.min(times)) for library, times in found.items()}
    benchmark.extra_info["seconds"] = fastest
    record(benchmark, peers.call("dynamic", name, *operand(where, dtype)), [()])
    best = min(seconds for library, seconds in fastest.items() if library not in OURS)
    for engine in OURS:
        assert fastest[engine] <= BOUND * best, f"{engine} {fastest[engine] / best:.2f} of the fastest, {BOUND} allowed"
