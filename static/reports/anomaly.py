"""`detect_anomaly` around a compiled program: run it node by node, and find where a non-finite result began.

The graph as it was traced is run, so every node has the user's line. What is masked later is no finding: the search
starts from results and written state that are not finite, and goes back as long as an operand is not finite either.
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
    GradientError : names the first op with finite operands and a non-finite result on the way to a non-finite output.
    """
    values = evaluate(graph, arrays, env)
    for value in (*graph.outputs, *(effect.value for effect in graph.effects)):
        if not finite(values[value.key]):
            node = _origin(value, values)
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


def _origin(value: Value, values: Mapping[tuple[int, int], Any]) -> Node | None:
    """The node at which a non-finite value began; None if it came in."""
    while True:
        node = value.node
        if not node.operands:  # an input or a constant
            return None
        operands = [x for x in node.operands if type(x) is Value and not finite(values[x.key])]
        if not operands:
            return node
        value = operands[0]


def _found(node: Node, values: Mapping[tuple[int, int], Any], name: str) -> GradientError:
    file, line, function = node.source
    results = tuple(values[(node.id, i)] for i in range(len(node.outputs)))
    shapes = [np.shape(values[x.key]) for x in node.operands if type(x) is Value]
    scope, which = node.scope.split("/"), worst(results)
    if scope[0] == "backward":
        what = f"Function '{scope[1]}' returned {which} values in the backward pass; the forward op is at"
    else:
        op = node.op.name if node.op else "input"
        what = f"{op}() returned {which} values for finite inputs of shapes {shapes} at"
    return GradientError(f"{what} {file}:{line} in {function}, compiled in {name}.")
