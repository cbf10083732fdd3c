"""`detect_anomaly` around a compiled program: run it node by node, and find where a non-finite gradient began.

The graph as it was traced is run, so every node has the user's line. What is masked later is no finding: the search
starts from results and written state that are not finite, and goes back along operands that are not finite either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.core.errors import GradientError
from common.tensor.observers import finite, worst
from static.graph import Graph, Node, Value
from static.running.interpreter import Interpreted, evaluate, finish


def run_watched(graph: Graph, arrays: Sequence[np.ndarray], env: Mapping[Any, int], name: str) -> list[np.ndarray]:
    """Run `graph` as `interpret` does, and look at what it gives before state is written.

    Parameters
    ----------
    name : of the compiled function, for messages.

    Raises
    ------
    GradientError : names the first node of the backward pass with a non-finite result on the way to such an output.
    """
    values = evaluate(graph, arrays, env)
    node = _origin(graph, values)
    if node is not None:
        raise _found(node, values, name)
    return finish(graph, values)


class Watched(Interpreted):
    """A graph for concrete sizes, as a plan that is watched."""

    def __init__(self, graph: Graph, env: Mapping[Any, int], name: str) -> None:
        super().__init__(graph, env)
        self.name = name

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """The outputs for arrays, if they are finite."""
        return run_watched(self.graph, [np.asarray(x) for x in arrays], self.env, self.name)


def _origin(graph: Graph, values: Mapping[tuple[int, int], Any]) -> Node | None:
    """The first node of a backward pass on the ways along which what is not finite has come to results and state."""
    ways: set[int] = set()
    look = [*graph.outputs, *(effect.value for effect in graph.effects)]
    while look:
        value = look.pop()
        if value.node.id not in ways and not finite(values[value.key]):
            ways.add(value.node.id)
            look += [x for x in value.node.operands if type(x) is Value]
    return next((node for node in graph.nodes if node.id in ways and _is_backward(node)), None)


def _is_backward(node: Node) -> bool:
    return node.scope.startswith("backward/")


def _found(node: Node, values: Mapping[tuple[int, int], Any], name: str) -> GradientError:
    file, line, function = node.source
    which = worst(tuple(values[(node.id, i)] for i in range(len(node.outputs))))
    return GradientError(
        f"Function '{node.scope.split('/')[1]}' returned {which} values in the backward pass; the forward op is at "
        f"{file}:{line} in {function}, compiled in {name}."
    )
