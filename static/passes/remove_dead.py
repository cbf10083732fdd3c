"""Dead code elimination."""

from __future__ import annotations

from static.graph import Graph, rebuild
from static.graph.side_effects import acts


def remove_dead(graph: Graph) -> Graph:
    """node without a live use -> nothing; acts stay, and inputs, they are the calling convention."""
    live = {value.node.id for value in graph.results}
    kept = []
    for node in reversed(graph.nodes):
        if node.op is None or node.id in live or acts(node):
            kept.append(node)
            live.update(value.node.id for value in node.values)
    return rebuild(graph, reversed(kept), {})
