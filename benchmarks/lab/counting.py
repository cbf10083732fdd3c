"""Bytes and operations of a program, counted from its graph or from its kernels: no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.sizes import hint
from static.graph.regions import iterations


def kernels(function: Any) -> list[dict[str, Any]]:
    """Return per kernel its name, ops, lines, bytes, operations, how often, and why neighbours are not part of it.

    Where data decide how often, in branches and while loops, once is counted.
    """
    if function is None:
        return []
    return [
        {"name": k.name, "ops": list(k.ops), "lines": list(k.lines), "reads": k.reads, "writes": k.writes,
         "flops": k.flops, "times": 1 if k.times is None else k.times,
         "refused": list(k.refused), "reused": list(k.reused)}
        for k in function.explain().kernels
    ]  # fmt: skip


def graph(function: Any) -> dict[str, int] | None:
    """Return how many nodes of a graph compute, and what they read, write and compute if each runs alone."""
    if function is None:
        return None
    found = {"kernel_calls": 0, "moved_bytes": 0, "flops": 0}
    _count(function.newest.graph, 1, found)
    return found


def _count(graph: Any, times: int, found: dict[str, int]) -> None:
    """Add the nodes of a graph that runs so many times; a region as often as its node says, or once if data decide."""
    for node in graph.nodes:
        for _, region in node.regions:
            _count(region, times * hint(iterations(node) or 1), found)
        if node.op is None or node.regions or node.op.kind in ("view", "act") or node.name == "constant":
            continue
        found["kernel_calls"] += times
        found["moved_bytes"] += times * sum(map(_nbytes, (*node.values, *node.outputs)))
        if node.op.kind in ("elementwise", "reduction"):
            found["flops"] += times * max(map(_elements, (*node.values, *node.outputs)))
        elif node.name in ("mm", "addmm"):
            a, b = (tuple(hint(n) for n in v.spec.shape) for v in list(node.values)[-2:])
            found["flops"] += 2 * times * math.prod(a) * b[-1]


def _elements(value: Any) -> int:
    return math.prod(hint(n) for n in value.spec.shape)


def _nbytes(value: Any) -> int:
    return _elements(value) * int(value.spec.dtype.itemsize)


def allocations(function: Any) -> Callable[[], None] | None:
    """Return a call that allocates, and drops, an array for every result of a graph, as an eager engine has to."""
    if function is None:
        return None
    nodes = [n for n in function.newest.graph.nodes if n.op is not None and n.op.kind not in ("view", "act")]
    forms = [(tuple(hint(n) for n in v.spec.shape), v.spec.dtype) for node in nodes for v in node.outputs]

    def allocate() -> None:
        for shape, dtype in forms:
            np.empty(shape, dtype)

    return allocate


def bound_bytes(function: Any) -> int:
    """Return the bytes of arguments, state and results of the newest plan."""
    total = 0
    for argument in function.newest_plan.arguments:
        total += math.prod(argument.shape) * int(argument.dtype.itemsize)
    return total
