"""Calls that are regions: the ops inside are recorded, and differentiated as one node.

The contributions to each argument and each captured tensor are totalled inside, then contributed once
(docs/numerics.md, point 5). What is recorded inside stays as the node's saved value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.autograd.backward import view_of
from common.autograd.backward_pass import collect
from common.autograd.region import Recorded, RegionOp, captured_edges, outputs_of
from common.core import mode
from common.core.python_numbers import Number
from common.core.source_lines import user_frame
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase, wrap
from common.tensor.create import lift
from common.tensor.node import Edge, Node, next_number


def run_region(target: Callable[..., Any], leaves: list[Any], structure: Any) -> Any:
    """Call `target` on views of the arguments that require grad, and put one node on the tape.

    Parameters
    ----------
    leaves, structure : of its arguments, see `common.core.tree.flatten`; arrays are tensors already.
    """
    recording, traced = mode.is_grad_enabled(), mode.current_trace() is not None
    arguments: list[Any] = [Number(x) if type(x) is float and not traced else x for x in leaves]
    viewed: list[tuple[Edge, Edge]] = []
    for i, x in enumerate(leaves):
        if recording and isinstance(x, TensorBase) and x.requires_grad:
            arguments[i] = view_of(x)
            viewed.append((x.edge, arguments[i].edge))
    start = next_number()
    args, kwargs = unflatten(structure, arguments)
    results, out_structure = flatten(target(*args, **kwargs))
    results = [float(x) if type(x) is Number else x for x in results]
    recorded = list({id(x): x for x in results if isinstance(x, TensorBase) and x.requires_grad}.values())
    if recorded and recording:
        replaced = _as_node(target, start, viewed, recorded)
        results = [replaced.get(id(x), x) for x in results]
    return unflatten(out_structure, results)


def regional(target: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls are regions, wherever they are."""

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        return run_region(target, [lift(x) for x in leaves], structure)

    return call


def _as_node(
    target: Callable[..., Any], start: int, viewed: list[tuple[Edge, Edge]], recorded: list[TensorBase]
) -> dict[int, TensorBase]:
    """The results as outputs of one node; without history where `backward` has used it up inside."""
    replaced: dict[int, TensorBase] = {}
    order = collect([x.edge for x in recorded], start)
    if any(node.saved is None for node in order):
        for x in recorded:
            if any(node.saved is None for node in collect([x.edge], start)):
                replaced[id(x)] = wrap(x.payload)
        recorded = [x for x in recorded if id(x) not in replaced]
        order = collect([x.edge for x in recorded], start)
    if not recorded:
        return replaced
    outputs = [x.edge for x in recorded]
    captured = captured_edges(order, outputs, start, {id(view) for _, view in viewed})
    edges = (*(edge for edge, _ in viewed), *captured)
    saved = Recorded(outputs, [*(view for _, view in viewed), *captured], start, edges)
    op: Any = RegionOp(getattr(target, "__name__", "function"), len(recorded))
    return replaced | outputs_of(Node(op, None, edges, (saved,), None, *user_frame(2)), recorded)
