"""Gates: the overhead of one compiled call besides its arithmetic, and the cost of a new batch size."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from benchmarks.bits import mismatches
from benchmarks.gates.frame import compare
from benchmarks.workload import Array
from benchmarks.workloads.digits import Digits
from benchmarks.workloads.tiny_mlp import TinyRegression


def test_call_with_eight_small_arrays(benchmark: Any) -> None:
    """At most 3 us in all: checks, computation, a fresh result."""

    @static.function
    def total(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
        return a * b + c * d + e * f + g * h

    rng = np.random.default_rng(8)
    inputs = [tuple(rng.standard_normal(8).astype(np.float32) for _ in range(8)) for _ in range(2)]
    a, b, c, d, e, f, g, h = inputs[0]
    assert np.array_equal(total(*inputs[0]), a * b + c * d + e * f + g * h)
    samples = compare(benchmark, {"static": (total, inputs)})["static"]
    assert np.median(samples) <= 3e-6


def test_smallest_training_step(benchmark: Any) -> None:
    """At most 3 us for forward, backward and update of an MLP 2-16-1: what a call costs that reads and leaves state."""
    workload = TinyRegression()
    assert not list(mismatches(workload, dynamic, static))
    program, inputs = workload.make(static), workload.inputs()
    samples = compare(benchmark, {"static": (program.call, inputs)})["static"]
    assert np.median(samples) <= 3e-6


def test_new_batch_size_compiles_nothing(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 5 ms for the first call with a size never seen, and no new file in the compiler's cache."""
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path))
    workload = Digits()
    images, labels = (np.concatenate(arrays) for arrays in zip(*workload.inputs(), strict=True))
    step = workload.make(static).call

    def batch(size: int) -> tuple[Array, Array]:
        return images[:size].copy(), labels[:size].copy()

    step(*batch(64))
    before = sorted(tmp_path.rglob("*"))
    spent = []
    for size in range(65, 85):
        arguments = batch(size)
        start = time.perf_counter()
        step(*arguments)
        spent.append(time.perf_counter() - start)
    assert sorted(tmp_path.rglob("*")) == before
    assert np.median(spent) <= 5e-3
    benchmark.extra_info["new_size_seconds"] = float(np.median(spent))
    benchmark.pedantic(step, batch(90), rounds=20, warmup_rounds=2)
