"""A call of a program, ready to be run node by node, for `debug`, `nan_watch` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.dispatch import apply
from common.core.python_numbers import Number
from common.core.sizes import resolve
from common.core.tree import flatten
from common.tensor.base import TensorBase, wrap
from static.graph import Graph, Node, Value
from static.graph.side_effects import gives
from static.jit.function import CompiledFunction
from static.running.interpreter import run_node
from static.tracing.signature import native_array


class TracedCall(NamedTuple):
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


def trace_call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedCall:
    """Trace a call without running it.

    Parameters
    ----------
    f : a `function`, a Python function that could be one, a session's `run`, or what its `make_callable` returns.

    Raises
    ------
    TraceError : it cannot be traced.
    """
    owner: Any = f if hasattr(f, "replayed") else getattr(f, "__self__", None)  # made by a session; its method `run`
    if hasattr(owner, "replayed"):
        made: TracedCall = owner.replayed(*args, **kwargs)
        return made
    target = f.target if isinstance(f, CompiledFunction) else f
    leaves, structure = flatten((args, kwargs))
    for i, x in enumerate(leaves):
        if isinstance(x, (TensorBase, np.ndarray, np.generic)):
            leaves[i] = native_array(np.array(x.payload if isinstance(x, TensorBase) else x, order="C"), i)
    how = f.control_flow if isinstance(f, CompiledFunction) else None
    traced, plan = CompiledFunction(target, interpret=True, passes=(), control_flow=how).prepare(
        leaves, structure, None
    )
    state = [np.array(x.payload) for x in traced.state]
    return TracedCall(traced.raw, [*(leaves[i] for i in traced.positions), *state], plan.env)


def phase(node: Node) -> str:
    """Whether a node is part of the program's own "forward" or of a "backward" that it calls."""
    return "backward" if node.scope.split("/")[0] == "backward" else "forward"


def place(node: Node) -> str:
    """Where the user's line of a node is."""
    file, line, function = node.source
    return f"{file}:{line} in {function}"


def replay(graph: Graph, inputs: Sequence[Any], env: Mapping[Any, int]) -> list[Any]:
    """Run a graph op by op in the eager engine.

    Parameters
    ----------
    inputs : tensors, arrays or numbers.
    env : values of the dimension atoms.
    """
    values: dict[tuple[int, int], Any] = {}
    for value, x in zip(graph.inputs, inputs, strict=True):
        values[value.key] = wrap(x) if isinstance(x, np.ndarray) else Number(x) if type(x) is float else x
    for node in graph.nodes:
        if node.op is None or (node.op.kind == "act" and not gives(node)):
            continue
        if node.regions or node.op.kind == "act":
            results = run_node(node, {key: _payload(x) for key, x in values.items()}, env)
            values.update((v.key, wrap(x)) for v, x in zip(node.outputs, results, strict=True))
            continue
        attrs = {name: resolve(x, env) for name, x in node.attrs.items()}
        if node.op.literal:
            values[node.outputs[0].key] = attrs["value"]
            continue
        operands = [values[x.key] if type(x) is Value else x for x in node.operands]
        if node.op.attrs and node.op.kind == "elementwise":  # a conversion takes no number as it is
            operands = [np.asarray(x) if isinstance(x, (int, float)) else x for x in operands]
        results = apply(node.op, operands, attrs)
        for value, x in zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True):
            values[value.key] = _number(x) if value.spec.weak and getattr(x, "ndim", 0) == 0 else x
    return [_in_dtype(values[value.key], value) for value in graph.outputs]


def _in_dtype(x: Any, value: Value) -> Any:
    """A result; a Python number, as which a weak value is computed with, in the dtype that the value has."""
    return x if isinstance(x, (TensorBase, np.ndarray)) else np.asarray(x, value.dtype)


def _number(x: Any) -> Any:
    """A weak value as the Python number that it stands for."""
    number = x.item() if hasattr(x, "item") else x
    return Number(number) if type(number) is float else number


def _payload(x: Any) -> Any:
    return x.payload if isinstance(x, TensorBase) else x
