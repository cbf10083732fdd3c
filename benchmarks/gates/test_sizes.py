"""Gate: a batch size, or a length of a loop, that has not been seen before costs at most 1 ms, no trace and no kernel.

In processor time of the calling thread: of the first three calls, without three times that of a later one.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import static
from benchmarks.workload import discover
from common.compiler import compile as compile_module

SECONDS = 0.001
#: Workloads whose arguments have the batch (`lstm`: the time) as their first dimension, and no size that it decides.
WORKLOADS = ("charlm", "deep", "digits", "lstm", "b-cross-entropy", "d-mlp-adam", "f-mlp", "g-mlp-adam")


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many threads there are."""
    static.set_num_threads(request.param)
    yield request.param
    static.set_num_threads(1)


#: With two threads that with the most calls: of longer steps, what the caller itself computes varies too much.
@pytest.mark.parametrize(("name", "threads"), [*((name, 1) for name in WORKLOADS), ("deep", 2)], indirect=["threads"])
def test_a_new_size(benchmark: Any, name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of some sizes, for quiet."""
    (workload,) = (w for w in discover() if w.name == name)
    call: Any = workload.make(static).call
    arrays = workload.inputs()[0]
    call(*arrays)
    monkeypatch.setattr(compile_module, "_get", None)  # compiles, or loads from the disk
    found = []
    for less in range(1, 17):
        smaller = tuple(x[: len(x) - less * (len(x) // len(arrays[0]))] for x in arrays)
        seconds = []
        for _ in range(6):
            start = time.thread_time()
            call(*smaller)
            seconds.append(time.thread_time() - start)
        found.append(sum(seconds[:3]) - 3 * min(seconds))
    assert len(call.traces) == 1
    benchmark.extra_info["new_size_seconds"] = found
    benchmark.pedantic(call, arrays, rounds=5)
    assert np.min(found) <= SECONDS
