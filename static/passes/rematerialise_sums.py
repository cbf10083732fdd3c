"""Less memory at the peak: sums that cost a load are computed again, where what they are made of is kept anyway."""

from __future__ import annotations

from static.graph import Graph, rebuild
from static.graph.lifetimes import Key, Life, computed_again, lives, usage

WORTHWHILE = 1 << 23
"""Bytes kept at the peak from which on this is done: less lies in a cache, and computing again would cost time only."""

STEPS = 6
"""Of so many values that follow from each other one is kept: a chain as long is computed at one go, in one loop."""


def compute_again(graph: Graph) -> Graph:
    """y = f(x, ...) here and needed long after -> y = f(x, ...) again there, if x, ... are needed there, too.

    In ``x + tanh(layer(x))``, layer by layer, both each x and each tanh are kept for the backward pass; but an x is the
    sum of the one before and the tanh. This is the idea of checkpoints, where nothing costly has to be repeated.

    References
    ----------
    Griewank, Walther, Algorithm 799: revolve, 2000.
    Chen and others, Training deep nets with sublinear memory cost, 2016.
    """
    lived = lives(graph.nodes, graph.results)
    used = usage(len(graph.nodes), lived.values())
    peak = max(range(len(used)), key=used.__getitem__, default=0)
    kept = {key: life for key, life in lived.items() if life.start <= peak < life.end}
    if sum(life.nbytes for life in kept.values()) < WORTHWHILE:
        return graph
    again = _chosen(kept, peak, {value.key for value in graph.inputs})
    return rebuild(graph, computed_again(graph, peak, [(len(graph.nodes), again)]), {}) if again else graph


def _chosen(kept: dict[Key, Life], peak: int, inputs: set[Key]) -> dict[Key, int]:
    """Values that need not be kept, and how many values follow from each other up to them."""
    again: dict[Key, int] = {}
    for key, life in kept.items():
        op = life.value.node.op
        if op is None or op.kind != "elementwise" or op.costly or life.through_views:
            continue
        needed = min(position for position in life.uses if position > peak)
        operands = [value.key for value in life.value.node.values if value.key not in inputs]
        if all(o in kept and kept[o].end >= needed for o in operands):
            steps = 1 + max((again.get(o, 0) for o in operands), default=0)
            if steps <= STEPS:
                again[key] = steps
    return again


__all__ = ["compute_again"]
