"""Bytes and operations of a program, counted from its graph or from its kernels: no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.sizes import hint


def kernels(function: Any) -> list[dict[str, Any]]:
    """Return per kernel call its name, ops, lines, bytes, operations, and why neighbours are not part of it."""
    if function is None:
        return []
    return [
        {"name": k.name, "ops": list(k.ops), "lines": list(k.lines), "reads": k.reads, "writes": k.writes,
         "flops": k.flops, "refused": list(k.refused), "reused": list(k.reused)}
        for k in function.explain().kernels
    ]  # fmt: skip


def graph(function: Any) -> dict[str, int] | None:
    """Return how many nodes of a graph compute, and what they read, write and compute if each runs alone."""
    if function is None:
        return None
    newest = function.newest
    program = newest.graph
    found = {"kernel_calls": 0, "moved_bytes": 0, "flops": 0}

    def nbytes(value: Any) -> int:
        return math.prod(hint(n) for n in value.spec.shape) * int(value.spec.dtype.itemsize)

    for node in program.nodes:
        if node.op is None or node.op.kind in ("view", "act") or node.name == "constant":
            continue
        found["kernel_calls"] += 1
        found["moved_bytes"] += sum(map(nbytes, node.values)) + sum(map(nbytes, node.outputs))
        if node.op.kind in ("elementwise", "reduction"):
            sizes = (math.prod(hint(n) for n in v.spec.shape) for v in (*node.values, *node.outputs))
            found["flops"] += max(sizes)
        elif node.name in ("mm", "addmm"):
            a, b = (tuple(hint(n) for n in v.spec.shape) for v in list(node.values)[-2:])
            found["flops"] += 2 * math.prod(a) * b[-1]
    return found


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
