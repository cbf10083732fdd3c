"""Gate: small operations in `dynamic`, all bookkeeping on, take at most 0.6 of PyTorch eager's time."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import dynamic
from benchmarks.gate import assert_ratio, compare
from benchmarks.workloads import chain

BOUND = 0.6
CASES = {workload.name: workload for workload in chain.WORKLOADS}


def eager(framework: Any, body: Any, leaves: list[Any]) -> Any:
    """Return a call (cotangent) -> y that runs forward and backward and leaves fresh gradients."""

    def call(cotangent: Any) -> Any:
        for leaf in leaves:
            leaf.grad = None
        y = body(*leaves, framework)
        y.backward(cotangent)
        return y

    return call


@pytest.mark.parametrize("name", CASES)
def test_chain(benchmark: Any, name: str) -> None:
    workload = CASES[name]
    sets = workload.inputs()
    leaves = [dynamic.tensor(array, requires_grad=True) for array in sets[0][:3]]
    ours = eager(dynamic, workload.body, leaves)
    calls = {"dynamic": (ours, [(dynamic.tensor(arrays[3]),) for arrays in sets])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        theirs = [torch.tensor(array, requires_grad=True) for array in sets[0][:3]]
        cotangents = [(torch.tensor(arrays[3]),) for arrays in sets]
        calls["torch"] = (eager(torch, workload.body, theirs), cotangents)
        mine, other = (calls[name][0](*calls[name][1][0]).detach().numpy() for name in ("dynamic", "torch"))
        np.testing.assert_allclose(mine, other, rtol=1e-4)
        for leaf, peer in zip(leaves, theirs, strict=True):
            size = np.abs(leaf.grad.numpy()).max()  # sums of large terms that cancel
            np.testing.assert_allclose(leaf.grad.numpy(), peer.grad.numpy(), atol=1e-4 * size)
    samples = compare(benchmark, calls)
    if "torch" in samples:
        assert_ratio(samples, "dynamic", "torch", BOUND)


def test_long_chain_differentiates(benchmark: Any) -> None:
    """A graph of 1e5 operations, one after the other, needs no recursion."""
    x = dynamic.tensor([0.5, -2.0], requires_grad=True)

    def run() -> None:
        x.grad = None
        y = x
        for _ in range(50_000):
            y = y * 1.0 + 0.25
        y.sum().backward()

    benchmark.pedantic(run, rounds=1)
    assert x.grad.numpy().tolist() == [1.0, 1.0]
