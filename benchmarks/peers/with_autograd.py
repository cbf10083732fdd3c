"""HIPS autograd's versions of the workloads: numpy with a tape, nothing compiled."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as np
from autograd import make_vjp, value_and_grad

from benchmarks.peers import Built, formulas
from benchmarks.workload import Array, Workload
from benchmarks.workloads import chain

Params = dict[str, Any]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in HIPS autograd."""
    inputs = workload.inputs()
    if workload.name in PULLBACKS:
        return pullback(PULLBACKS[workload.name]), list(inputs)
    if workload.name in TRAININGS:
        return training(*TRAININGS[workload.name], dict(initial)), list(inputs)
    return (value_and_grad(cross_entropy), list(inputs)) if workload.name == "b-cross-entropy" else None


def pullback(function: Callable[..., Any]) -> Any:
    """Return the call (x, w, b, cotangent) -> (y, gx, gw, gb)."""

    def call(x: Array, w: Array, b: Array, cotangent: Array) -> Any:
        vjp, y = make_vjp(lambda operands: function(*operands))((x, w, b))
        return (y, *vjp(cotangent))

    return call


def training(loss: Callable[..., Any], lr: float, momentum: float, params: Params) -> Any:
    """Return one step of stochastic gradient descent, whose parameters are kept."""
    loss_and_gradients = value_and_grad(loss)
    velocity = {name: np.zeros_like(p) for name, p in params.items()} if momentum else {}

    def step(x: Array, target: Array) -> Any:
        value, gradients = loss_and_gradients(params, x, target)
        for name, g in gradients.items():
            if momentum:
                g = velocity[name] = momentum * velocity[name] + g
            params[name] = params[name] - lr * g
        return value

    return step


def mul_add(x: Any, w: Any, b: Any) -> Any:
    """Return the chain of 100 operations."""
    for _ in range(chain.LENGTH // 2):
        x = x * w + b
    return x


def mixed(x: Any, w: Any, b: Any) -> Any:
    """Return the mixed chain."""
    for _ in range(chain.LENGTH // 7):
        x = np.dot(np.tanh(x * b + b), w)
        x = x * 0.5 + np.sum(x, axis=0)
    return x


def cross_entropy(logits: Any, classes: Array) -> Any:
    """Return the mean cross-entropy of logits (n, k) and classes (n,)."""
    rows = np.arange(len(classes))
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - shifted[rows, classes])


wave = formulas.wave(np)
PULLBACKS = {"a-float32": wave, "a-float64": wave, "chain": mul_add, "mixed-chain": mixed}
TRAININGS = formulas.trainings(np, cross_entropy)
