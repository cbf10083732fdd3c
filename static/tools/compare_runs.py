"""`compare`: the first op at which two ways of running one program part, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.core.sizes import resolve
from common.tensor.base import TensorBase
from static.graph import Graph, Node, Value
from static.graph.regions import LoopParts
from static.graph.side_effects import gives
from static.running.executable import compile_graph
from static.running.interpreter import interpret, with_room
from static.running.parity import difference
from static.tools import peer_programs
from static.tools.replay import TracedCall, replay, trace_call

Key = tuple[int, int]
Mode = str | Callable[[Graph], Graph]


@dataclass(frozen=True, slots=True)
class Parting:
    """The first result that differs.

    Attributes
    ----------
    op : name of its node.
    source : the user's file, line and function.
    text : element, both values, distance in ulp, and how many elements differ.
    compared : how many results were equal before it.
    """

    op: str
    source: tuple[str, int, str]
    text: str
    compared: int

    def __str__(self) -> str:
        file, line, function = self.source
        return f"{self.op} at {file}:{line} in {function}: {self.text} ({self.compared} results before it are equal)"


def compare(
    f: Callable[..., Any], args: Sequence[Any], a: Mode = "dynamic", b: Mode = "compiled", **kwargs: Any
) -> Parting | None:
    """Run a call in two ways and find the first op whose results differ.

    Parameters
    ----------
    f : a `function`, a Python function that could be one, a session's `run`, or what its `make_callable` returns.
    args, kwargs : of the call; an array is the one argument.
    a, b : "dynamic" (the eager engine, op by op), "interpreter", "compiled", "unfused" (one kernel per op); "torch" or
        "jax" where installed (ops for which a table has a counterpart, on the operands of this library, so that each is
        judged by itself); or a pass, a function from Graph to Graph: what it makes is interpreted.

    Returns
    -------
    Parting or None : None if all bits are equal.

    Raises
    ------
    ArgumentError : no such mode, or a peer that is not installed.
    TraceError : `f` cannot be traced.

    Examples
    --------
    >>> import numpy as np, static
    >>> static.compare(lambda x: (static.exp(x) * 2).sum(), [np.ones(3, np.float32)]) is None
    True
    """
    if isinstance(args, (TensorBase, np.ndarray)):
        args = [args]
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(f"compare(): argument 'args' must be a list of arguments, not {type(args).__name__}")
    call = trace_call(f, tuple(args), kwargs)
    first, second = (with_room(partial(_values, call, way), call.env) for way in (a, b))
    equal = 0
    for node in call.graph.nodes:
        for value in node.outputs:
            if node.op is None or value.key not in first or value.key not in second:
                continue
            told = difference(_made(value, first), _made(value, second))
            if told:
                return Parting(
                    node.name, node.source, told.replace("before", "here", 1).replace("after", "there"), equal
                )
            equal += 1
    return None


def _made(value: Value, found: Mapping[Key, Any]) -> np.ndarray:
    """A result; of what a loop stacks, as often as data decide, the rows that it has written."""
    node, x = value.node, np.asarray(found[value.key])
    if node.name == "loop" and (parts := LoopParts(node)).condition is not None and value.index in parts.stacked:
        return x[: int(found[node.outputs[-1].key])]
    return x


def _values(call: TracedCall, way: Mode, env: Mapping[Any, int]) -> dict[Key, Any]:
    """The results of all nodes in one mode."""
    call = call._replace(env=env)
    if callable(way):
        return _interpreted(call, way(call.graph))
    if way in ("torch", "jax"):
        return _of_peer(call, way)
    if way == "interpreter":
        return _interpreted(call, call.graph)
    nodes = [node for node in call.graph.nodes if node.op is not None and (node.op.kind != "act" or gives(node))]
    outputs = [value for node in nodes for value in node.outputs]
    everything = Graph(call.graph.inputs, call.graph.nodes, outputs, [])
    if way == "dynamic":
        results: Sequence[Any] = [x.payload if hasattr(x, "grad_fn") else x for x in _eager(everything, call)]
    elif way in ("compiled", "unfused"):
        results = compile_graph(everything, fuse=way == "compiled").plan(call.env)(*call.arrays)
    else:
        raise ArgumentError(
            f"compare: there is no mode {way!r}; there are 'dynamic', 'interpreter', 'compiled', "
            "'unfused', 'torch', 'jax', and passes"
        )
    return {value.key: x for value, x in zip(outputs, results, strict=True)}


def _interpreted(call: TracedCall, graph: Graph) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    own = set(graph.nodes)  # those of loops and branches run any number of times

    def watch(node: Node, operands: Sequence[Any], results: tuple[Any, ...]) -> None:
        if node in own:
            found.update((value.key, np.array(x)) for value, x in zip(node.outputs, results, strict=True))

    interpret(graph, [np.array(x) if isinstance(x, np.ndarray) else x for x in call.arrays], call.env, watch)
    return found


def _eager(everything: Graph, call: TracedCall) -> list[Any]:
    with mode.no_grad():
        return replay(everything, call.arrays, call.env)


def _of_peer(call: TracedCall, name: str) -> dict[Key, Any]:
    judge, found, own = peer_programs.evaluator(name), {}, set(call.graph.nodes)

    def watch(node: Node, operands: Sequence[Any], results: tuple[Any, ...]) -> None:
        attrs = {key: resolve(x, call.env) for key, x in node.attrs.items()}
        answer = judge(node, operands, attrs) if node in own else None
        if answer is not None:
            found[node.outputs[0].key] = answer

    interpret(call.graph, list(call.arrays), call.env, watch)
    return found
