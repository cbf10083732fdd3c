"""Workloads written by hand, forward and backward in loops, for numba: the work of a patient programmer."""

from typing import Any

import numba
import numpy as np

from benchmarks.peers import Built
from benchmarks.workload import Array, Workload
from benchmarks.workloads import chain

LENGTH = chain.LENGTH // 2


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload by hand."""
    function = WRITTEN.get(workload.name)
    return None if function is None else (numba.njit(function), list(workload.inputs()))


def wave(x: Array, w: Array, b: Array, cotangent: Array) -> Any:
    """Return y = tanh(x w + b) x + exp(-x x) and the gradients of x, w and b, in one loop."""
    y, gx, gw, gb = np.empty_like(x), np.empty_like(x), np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        t, e = np.tanh(x[i] * w[i] + b[i]), np.exp(-x[i] * x[i])
        y[i] = t * x[i] + e
        back = cotangent[i] * x[i] * (1 - t * t)
        gx[i] = cotangent[i] * (t - 2 * x[i] * e) + back * w[i]
        gw[i] = back * x[i]
        gb[i] = back
    return y, gx, gw, gb


def mul_add(x: Array, w: Array, b: Array, cotangent: Array) -> Any:
    """Return the chain and its gradients, element by element; values on the way are kept."""
    y, gx, gw, gb = np.empty_like(x), np.empty_like(x), np.zeros_like(x), np.zeros_like(x)
    kept = np.empty(LENGTH, x.dtype)
    for i in range(x.size):
        value, g = x[i], cotangent[i]
        for k in range(LENGTH):
            kept[k] = value
            value = value * w[i] + b[i]
        y[i] = value
        for k in range(LENGTH - 1, -1, -1):
            gb[i] += g
            gw[i] += g * kept[k]
            g *= w[i]
        gx[i] = g
    return y, gx, gw, gb


def cross_entropy(logits: Array, classes: Array) -> Any:
    """Return the mean cross-entropy and its gradient, a row at a time."""
    rows, columns = logits.shape
    gradient, loss = np.empty_like(logits), 0.0
    for i in range(rows):
        most = logits[i].max()
        total = 0.0
        for j in range(columns):
            gradient[i, j] = np.exp(logits[i, j] - most)
            total += gradient[i, j]
        loss += np.log(total) - (logits[i, classes[i]] - most)
        for j in range(columns):
            gradient[i, j] /= total * rows
        gradient[i, classes[i]] -= 1 / rows
    return np.float32(loss / rows), gradient


WRITTEN = {"a-float32": wave, "a-float64": wave, "chain": mul_add, "b-cross-entropy": cross_entropy}
