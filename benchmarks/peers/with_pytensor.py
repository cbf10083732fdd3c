"""PyTensor's versions of the workloads: compiled by its default back end, or its graph as it is, by Python and numpy.

The chains are left out: its default back end takes minutes to compile a hundred small nodes.
"""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode

from benchmarks.peers import Built, formulas
from benchmarks.workload import Array, Workload

Params = dict[str, Any]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in PyTensor; `peer` is "pytensor", or "pytensor.python" for the graph without rewrites."""
    inputs = workload.inputs()
    symbols = [pt.tensor(f"input{i}", dtype=x.dtype, shape=x.shape) for i, x in enumerate(inputs[0])]
    made = graph(workload.name, symbols, initial)
    if made is None:
        return None
    outputs, updates = made
    mode = Mode(linker="py", optimizer=None) if peer == "pytensor.python" else None
    return pytensor.function(symbols, outputs, updates=updates, mode=mode), list(inputs)


def graph(name: str, symbols: list[Any], initial: dict[str, Array]) -> tuple[list[Any], list[tuple[Any, Any]]] | None:
    """Return outputs and updates of a workload; None if it has none here."""
    if name in PULLBACKS:
        *operands, cotangent = symbols
        y = PULLBACKS[name](*operands)
        return [y, *pytensor.grad(None, operands, known_grads={y: cotangent})], []
    if name == "b-cross-entropy":
        loss = cross_entropy(*symbols)
        return [loss, pytensor.grad(loss, symbols[0])], []
    if name in TRAININGS:
        loss_of, lr, momentum = TRAININGS[name]
        params = {key: pytensor.shared(value.copy(), key) for key, value in initial.items()}
        loss = loss_of(params, *symbols)
        return [loss], updates_of(params, pytensor.grad(loss, list(params.values())), lr, momentum)
    return None


def updates_of(params: Params, gradients: list[Any], lr: float, momentum: float) -> list[tuple[Any, Any]]:
    """Return what a step of stochastic gradient descent replaces."""
    rate, kept = np.float32(lr), np.float32(momentum)
    found = []
    for p, g in zip(params.values(), gradients, strict=True):
        if momentum:
            velocity = pytensor.shared(np.zeros_like(p.get_value()))
            g = kept * velocity + g
            found.append((velocity, g))
        found.append((p, p - rate * g))
    return found


def cross_entropy(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy of logits (n, k) and classes (n,)."""
    logs = pt.special.log_softmax(logits, axis=1)
    return -pt.mean(logs[pt.arange(classes.shape[0]), classes])


PULLBACKS = dict.fromkeys(("a-float32", "a-float64"), formulas.wave(pt))
TRAININGS = formulas.trainings(pt, cross_entropy)
