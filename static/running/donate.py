"""Donated arguments: a result of the same form is written over them."""

from __future__ import annotations

from collections.abc import Sequence

from common.core.sizes import same_shape
from static.graph import Effect, Graph


def donate(graph: Graph, inputs: Sequence[int], results: int, usable: bool) -> tuple[list[str], dict[int, int]]:
    """Let results of a traced graph be effects on donated inputs instead of outputs.

    The first result of the same shape and dtype that is computed takes the memory, as in JAX. It is written like state:
    after everything that reads the old contents, and only if nothing fails.

    Parameters
    ----------
    inputs : positions of the donated inputs.
    results : how many of the graph's outputs are results of the function, the first ones.
    usable : whether there is no history that may need the arguments.

    Returns
    -------
    donations : what has become of each, in words.
    donated : position of a result -> of the input.
    """
    words, donated = [], dict[int, int]()
    written = {effect.state.key for effect in graph.effects}
    for p in inputs:
        value = graph.inputs[p]
        fitting = (
            k
            for k, x in enumerate(graph.outputs[:results])
            if k not in donated
            and x.node.op is not None
            and x.dtype == value.dtype
            and same_shape(x.shape, value.shape)
        )
        k = next(fitting, None)
        if not usable:
            words.append(f"input {p} is kept: gradients are recorded")
        elif value.key in written:
            words.append(f"input {p} is kept: the function writes to it")
        elif k is None:
            words.append(f"input {p} is kept: no result has its shape and dtype")
        else:
            donated[k] = p
            words.append(f"input {p} is overwritten by result {k}")
    graph.effects = [*graph.effects, *(Effect(graph.inputs[p], graph.outputs[k]) for k, p in donated.items())]
    graph.outputs = [x for k, x in enumerate(graph.outputs) if k not in donated]
    return words, donated
