"""Gate: rows a to f, deep: bits as in `dynamic`, and `static` not slower than jax.jit and torch.compile."""

from typing import Any

import pytest

import dynamic
import static
from benchmarks import bits
from benchmarks.gate import assert_ratio, compare
from benchmarks.peers import installed
from benchmarks.run import programs
from benchmarks.workload import Workload, discover

BOUND = 1.05  # of the upper end of the 95 % interval: two equal programs measure apart by a few percent
ROWS = [workload for workload in discover() if workload.name.partition("-")[0] in {*"abcdef", "deep"}]
COMPILED = [peer for peer in installed() if peer in ("jax.jit", "torch.compile")]


@pytest.mark.parametrize("workload", ROWS, ids=lambda workload: workload.name)
def test_row(benchmark: Any, workload: Workload) -> None:
    assert list(bits.mismatches(workload, dynamic, static)) == []
    samples = compare(benchmark, programs(workload, {"static": static, "dynamic": dynamic}, COMPILED))
    assert_ratio(samples, "static", "dynamic", 1.0)
    for peer in COMPILED:
        assert_ratio(samples, "static", peer, BOUND, upper=True)
