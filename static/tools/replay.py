"""A call of a program, ready to be run node by node: what `debug`, `nan_watch` and `compare` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from common.tensor import TensorBase
from common.tree import flatten
from static.graph import Graph, Node
from static.jit import Function
from static.tracing.signature import native_array


class Call(NamedTuple):
    """A traced call.

    Attributes
    ----------
    graph : the program as traced, forward and what `backward` inside it recorded.
    arrays : copies of everything that it reads, so that nothing which runs on them is seen outside.
    env : the sizes.
    """

    graph: Graph
    arrays: list[Any]
    env: Mapping[Any, int]


def trace_call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Trace a call without running it.

    Parameters
    ----------
    f : a `function`, or a Python function that could be one.

    Raises
    ------
    TraceError : it cannot be traced.
    """
    target = f.target if isinstance(f, Function) else f
    leaves, structure = flatten((args, kwargs))
    for i, x in enumerate(leaves):
        if isinstance(x, (TensorBase, np.ndarray, np.generic)):
            leaves[i] = native_array(np.array(x.payload if isinstance(x, TensorBase) else x, order="C"), i)
    how = f.control_flow if isinstance(f, Function) else None
    traced, plan = Function(target, interpret=True, passes=(), control_flow=how).prepare(leaves, structure, None)
    state = [np.array(x.payload) for x in traced.state]
    return Call(traced.raw, [*(leaves[i] for i in traced.positions), *state], plan.env)


def phase(node: Node) -> str:
    """Whether a node is part of the program's own "forward" or of a "backward" that it calls."""
    return "backward" if node.scope.split("/")[0] == "backward" else "forward"


def place(node: Node) -> str:
    """Where the user's line of a node is."""
    file, line, function = node.source
    return f"{file}:{line} in {function}"
