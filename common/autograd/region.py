"""Regions: what was recorded inside one call, differentiated as one node.

Contributions to each argument and each captured tensor are totalled inside, then contributed once (docs/numerics.md,
point 5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common import mode
from common.autograd.tape import Edge, Node, backward_pass
from common.tensor import saved_tensors


def captured_edges(order: list[Node], outputs: list[Edge], start: int, views: set[int]) -> list[Edge]:
    """Edges that lead out of the region: to earlier nodes and to leaves, each once; the arguments' views left out."""
    found: dict[tuple[int, int], Edge] = {}
    for edge in (*outputs, *(edge for node in reversed(order) for edge in node.edges)):
        owner, output = edge if type(edge) is tuple else (edge, 0)
        if owner is None or id(owner) in views or (type(owner) is Node and owner.number >= start):
            continue
        found.setdefault((id(owner), output), edge)
    return list(found.values())


class Recorded(NamedTuple):
    """What a region recorded: edges of its results and of what they depend on; its nodes have numbers from `start`."""

    outputs: list[Edge]
    inputs: list[Edge]
    start: int


class RegionOp:
    """The op of a region's node; its rule is a backward pass over what was recorded inside.

    Parameters
    ----------
    name : of the function.
    nout : number of results that require grad.
    """

    kind = "region"
    saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, name: str, nout: int) -> None:
        self.name, self.nout = name, nout
        self.node_name = "".join(w.capitalize() for w in name.strip("<>").split("_")) + "Backward"

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the rule reads itself; those of the nodes inside are looked at when their pass begins."""
        return []

    def backward(self, saved: tuple[Recorded], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        (inner,) = saved
        cotangents = (g,) if self.nout == 1 else g
        seeds = [(edge, c) for edge, c in zip(inner.outputs, cotangents, strict=True) if c is not None]
        unpack = saved_tensors if mode.is_grad_enabled() else None
        totals = backward_pass(seeds, unpack, retain=True, first=inner.start)
        return tuple(totals.get(edge) for edge in inner.inputs)
