"""Rewrites of a graph that keep every bit. A pass is a function ``Graph -> Graph`` in a file of its own.

Users may also give functions from a networkx DAG to one, see `on_dag`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

from static.graph import Graph, Node, rebuild
from static.graph.verify import verify
from static.passes.fold_constants import fold_constants
from static.passes.interleave import interleave
from static.passes.mask_triangles import mask_triangles
from static.passes.merge_equal import merge_equal
from static.passes.on_dag import Pass as Pass
from static.passes.on_dag import adapted
from static.passes.on_dag import from_graph as from_graph
from static.passes.on_dag import on_dag as on_dag
from static.passes.outer_products import outer_products
from static.passes.pick_first import pick_first
from static.passes.rematerialise import Rematerialiser, rematerialise
from static.passes.remove_dead import remove_dead
from static.passes.save_residuals import save_residuals
from static.passes.simplify import simplify
from static.passes.split_sums import split_sums
from static.passes.take_apart import take_apart
from static.passes.trim_regions import trim_regions
from static.passes.turn_back import turn_back
from static.passes.turn_products import turn_products
from static.passes.turn_states import turn_states
from static.passes.whole_rows import whole_rows
from static.passes.written_out_products import write_out_products

PIPELINE: tuple[Pass, ...] = (
    remove_dead,
    simplify,
    mask_triangles,
    whole_rows,
    fold_constants,
    merge_equal,
    interleave,
    take_apart,
    merge_equal,
    turn_back,
    turn_products,
    pick_first,
    rematerialise,
    remove_dead,
)
#: Of these, those that leave regions alone.
OUTSIDE: tuple[Pass, ...] = (rematerialise,)
#: After these, where there are regions.
REGIONS: tuple[Pass, ...] = (
    split_sums,
    trim_regions,
    save_residuals,
    trim_regions,
    turn_states,
    merge_equal,
    remove_dead,
)
#: After all.
LAST: tuple[Pass, ...] = (write_out_products, outer_products, remove_dead)


class PassReport(NamedTuple):
    """A pass's report: nodes before and after, seconds."""

    name: str
    before: int
    after: int
    seconds: float


def run_passes(
    graph: Graph,
    pipeline: Iterable[Pass] | None = None,
    check: Callable[[Graph, Graph, str], None] | None = None,
    within: Rematerialiser | None = None,
) -> tuple[Graph, list[PassReport]]:
    """Apply passes in order, in regions too, and verify the graph after each that changed it.

    Parameters
    ----------
    check : called with the graph before, after, and the name of each pass that is not one of this package.
    within : the last pass, if there is a budget of memory.

    Raises
    ------
    CompileError : a pass left an inconsistent graph; the message names it.
    """
    reports = []
    for rewrite in (
        *(default_pipeline(graph) if pipeline is None else map(adapted, pipeline)),
        *(() if within is None else (within,)),
    ):
        given, start = graph, perf_counter()
        whole = rewrite in OUTSIDE or rewrite is within
        graph = rewrite(given) if whole else _inside(rewrite(given), rewrite)
        if graph is not given:
            verify(graph, rewrite.__name__)
            if check is not None and rewrite not in PIPELINE + REGIONS + LAST and rewrite is not within:
                check(given, graph, rewrite.__name__)
        reports.append(PassReport(rewrite.__name__, len(given.nodes), len(graph.nodes), perf_counter() - start))
    return graph, reports


def default_pipeline(graph: Graph) -> tuple[Pass, ...]:
    """The passes for a graph: those of regions only where there are some."""
    return (*PIPELINE, *(REGIONS if any(node.regions for node in graph.nodes) else ()), *LAST)


def _inside(graph: Graph, rewrite: Pass) -> Graph:
    """The graph with a pass applied to all its regions, after it was applied to what is around them."""
    nodes, changed = list(graph.nodes), False
    for i, node in enumerate(nodes):
        if not (inner := node.regions):
            continue
        regions = {name: _inside(rewrite(region), rewrite) for name, region in inner}
        if any(region is not node.attrs[name] for name, region in regions.items()):
            specs = [value.spec for value in node.outputs]
            nodes[i] = Node(node.id, node.op, node.operands, {**node.attrs, **regions}, specs, node.source, node.scope)
            changed = True
    return rebuild(graph, nodes, {}) if changed else graph
