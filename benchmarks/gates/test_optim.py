"""Gate: a step of `dynamic`'s Adam over 100 small parameters takes at most half of PyTorch's time."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import dynamic
from benchmarks.gates.frame import assert_ratio, compare

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
