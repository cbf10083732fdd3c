"""Gate: views, joins and writes of small tensors in `dynamic` against PyTorch eager, recorded and not, and backward."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import dynamic
from benchmarks.gates.frame import assert_ratio, compare

Program = Callable[[Any, Any], Any]

#: On a (4, 3) tensor x that is the result of an op; forward with a node, and without recording. Measured on a quiet
#: core the former are 0.9x to 2x as fast as PyTorch (torch 2.13), the latter 1.1x to 2.5x.
VIEWS: dict[str, Program] = {
    "x[0]": lambda tw, x: x[0],
    "x[1:3]": lambda tw, x: x[1:3],
    "x[:, 1]": lambda tw, x: x[:, 1],
    "x[0, 1]": lambda tw, x: x[0, 1],
    "t": lambda tw, x: x.t(),
    "transpose": lambda tw, x: x.transpose(0, 1),
    "permute": lambda tw, x: x.permute(1, 0),
    "reshape": lambda tw, x: x.reshape(3, 4),
    "view": lambda tw, x: x.view(12),
    "unsqueeze": lambda tw, x: x.unsqueeze(0),
    "squeeze": lambda tw, x: x.squeeze(0),
    "flatten": lambda tw, x: x.flatten(),
    "expand": lambda tw, x: x.expand(2, 4, 3),
    "select": lambda tw, x: x.select(0, 1),
    "narrow": lambda tw, x: x.narrow(0, 1, 2),
    "split": lambda tw, x: x.split(2),
    "cat": lambda tw, x: tw.cat([x, x, x]),
    "stack": lambda tw, x: tw.stack([x, x, x]),
}
WRITES: dict[str, Program] = {
    "x[i] = tensor": lambda tw, x: x.__setitem__(1, x[0]),
    "x[i] = number": lambda tw, x: x.__setitem__(1, 0.5),
    "x[i, j] = number": lambda tw, x: x.__setitem__((1, 2), 0.5),
    "x[a:b] = tensor": lambda tw, x: x.__setitem__(slice(1, 3), x[0]),
}
RECORDED, PLAIN, BACKWARD = 1.25, 1.0, 0.8


def measure(benchmark: Any, make: Callable[[Any], Callable[[], Any]], bound: float) -> None:
    """Compare a program in `dynamic` and in PyTorch, where that is installed."""
    calls = {"dynamic": (make(dynamic), [()])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        calls["torch"] = (make(torch), [()])
    samples = compare(benchmark, calls)
    if "torch" in samples:
        assert_ratio(samples, "dynamic", "torch", bound)


def _x(tw: Any, recorded: bool) -> Any:
    x = tw.tensor(np.arange(12, dtype=np.float32).reshape(4, 3).tolist(), requires_grad=recorded)
    return x * 1.0 if recorded else x


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(("recorded", "bound"), [(True, RECORDED), (False, PLAIN)], ids=["recorded", "plain"])
def test_views(benchmark: Any, name: str, recorded: bool, bound: float) -> None:
    def make(tw: Any) -> Callable[[], Any]:
        x, program = _x(tw, recorded), VIEWS[name]
        return lambda: program(tw, x)

    measure(benchmark, make, bound)


@pytest.mark.parametrize("name", WRITES)
def test_writes(benchmark: Any, name: str) -> None:
    def make(tw: Any) -> Callable[[], Any]:
        x, program = _x(tw, False), WRITES[name]
        return lambda: program(tw, x)

    measure(benchmark, make, PLAIN)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "split"])
def test_gradients(benchmark: Any, name: str) -> None:
    """Forward and backward, from a leaf."""

    def make(tw: Any) -> Callable[[], Any]:
        x = tw.tensor(np.ones((1, 4, 3) if name == "squeeze" else (4, 3), np.float32).tolist(), requires_grad=True)
        program = VIEWS[name]
        g = tw.ones(tuple(program(tw, x).shape))

        def call() -> None:
            x.grad = None
            program(tw, x).backward(g)

        return call

    measure(benchmark, make, BACKWARD)
