"""tinygrad's versions of the workloads, realized call by call, or captured by its TinyJit; on its CPU device.

TinyJit runs its first two calls as tinygrad does without it, so the bits of a first call are tinygrad's own.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tinygrad import Device, Tensor, TinyJit

from benchmarks.peers import Built, formulas
from benchmarks.workload import Array, Inputs, Workload
from benchmarks.workloads import chain

Call = Callable[..., Any]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in tinygrad; `peer` is "tinygrad.jit", or "tinygrad" for the same without TinyJit."""
    if workload.name in PULLBACKS:
        call = pullback(PULLBACKS[workload.name])
    elif workload.name in TRAININGS:
        call = training(*TRAININGS[workload.name], {name: own(value) for name, value in initial.items()})
    elif workload.name == "b-cross-entropy":
        call = loss_and_gradient
    else:
        return None
    return finished(peer, call, workload.inputs())


def finished(peer: str, function: Call, inputs: Sequence[Inputs]) -> Built:
    """Return a function of tensors as a call that ends when its results exist, and its input sets as tensors."""

    def call(*arguments: Any) -> Any:
        found = function(*arguments)
        several = isinstance(found, tuple | list)
        Tensor.realize(*(found if several else [found]))
        return tuple(found) if several else found

    run = TinyJit(call) if peer == "tinygrad.jit" else call
    device = Device[Device.DEFAULT]

    def waited(*arguments: Any) -> Any:
        found = run(*arguments)
        device.synchronize()
        return found

    return waited, [tuple(own(x) if isinstance(x, np.ndarray) else x for x in arrays) for arrays in inputs]


def own(array: Array) -> Any:
    """Return an array as a tensor of its own."""
    return Tensor(array.copy()).realize()


def pullback(function: Call) -> Call:
    """Return the call (x, w, b, cotangent) -> (y, gx, gw, gb)."""

    def call(x: Any, w: Any, b: Any, cotangent: Any) -> Any:
        y = function(x, w, b)
        return (y, *y.gradient(x, w, b, gradient=cotangent))

    return call


def training(loss_of: Call, lr: float, momentum: float, params: dict[str, Any]) -> Call:
    """Return one step of stochastic gradient descent, whose parameters are kept."""
    velocity = [Tensor.zeros(*p.shape, dtype=p.dtype).contiguous().realize() for p in params.values()]

    def step(x: Any, target: Any) -> Any:
        loss = loss_of(params, x, target)
        changed = []
        for p, v, g in zip(params.values(), velocity, loss.gradient(*params.values()), strict=True):
            if momentum:
                g = v.assign(momentum * v + g)
                changed.append(v)
            changed.append(p.assign(p - lr * g))
        Tensor.realize(loss, *changed)
        return loss

    return step


def loss_and_gradient(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy of logits (n, k) and classes (n,), and its gradient."""
    loss = cross_entropy(logits, classes)
    return (loss, *loss.gradient(logits))


def cross_entropy(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy."""
    return logits.sparse_categorical_crossentropy(classes)


def mul_add(x: Any, w: Any, b: Any) -> Any:
    """Return the chain of 100 operations."""
    for _ in range(chain.LENGTH // 2):
        x = x * w + b
    return x


def mixed(x: Any, w: Any, b: Any) -> Any:
    """Return the mixed chain."""
    for _ in range(chain.LENGTH // 7):
        x = (x * b + b).tanh() @ w
        x = x * 0.5 + x.sum(0)
    return x


NAMES = SimpleNamespace(tanh=Tensor.tanh, exp=Tensor.exp, dot=Tensor.dot, mean=Tensor.mean)
"""numpy's functions that `formulas` uses."""
wave = formulas.wave(NAMES)
PULLBACKS = {"a-float32": wave, "a-float64": wave, "chain": mul_add, "mixed-chain": mixed}
TRAININGS = formulas.trainings(NAMES, cross_entropy)
