"""Kernels that run a whole loop, where the eager engine runs it and nothing looks on.

The bits are those of the loop over ops, and so is what is recorded: one node, whose gradient is one kernel too. A
gradient that is recorded itself runs the loop again, and is that of the loop.
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
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node
from common.tensor.read_saved import with_edge


class LoopKernel:
    """The saved value of the node of a loop that a kernel has run.

    Attributes
    ----------
    node : the node; weakly, as that of `common.control.loop.LoopRun`.
    operands : arrays.
    edges : where their gradients go.
    back : ``back(g, needs)`` gives the contributions to the operands by a kernel.
    loop : ``loop(*operands)`` runs the loop over ops on tensors, and returns one of its results.
    """

    node: ref[Node]

    def __init__(
        self, operands: tuple[np.ndarray, ...], edges: tuple[Edge, ...], back: Callable[..., Any],
        loop: Callable[..., TensorBase],
    ) -> None:  # fmt: skip
        self.operands, self.edges, self.back, self.loop = operands, edges, back, loop


def is_recorded(given: Sequence[TensorBase]) -> bool:
    """Whether a loop over operands has a gradient."""
    return mode.is_grad_enabled() and any(x.edge is not None for x in given)


def results_of(
    name: str, found: Sequence[np.ndarray], given: Sequence[TensorBase], back: Callable[..., Any] | None,
    loop: Callable[..., TensorBase],
) -> list[TensorBase]:  # fmt: skip
    """What a kernel has found as results of a loop's node.

    Parameters
    ----------
    name : of the construct.
    found : what is carried, then what is stacked.
    given : operands.
    back, loop : see `LoopKernel`; no `back` if there is no gradient.
    """
    results = [wrap(x) for x in found]
    if back is not None:
        edges = tuple(x.edge for x in given)
        saved = LoopKernel(tuple(x.payload for x in given), edges, back, loop)
        op: Any = _LoopKernelOp(name, len(results))
        node = Node(op, None, edges, (saved,), None, *user_frame(4))
        saved.node = ref(node)
        for position, x in enumerate(results):
            x.grad_fn, x.output_nr, x._requires_grad = node, position, True
    return results


class _LoopKernelOp(LoopOp):
    """The op of such a node."""

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the rule reads."""
        return list(saved[0].operands)

    def backward(self, saved: tuple[Any], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the operands."""
        g = (g,) if self.nout == 1 else tuple(g)
        if mode.is_grad_enabled() or mode.tracing or any(isinstance(x, TensorBase) for x in g):
            return _by_loop(saved[0], g)
        found: tuple[Any, ...] = saved[0].back(g, needs)
        return found


def _by_loop(kernel: LoopKernel, g: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradient of the loop over ops; if it is recorded, the node is that loop's from now on."""
    recording = mode.is_grad_enabled()
    with mode.enable_grad():
        made: Any = kernel.loop(*map(with_edge, kernel.operands, kernel.edges)).grad_fn
    node = kernel.node()
    edges, saved, op = made.edges, made.saved, made.op
    if recording and node is not None:  # what the gradient reads of the loop leads there
        node.op, node.backward, node.edges, node.saved = op, op.backward, edges, saved
        saved[0].node = kernel.node
    found = op.backward(saved, None, (*g, *(None for _ in saved[0].carried)), edges)
    by_edge = {_place(edge): x for edge, x in zip(edges, found, strict=True) if edge is not None}
    taken = [None if edge is None else by_edge.get(_place(edge)) for edge in kernel.edges]
    return tuple(x if x is None or recording else payload_of(tensor_of(x)) for x in taken)


def _place(edge: Edge) -> tuple[int, int]:
    owner, output = edge if type(edge) is tuple else (edge, 0)
    return id(owner), output


__all__ = ["LoopKernel", "is_recorded", "results_of"]
