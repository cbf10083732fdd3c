"""Rewrites of a graph that keep every bit. A pass is a function ``Graph -> Graph`` in a file of its own.

Adding one: write ``static/passes/verb_noun.py`` with a function of that name whose docstring's first line states
the rewrite, and name it in `PIPELINE`. The graph is verified after each pass that changed it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from static.graph import Graph
from static.passes.fold_constants import fold_constants
from static.passes.merge_equal import merge_equal
from static.passes.remove_dead import remove_dead
from static.passes.simplify import simplify
from static.verify import verify

Pass = Callable[[Graph], Graph]

PIPELINE: tuple[Pass, ...] = (remove_dead, simplify, fold_constants, merge_equal, remove_dead)


class PassReport(NamedTuple):
    """What a pass did: nodes before and after, seconds."""

    name: str
    before: int
    after: int
    seconds: float


def run_passes(graph: Graph, pipeline: tuple[Pass, ...] = PIPELINE) -> tuple[Graph, list[PassReport]]:
    """Apply passes in order and verify the graph after each that changed it.

    Raises
    ------
    CompileError : a pass left an inconsistent graph; the message names it.
    """
    reports = []
    for rewrite in pipeline:
        given, start = graph, perf_counter()
        graph = rewrite(given)
        if graph is not given:
            verify(graph, rewrite.__name__)
        reports.append(PassReport(rewrite.__name__, len(given.nodes), len(graph.nodes), perf_counter() - start))
    return graph, reports
