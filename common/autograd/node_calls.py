"""Nodes are functions: from gradients of their results to gradients of their operands."""

from __future__ import annotations

from typing import Any

from common.autograd.backward_pass import freed
from common.core.errors import ArgumentError
from common.core.members import give
from common.core.unbroadcast import fit
from common.tensor.create import lift
from common.tensor.node import Node
from common.tensor.node_names import shown_positions
from common.tensor.read_saved import saved_tensors


def call(node: Node, *grad_outputs: Any) -> Any:
    """Run a node's rules, recorded where recording is on.

    Parameters
    ----------
    grad_outputs : per result its gradient.

    Returns
    -------
    Per operand its gradient, None where there is none; the gradient itself of a single operand.

    Raises
    ------
    ArgumentError : there are more gradients than results, or fewer.
    GraphFreedError : a backward pass has freed what the rules need.
    """
    if len(grad_outputs) != node.op.nout:
        raise ArgumentError(f"{node.name()} expected {node.op.nout} arguments, got {len(grad_outputs)} instead")
    if node.saved is None:
        raise freed(node)
    given = tuple(None if g is None else lift(g) for g in grad_outputs)
    found = node.op.backward(saved_tensors(node), node.attrs, given if node.op.nout > 1 else given[0], node.edges)
    forms = node.fit or (None,) * len(found)
    shown = [(found[i], forms[i]) for i in shown_positions(node)]
    out = tuple(c if c is None or form is None else fit(lift(c), *form) for c, form in shown)
    return out[0] if len(out) == 1 else out


give(Node, {"__call__": call})
