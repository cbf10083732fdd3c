"""A layer of a recurrent network as one kernel, where the eager engine runs it and nothing looks on.

The bits are those of the loop over ops that `scan` runs, and so is what is recorded: one node, whose gradient is one
kernel too. A gradient that is recorded itself runs the loop again, and is that of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from common.control.body import payload_of, tensor_of
from common.control.loop import LoopOp
from common.core import mode
from common.core.source_lines import user_frame
from common.evaluate import kernels
from common.kernels.arrays import recurrent_layers
from common.kernels.arrays.recurrent_layers import CELLS
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node
from common.tensor.read_saved import with_edge

_MOST = 1024
"""Examples of a batch whose contributions to a bias are summed in one block."""


class _RecurrentLayer:
    """The saved value of a layer's node.

    Attributes
    ----------
    node : the node; weakly, as that of `common.control.loop.LoopRun`.
    kind : name of the cell, see `CELLS`.
    flip : whether it runs from the last step to the first.
    operands : arrays: states, products of the inputs, weights and bias of the state.
    edges : where their gradients go.
    kept : what the kernel of the gradient reads.
    counts : how many examples, the first ones, have a step; None if all have all.
    loop : ``loop(states, products, weights, bias)`` runs the loop over ops.
    """

    node: ref[Node]

    def __init__(
        self, kind: str, flip: bool, operands: tuple[np.ndarray, ...], edges: tuple[Edge, ...], kept: np.ndarray,
        counts: np.ndarray | None, loop: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.kind, self.flip, self.operands, self.edges = kind, flip, operands, edges
        self.kept, self.counts, self.loop = kept, counts, loop


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
    cell, edges = CELLS[kind], tuple(x.edge for x in given)
    recording = mode.is_grad_enabled() and any(edge is not None for edge in edges)
    *firsts, a, u, d = (np.ascontiguousarray(x.payload) for x in given)
    (steps, batch, _), n, dtype = a.shape, u.shape[1], a.dtype
    out, kept = np.empty((steps, batch, n), dtype), np.empty((steps if recording else 1, batch, cell.kept * n), dtype)
    finals = [np.empty((batch, n), dtype) for _ in firsts]
    masked = counts is not None
    run = kernels.compiled(recurrent_layers.forward_source(kind, dtype, batch == 1, masked), "recurrent")
    scratch = kernels.scratch(recurrent_layers.forward_scratch(cell, batch, n, dtype))
    sizes = steps, batch, n, int(flip), int(recording)
    run(a, *firsts, u, d, out, kept, *finals, *[counts] * masked, scratch, *sizes)
    results = [*map(wrap, finals), wrap(out)]
    if recording:
        layer = _RecurrentLayer(kind, flip, tuple(x.payload for x in given), edges, kept, counts, loop)
        op: Any = _RecurrentLayerOp("scan", len(results))
        node = Node(op, None, edges, (layer,), None, *user_frame(3))
        layer.node = ref(node)
        for position, x in enumerate(results):
            x.grad_fn, x.output_nr, x._requires_grad = node, position, True
    return tuple(results[:-1]), results[-1]


class _RecurrentLayerOp(LoopOp):
    """The op of a layer's node."""

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the rule reads."""
        return list(saved[0].operands)

    def backward(self, saved: tuple[Any], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the states, the products, the weights and the bias."""
        (layer,) = saved
        if mode.is_grad_enabled() or mode.tracing or any(isinstance(x, TensorBase) for x in g):
            return _by_loop(layer, g)
        return _by_kernel(layer, g, needs)


def _by_kernel(layer: _RecurrentLayer, g: Sequence[Any], needs: Sequence[Any]) -> tuple[Any, ...]:
    cell, kept, (*firsts, a, u, d) = CELLS[layer.kind], layer.kept, layer.operands
    (steps, batch, _), n, dtype = a.shape, u.shape[1], a.dtype
    *finals, rows = g
    carried = [np.zeros(x.shape, dtype) if c is None else np.array(c, dtype, order="C") for x, c in zip(firsts, finals)]
    seen = np.empty(0, dtype) if rows is None else np.ascontiguousarray(rows)
    da, du, dd = np.empty(a.shape, dtype), np.empty(u.shape, dtype), np.empty(d.shape, dtype)
    wanted = any(need is not None for need in needs[-2:])
    masked = layer.counts is not None
    source = recurrent_layers.backward_source(layer.kind, dtype, batch == 1, masked)
    run = kernels.compiled(source, "recurrent_backward")
    scratch = kernels.scratch(recurrent_layers.backward_scratch(cell, batch, n, dtype))
    switches = map(int, (layer.flip, rows is not None, wanted))
    u = np.ascontiguousarray(u)
    run(seen, u, kept, da, du, dd, *carried, *[layer.counts] * masked, scratch, steps, batch, n, *switches)
    return (*carried, da, du, dd)


def _by_loop(layer: _RecurrentLayer, g: Sequence[Any]) -> tuple[Any, ...]:
    """The gradient of the loop over ops; if it is recorded, the layer's node is that loop's from now on."""
    recording = mode.is_grad_enabled()
    *finals, rows = g
    with mode.enable_grad():
        *states, products, weights, bias = map(with_edge, layer.operands, layer.edges)
        _, outputs = layer.loop(tuple(states), products, weights, bias)
    made, node = outputs.grad_fn, layer.node()
    edges, saved, op = made.edges, made.saved, made.op
    if recording and node is not None:  # what the gradient reads of the loop leads there
        node.op, node.backward, node.edges, node.saved = op, op.backward, edges, saved
        saved[0].node = layer.node
    found = op.backward(saved, None, (*finals, rows, *(None for _ in finals)), edges)
    by_edge = {_place(edge): x for edge, x in zip(edges, found, strict=True) if edge is not None}
    taken = [None if edge is None else by_edge.get(_place(edge)) for edge in layer.edges]
    return tuple(x if x is None or recording else payload_of(tensor_of(x)) for x in taken)


def _place(edge: Edge) -> tuple[int, int]:
    owner, output = edge if type(edge) is tuple else (edge, 0)
    return id(owner), output


__all__ = ["is_one_kernel", "run_layer"]
