"""A layer of a recurrent network as one kernel with the bits of `scan`, see `common.control.loop_kernel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.control.loop_kernel import is_recorded, results_of
from common.core import mode
from common.evaluate import kernels
from common.kernels.arrays import recurrent_layers
from common.kernels.arrays.recurrent_layers import CELLS
from common.tensor.base import TensorBase

_MOST = 1024
"""Examples of a batch whose contributions to a bias are summed in one block."""


def is_one_kernel(products: Any, states: Sequence[Any], weights: Any, bias: Any) -> bool:
    """Whether a layer's operands are arrays that the kernels take."""
    if mode.tracing or bias is None:
        return False
    arrays = [x.payload for x in (products, *states, weights, bias)]
    if any(type(x) is not np.ndarray or x.dtype != arrays[0].dtype for x in arrays) or arrays[0].dtype.kind != "f":
        return False
    steps, batch, width = arrays[0].shape
    n = states[0].shape[-1]
    fits = weights.shape == (width, n) and all(tuple(x.shape) == (batch, n) for x in states)
    return bool(fits and steps and n > 1 and 0 < batch <= _MOST)


def run_layer(
    kind: str, flip: bool, given: Sequence[Any], counts: np.ndarray | None, loop: Callable[..., Any]
) -> tuple[tuple[TensorBase, ...], TensorBase]:
    """The final states of a layer, and the first kind of state at all steps.

    Parameters
    ----------
    kind : name of the cell, see `CELLS`.
    flip : whether it runs from the last step to the first.
    given : the first states (batch, n); the products of the inputs with their weights (steps, batch, gates * n);
        weights (gates * n, n) and bias (gates * n,) of the state.
    counts : (steps,) int64, how many examples, the first ones, have a step; None if all have all.
    loop : ``loop(states, products, weights, bias)`` gives the same by ops.
    """
    cell, recording = CELLS[kind], is_recorded(given)
    *firsts, a, u, d = (np.ascontiguousarray(x.payload) for x in given)
    (steps, batch, _), n, dtype = a.shape, u.shape[1], a.dtype
    out, kept = np.empty((steps, batch, n), dtype), np.empty((steps if recording else 1, batch, cell.kept * n), dtype)
    finals = [np.empty((batch, n), dtype) for _ in firsts]
    masked = counts is not None
    run = kernels.compiled(recurrent_layers.forward_source(kind, dtype, batch == 1, masked), "recurrent")
    scratch = kernels.scratch(recurrent_layers.forward_scratch(cell, batch, n, dtype))
    sizes = steps, batch, n, int(flip), int(recording)
    run(a, *firsts, u, d, out, kept, *finals, *[counts] * masked, scratch, *sizes)
    back = partial(_back, kind, flip, tuple(x.payload for x in given), kept, counts) if recording else None

    def by_ops(*operands: Any) -> Any:
        *states, products, weights, bias = operands
        return loop(tuple(states), products, weights, bias)[1]

    *last, rows = results_of("scan", [*finals, out], given, back, by_ops)
    return tuple(last), rows


def _back(
    kind: str, flip: bool, operands: tuple[np.ndarray, ...], kept: np.ndarray, counts: np.ndarray | None,
    g: Sequence[Any], needs: Sequence[Any],
) -> tuple[Any, ...]:  # fmt: skip
    """Contributions to the states, the products, the weights and the bias, of what the kernel has kept."""
    cell, (*firsts, a, u, d) = CELLS[kind], operands
    (steps, batch, _), n, dtype = a.shape, u.shape[1], a.dtype
    *finals, rows = g
    carried = [np.zeros(x.shape, dtype) if c is None else np.array(c, dtype, order="C") for x, c in zip(firsts, finals)]
    seen = np.empty(0, dtype) if rows is None else np.ascontiguousarray(rows)
    da, du, dd = np.empty(a.shape, dtype), np.empty(u.shape, dtype), np.empty(d.shape, dtype)
    wanted = any(need is not None for need in needs[-2:])
    masked = counts is not None
    source = recurrent_layers.backward_source(kind, dtype, batch == 1, masked)
    run = kernels.compiled(source, "recurrent_backward")
    scratch = kernels.scratch(recurrent_layers.backward_scratch(cell, batch, n, dtype))
    switches = map(int, (flip, rows is not None, wanted))
    u = np.ascontiguousarray(u)
    run(seen, u, kept, da, du, dd, *carried, *[counts] * masked, scratch, steps, batch, n, *switches)
    return (*carried, da, du, dd)


__all__ = ["is_one_kernel", "run_layer"]
