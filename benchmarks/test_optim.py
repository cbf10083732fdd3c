"""Gates: a step of `dynamic`'s Adam over 100 small parameters takes at most half of PyTorch's time; a compiled one
gains from being one pass.
"""

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import dynamic
import static
import static.lowering.lowered_program
from benchmarks.gate import assert_ratio, compare
from static.running import program_store

BOUND = 0.5
SHAPES = {"100 small": [(32, 32), (32,)] * 50, "6 large": [(784, 256), (256,), (256, 256), (256,), (256, 10), (10,)]}


def stepping(framework: Any, arrays: list[Any]) -> Any:
    """Return a call that updates parameters which start from `arrays`, with gradients equal to those."""
    parameters = [framework.nn.Parameter(framework.tensor(x)) for x in arrays]
    for p, x in zip(parameters, arrays, strict=True):
        p.grad = framework.tensor(x)
    optimizer = framework.optim.Adam(parameters, lr=1e-3)
    return optimizer.step, parameters


@pytest.mark.parametrize("name", SHAPES)
def test_step(benchmark: Any, name: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES[name]]
    ours, mine = stepping(dynamic, arrays)
    calls = {"dynamic": (ours, [()])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        theirs, others = stepping(torch, arrays)
        calls["torch"] = (theirs, [()])
        for call in (ours, theirs):
            call()
        for p, q in zip(mine, others, strict=True):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
    samples = compare(benchmark, calls)
    if "torch" in samples:
        assert_ratio(samples, "dynamic", "torch", BOUND)


def compiled_step(count: int) -> Any:
    """Return the native call of a compiled step of Adam over small parameters, its results allocated beforehand."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(32).astype(np.float32) for _ in range(count)]
    parameters = [static.nn.Parameter(x) for x in arrays]
    optimizer = static.optim.Adam(parameters)

    @static.function
    def step(gradients: Any) -> None:
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g
        optimizer.step()

    step(arrays)
    traced = step.newest
    plan = traced.plan(traced.env(arrays))
    state = [x.payload for x in traced.state]
    return partial(plan._run, *arrays, *state, *plan(*arrays, *state))


@pytest.mark.parametrize(("count", "bound"), [(4, 1.05), (100, 0.8)])
def test_one_pass_over_small_parameters(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, count: int, bound: float
) -> None:
    """The time includes the checks of all arrays; measured 0.7 and 0.4."""
    calls = {"one pass": (compiled_step(count), [()])}
    monkeypatch.setattr(static.lowering.lowered_program, "runs", lambda built: [1] * len(built))
    monkeypatch.setattr(program_store, "key_of", lambda *described: None)  # this program is for no other process
    calls["a kernel each"] = (compiled_step(count), [()])
    assert_ratio(compare(benchmark, calls), "one pass", "a kernel each", bound)
