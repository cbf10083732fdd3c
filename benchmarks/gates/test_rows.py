"""Gate: rows a to i and deep have the bits of `dynamic`, and `static` is faster than jax.jit and torch.compile."""

from statistics import geometric_mean
from typing import Any

import pytest

import dynamic
import static
from benchmarks import bits, stats
from benchmarks.gates.frame import assert_ratio, compare
from benchmarks.lab.progress import Progress
from benchmarks.peers import installed
from benchmarks.run import programs
from benchmarks.workload import Workload, discover

MEAN = 1.5  # times as fast as the faster peer of each row, geometric mean
BESIDE_DYNAMIC = {"c-layer-norm": 1.1}  # both engines go through each array once, and wait for memory
ROWS = [workload for workload in discover() if workload.name.partition("-")[0] in {*"abcdefghi", "deep"}]
COMPILED = [peer for peer in installed() if peer in ("jax.jit", "torch.compile")]
FACTORS: dict[str, float] = {}  # by row: how many times as fast as the faster peer


@pytest.mark.parametrize("workload", ROWS, ids=lambda workload: workload.name)
def test_row(benchmark: Any, workload: Workload) -> None:
    assert list(bits.mismatches(workload, dynamic, static)) == []
    found, _ = programs(workload, {"static": static, "dynamic": dynamic}, COMPILED, Progress(1))
    samples = compare(benchmark, found)
    if COMPILED:
        FACTORS[workload.name] = min(stats.ratio(samples[peer], samples["static"]).value for peer in COMPILED)
    assert_ratio(samples, "static", "dynamic", BESIDE_DYNAMIC.get(workload.name, 1.0))
    for peer in COMPILED:
        assert_ratio(samples, "static", peer, 1.0)


def test_mean_over_rows() -> None:
    """After all rows, in the same run."""
    if COMPILED:
        assert FACTORS.keys() == {workload.name for workload in ROWS}, "run it together with the rows"
        assert geometric_mean(FACTORS.values()) >= MEAN, FACTORS
