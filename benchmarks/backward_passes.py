"""``python -m benchmarks.backward_passes``: backward passes of composite functions over a million elements, beside
PyTorch.

Per function the time in milliseconds on one thread, PyTorch's, both in copies of the operand (the time that numpy takes
to copy it), and how many arrays of the operand's size exist at the peak beyond what was there before: 1 is the
gradient itself, so that nothing was stored on the way. Processor time, the fastest of interleaved rounds.
"""

from __future__ import annotations

import argparse
import importlib
import time
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks import measure

Call = Callable[[], Any]
SHAPE = (1000, 1000)

#: Per name: the function of a framework, its functions and the operands; and how many of the operands it takes.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "tanh": (lambda tw, F, x: tw.tanh(x), 1),
    "sigmoid": (lambda tw, F, x: tw.sigmoid(x), 1),
    "silu": (lambda tw, F, x: F.silu(x), 1),
    "gelu": (lambda tw, F, x: F.gelu(x), 1),
    "gelu, tanh": (lambda tw, F, x: F.gelu(x, approximate="tanh"), 1),
    "softmax": (lambda tw, F, x: tw.softmax(x, dim=-1), 1),
    "log_softmax": (lambda tw, F, x: F.log_softmax(x, dim=-1), 1),
    "layer_norm": (lambda tw, F, x: F.layer_norm(x, SHAPE[1:]), 1),
    "layer_norm, affine": (lambda tw, F, x, w, b: F.layer_norm(x, SHAPE[1:], w, b), 3),
    "cross_entropy": (lambda tw, F, x: F.cross_entropy(x, tw.arange(SHAPE[0]) % SHAPE[1]), 1),
}


class Found(NamedTuple):
    """Seconds of a backward pass, of PyTorch's (None where it is not installed) and of a copy; arrays at the peak."""

    ours: float
    theirs: float | None
    copy: float
    arrays: float


def backward(framework: str, name: str) -> Call:
    """A call that differentiates a function of `FUNCTIONS` once more."""
    tw, F = importlib.import_module(framework), importlib.import_module(f"{framework}.nn.functional")
    function, count = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (SHAPE, SHAPE[1:], SHAPE[1:])[:count]]
    leaves = [tw.tensor(array, requires_grad=True) for array in arrays]
    y = function(tw, F, *leaves)
    g = tw.tensor(rng.standard_normal(tuple(y.shape)).astype(np.float32))
    return lambda: tw.autograd.grad(y, leaves, g, retain_graph=True)


def arrays_at_peak(call: Call, size: int) -> float:
    """How many arrays of `size` bytes exist at the peak of a call, beyond what was there before."""
    for _ in range(3):
        call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / size


def find(name: str, seconds: float = 1.0) -> Found:
    """Measure a function of `FUNCTIONS`."""
    x = np.ones(SHAPE, np.float32)
    y = np.empty_like(x)
    calls: dict[str, Call] = {"ours": backward("dynamic", name), "copy": lambda: np.copyto(y, x)}
    if find_spec("torch"):
        importlib.import_module("torch").set_num_threads(1)
        calls["theirs"] = backward("torch", name)
        for ours, theirs in zip(calls["ours"](), calls["theirs"](), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4)
    arrays = arrays_at_peak(calls["ours"], x.nbytes)
    times: dict[str, list[float]] = {kind: [] for kind in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["ours"]) < 7:
        for kind, call in calls.items():
            start = time.thread_time()
            call()
            times[kind].append(time.thread_time() - start)
    least = {kind: min(found) for kind, found in times.items()}
    return Found(least["ours"], least.get("theirs"), least["copy"], arrays)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backward_passes", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each function")
    options = parser.parse_args()
    measure.single_core()
    print(f"{'':20s} {'ms':>6s} {'PyTorch':>8s} {'ratio':>6s} {'copies':>7s} {'PyTorch':>8s} {'arrays':>7s}")
    for name in options.names or FUNCTIONS:
        ours, theirs, copy, arrays = find(name, options.seconds)
        peer = ("", "", "")
        if theirs is not None:
            peer = (f"{theirs * 1e3:.2f}", f"{ours / theirs:.2f}", f"{theirs / copy:.1f}")
        mine = f"{name:20s} {ours * 1e3:6.2f}"
        print(f"{mine} {peer[0]:>8s} {peer[1]:>6s} {ours / copy:7.1f} {peer[2]:>8s} {arrays:7.2f}")


if __name__ == "__main__":
    main()
