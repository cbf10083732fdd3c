"""Arrays of a model that Python reads, such as the scales of a Resize: constants, which training leaves alone."""

from __future__ import annotations

from collections.abc import Iterator

from common.tools.onnx.host_values import FOLDED
from common.tools.onnx.records import OnnxGraph, OnnxNode

_READ: dict[str, tuple[int, ...]] = {
    "Dropout": (1,), "MelWeightMatrix": (0, 1, 2, 3, 4), "OneHot": (1,), "Pad": (2,), "Range": (0, 1, 2),
    "Resize": (1, 2), "Upsample": (1,),
}  # fmt: skip
"""Operator -> its operands of floats that Python has to know."""
_PASSED = {*FOLDED, "Cast", "Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"}
"""Operators whose result Python knows if it knows their operands."""


def read_by_python(graph: OnnxGraph) -> set[str]:
    """The names of what Python reads, in the graph and in those inside it."""
    found: set[str] = set()
    for node in reversed([*_nodes(graph)]):
        if node.kind in _PASSED and not found.isdisjoint(node.outputs):
            found.update(node.inputs)
        found.update(node.inputs[i] for i in _READ.get(node.kind, ()) if i < len(node.inputs))
    return found


def _nodes(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """All nodes; those of a graph inside a node follow it."""
    for node in graph.nodes:
        yield node
        for value in node.attrs.values():
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, OnnxGraph):
                    yield from _nodes(inner)
