"""Gate: small operations in `dynamic`, all bookkeeping on, take at most half of PyTorch eager's time.

Forward alone and forward + backward. What each part of the bookkeeping costs: ``python -m benchmarks.features``.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynamic
from benchmarks.gates.frame import assert_ratio, compare
from benchmarks.workloads import chain

BOUND = 0.5


class Case(NamedTuple):
    """A program, its arrays, which of them are trained, and whether the last is the cotangent of its result."""

    body: Callable[..., Any]
    arrays: Sequence[np.ndarray]
    trained: slice
    has_cotangent: bool


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, target: Any, tw: Any) -> Any:
    """The mean squared error of a network of two layers; x and target : (8, 8)."""
    difference = tw.tanh(x @ w1 + b1) @ w2 + b2 - target
    return (difference * difference).mean()


def _mlp() -> Case:
    rng = np.random.default_rng(0)
    shapes = [(8, 8), (8, 8), (8,), (8, 8), (8,), (8, 8)]
    return Case(mlp, [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes], slice(1, 5), False)


CASES = {"mlp": _mlp()} | {w.name: Case(w.body, w.inputs()[0], slice(0, 3), True) for w in chain.WORKLOADS}


def program(framework: Any, case: Case, backward: bool) -> tuple[Callable[[], Any], list[Any]]:
    """A call () -> y that runs a case forward, or also backward into fresh gradients; and what it trains."""
    trained = range(*case.trained.indices(len(case.arrays)))
    tensors = [framework.tensor(a, requires_grad=i in trained) for i, a in enumerate(case.arrays)]
    leaves = tensors[case.trained]
    operands, cotangent = (tensors[:-1], tensors[-1]) if case.has_cotangent else (tensors, None)

    def forward() -> Any:
        return case.body(*operands, framework)

    def both() -> Any:
        for leaf in leaves:
            leaf.grad = None
        y = forward()
        y.backward(cotangent)
        return y

    return (both if backward else forward), leaves


def modules(framework: Any, x: np.ndarray, backward: bool) -> tuple[Callable[[], Any], Any]:
    """A call () -> y of a network made of modules, and the network."""
    nn, x = framework.nn, framework.tensor(x)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))

    def both() -> Any:
        model.zero_grad()
        y = model(x)
        y.sum().backward()
        return y

    return (both if backward else lambda: model(x)), model


@pytest.mark.parametrize("direction", ["forward", "forward+backward"])
@pytest.mark.parametrize("name", CASES)
def test_small_operations(benchmark: Any, name: str, direction: str) -> None:
    ours, leaves = program(dynamic, CASES[name], direction != "forward")
    calls: dict[str, Any] = {"dynamic": (ours, [()])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        theirs, peers = program(torch, CASES[name], direction != "forward")
        calls["torch"] = (theirs, [()])
        np.testing.assert_allclose(ours().detach().numpy(), theirs().detach().numpy(), rtol=1e-4)
        for leaf, peer in zip(leaves, peers, strict=True):
            if peer.grad is not None:
                size = np.abs(leaf.grad.numpy()).max()  # sums of large terms that cancel
                np.testing.assert_allclose(leaf.grad.numpy(), peer.grad.numpy(), atol=1e-4 * size)
    samples = compare(benchmark, calls)
    if "torch" in samples:
        assert_ratio(samples, "dynamic", "torch", BOUND)


@pytest.mark.parametrize("direction", ["forward", "forward+backward"])
def test_small_modules(benchmark: Any, direction: str) -> None:
    """Two linear layers as modules, (8, 8) through 8 units."""
    x = np.random.default_rng(0).uniform(-1, 1, (8, 8)).astype(np.float32)
    ours, model = modules(dynamic, x, direction != "forward")
    calls: dict[str, Any] = {"dynamic": (ours, [()])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        theirs, peer = modules(torch, x, direction != "forward")
        calls["torch"] = (theirs, [()])
        model.load_state_dict({name: p.numpy() for name, p in peer.state_dict().items()})
        np.testing.assert_allclose(ours().detach().numpy(), theirs().detach().numpy(), rtol=1e-4, atol=1e-6)
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
