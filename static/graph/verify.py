"""The graph's own consistency, checked after tracing and after every pass."""

from __future__ import annotations

from common.core.errors import CompileError, EscapedTracerError
from common.core.sizes import same
from static.graph.nodes import Graph, Node, Value
from static.graph.regions import check


def verify(graph: Graph, stage: str) -> None:
    """Check that `graph` is well formed, the regions of its nodes included.

    Raises
    ------
    CompileError : names the stage and the offending node: an id that another one has, an operand that is not
        defined before its use, or a written value whose shape or dtype is not that of its state.
    """
    defined: dict[tuple[int, int], Value] = {}
    ids: set[int] = set()
    for node in graph.nodes:
        if node.id in ids:
            raise CompileError(f"after {stage}: there are two nodes %{node.id}")
        ids.add(node.id)
        for value in node.values:
            if defined.get(value.key) is not value:
                if stage == "tracing":
                    raise _escaped(value, node)
                raise CompileError(f"after {stage}: {node} uses {value!r}, which is not defined before it")
        for value in node.outputs:
            defined[value.key] = value
        for name, region in node.regions:
            verify(region, f"{stage}, in {name} of %{node.id}")
        if node.op is not None and node.op.kind == "control":
            check(node, stage)
    if stage == "tracing":
        for value in graph.results:
            if defined.get(value.key) is not value:
                raise _escaped(value, None)
    for value in (*graph.inputs, *graph.results, *(e.state for e in graph.effects)):
        if defined.get(value.key) is not value:
            raise CompileError(f"after {stage}: the graph's {value!r} is not defined by a node")
    for effect in graph.effects:
        old, new = effect.state.spec, effect.value.spec
        if old.dtype != new.dtype or len(old.shape) != len(new.shape):
            raise CompileError(f"after {stage}: {effect.value!r} of {new} is written to {effect.state!r} of {old}")
        if not all(same(m, n) for m, n in zip(old.shape, new.shape, strict=True)):
            raise CompileError(f"after {stage}: {effect.value!r} of {new} is written to {effect.state!r} of {old}")


def _escaped(value: Value, node: Node | None) -> EscapedTracerError:
    """The error for a value of a loop or a branch that a list or a variable has carried out of it."""
    (file, line, _), at = value.node.source, "" if node is None else " at {}:{}".format(*node.source[:2])
    return EscapedTracerError(
        f"the {value.node.name} at {file}:{line} is part of a loop or a branch, but is used outside of it{at}: what "
        "such a function puts into a list or an outer variable stands for every time it runs; return it, carry it, or "
        "stack it with scan"
    )
