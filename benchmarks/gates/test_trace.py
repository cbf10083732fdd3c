"""Gate: from a function of 1,000 operations to a plan, compilation of kernels aside, at most 1 s."""

import time
from typing import Any

import numpy as np

import static
from benchmarks.workloads import chain

NODES = 1000


def program() -> Any:
    """Return a new compiled function of more than a thousand operations, forward and backward."""

    @static.function
    def call(x: Any, w: Any, b: Any) -> Any:
        def loss(x: Any, w: Any, b: Any) -> Any:
            for _ in range(4):
                x = chain.mixed(x, w, b, static)
            return static.sum(x)

        return static.grad(loss, argnums=(0, 1, 2))(x, w, b)

    return call


def test_trace_to_plan(benchmark: Any) -> None:
    inputs = chain.MixedChain().inputs()[0][:3]
    first = program()
    first(*inputs)  # compiles; its kernels are in memory now
    assert len(first.graph) >= NODES
    spent = []
    for _ in range(5):
        call = program()
        start = time.perf_counter()
        call(*inputs)  # the run itself is some microseconds of it
        spent.append(time.perf_counter() - start)
    benchmark.extra_info["trace_to_plan_seconds"] = spent
    benchmark.pedantic(first, inputs, rounds=20, warmup_rounds=2)
    assert np.median(spent) <= 1.0
