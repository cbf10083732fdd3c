"""Regions: the tape of one call, differentiated as one node.

Contributions to each argument and each captured tensor are totalled inside, then contributed once (docs/numerics.md,
point 5). So is the gradient of a region, if it is recorded: it is a region of what the first one recorded and of the
backward pass over that, whose inputs are those of the first one and the cotangents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.autograd.backward_pass import backward_pass, collect
from common.core import mode
from common.core.source_lines import user_frame
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, FunctionNode, Node
from common.tensor.read_saved import saved_tensors


def captured_edges(order: list[Node], outputs: list[Edge], start: int, views: set[int]) -> list[Edge]:
    """Edges that lead out of the region: to earlier nodes and to leaves, each once; the arguments' views left out."""
    found: dict[tuple[int, int], Edge] = {}
    for edges in (outputs, *(node.edges for node in reversed(order))):
        for edge in edges:
            if edge is None or ((type(edge) is Node or type(edge) is FunctionNode) and edge.number >= start):
                continue  # most of them
            owner, output = edge if type(edge) is tuple else (edge, 0)
            if id(owner) not in views and not (isinstance(owner, Node) and owner.number >= start):
                found.setdefault((id(owner), output), edge)
    return list(found.values())


class Recorded(NamedTuple):
    """The tape of a region; its nodes have numbers from `start`.

    Attributes
    ----------
    outputs : edges of its results.
    inputs : edges of what these depend on, as they are inside: views of the arguments, captured tensors.
    outside : edges of the same as they are outside.
    """

    outputs: list[Edge]
    inputs: list[Edge]
    start: int
    outside: tuple[Edge, ...] = ()


class Pulled(NamedTuple):
    """The recorded gradient of a region.

    Attributes
    ----------
    found : contributions to the region's inputs, None where there is none or none is needed.
    results : those that have a history, each once.
    region : what that is; its inputs are those of the first region, the cotangents that require grad, and `extra`.
    extra : edges to what else is used, by hooks.
    """

    found: list[TensorBase | None]
    results: list[TensorBase]
    region: Recorded
    extra: list[Edge]


def pull(inner: Recorded, cotangents: Sequence[TensorBase | None], needs: Sequence[Any]) -> Pulled:
    """Differentiate a region and record that.

    Parameters
    ----------
    cotangents : of the results, leaves; None where there is none.
    needs : per input None if no contribution to it is needed.
    """
    seeds = [(edge, c) for edge, c in zip(inner.outputs, cotangents, strict=True) if c is not None]
    totals = backward_pass(seeds, saved_tensors, retain=True, first=inner.start)
    found = [None if need is None else totals.get(edge) for edge, need in zip(inner.inputs, needs, strict=True)]
    results = list({id(x): x for x in found if x is not None and x.requires_grad}.values())
    outputs = [x.edge for x in results]
    leaves = [c for c in cotangents if c is not None and c.requires_grad]
    known = {_place(edge) for edge in inner.inputs}
    out = captured_edges(collect(outputs, inner.start), outputs, inner.start, set(map(id, leaves)))
    extra = [edge for edge in out if _place(edge) not in known]
    return Pulled(found, results, Recorded(outputs, [*inner.inputs, *leaves, *extra], inner.start), extra)


def _place(edge: Edge) -> tuple[int, int]:
    owner, output = edge if type(edge) is tuple else (edge, 0)
    return id(owner), output


def outputs_of(node: Node, results: Iterable[TensorBase]) -> dict[int, TensorBase]:
    """Tensors that take the place of results, by their id: the outputs of a node."""
    made, trace = {}, mode.current_trace()
    for i, x in enumerate(results):
        out = made[id(x)] = wrap(x.payload if trace is None else trace.payload(x))
        out.grad_fn, out.output_nr, out._requires_grad = node, i, True
        if mode.tracing and (level := mode.dual_level.get()) is not None:
            level.hand_on(x, out)
    return made


class RegionOp:
    """The op of a region's node; its rule is a backward pass over what was recorded inside.

    Parameters
    ----------
    name : of the function.
    nout : number of results that require grad.
    node_name : of the node; made of the function's by default.
    """

    kind = "region"
    saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, name: str, nout: int, node_name: str = "") -> None:
        self.name, self.nout = name, nout
        words = name.strip("<>").split("_")
        self.node_name = node_name or "".join(w.capitalize() for w in words) + "Backward"

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the rule reads itself; those of the nodes inside are looked at when their pass begins."""
        return []

    def backward(self, saved: tuple[Recorded], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        return self.contributions(saved[0], (g,) if self.nout == 1 else g, needs)

    def contributions(
        self, inner: Recorded, cotangents: Sequence[Any], needs: Sequence[Any], retain: bool = True
    ) -> tuple[Any, ...]:
        """Contributions of the results' cotangents to the inputs: results of one node, if the pass is recorded.

        Parameters
        ----------
        retain : keep what is saved inside, unless the pass is recorded, which keeps it anyway.
        """
        level = mode.tangents_around()
        recording = mode.is_grad_enabled()
        if level is not None or not recording:  # tangents have histories of their own, so no node stands for them
            seeds = [(edge, c) for edge, c in zip(inner.outputs, cotangents, strict=True) if c is not None]
            unpack = None if level is None else level.saved_tensors
            totals = backward_pass(seeds, unpack, retain=retain or recording, first=inner.start)
            return tuple(totals.get(edge) for edge in inner.inputs)
        pulled = pull(inner, [None if c is None else _leaf(c) for c in cotangents], needs)
        if not pulled.results:
            return tuple(pulled.found)
        edges = (*inner.outside, *(c.edge for c in cotangents if c is not None and c.requires_grad), *pulled.extra)
        op: Any = RegionOp(self.name, len(pulled.results), self.node_name + "Backward")
        node = Node(op, None, edges, (pulled.region._replace(outside=edges),), None, *user_frame(3))
        made = outputs_of(node, pulled.results)
        return tuple(made.get(id(x), x) for x in pulled.found)


def _leaf(c: TensorBase) -> TensorBase:
    """A leaf that stands for a cotangent inside the region of a gradient."""
    trace = mode.current_trace()
    leaf = wrap(c.payload if trace is None else trace.payload(c))
    leaf._requires_grad = c.requires_grad
    return leaf
