"""How a graph looks in networkx: one schema for the recorded graph and the compiled one.

A `networkx.DiGraph` with an edge from each operand's node to the node that reads it.

- A node of it is an int, and ascending ids are program order, which is a topological order. Data: "node", the
  engine's own record, which knows everything; "op", the op's name, "input" for what no op made.
- An edge has data "operands": the positions at which the operand is read, ascending; and "results": which of the
  operand's results is read at each of them, from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx


def digraph(
    records: Iterable[tuple[int, Any, str]], operands: Iterable[tuple[int, Sequence[tuple[int, int] | None]]]
) -> nx.DiGraph:
    """A graph of this module's schema.

    Parameters
    ----------
    records : id, record and op name of every node, in program order.
    operands : id of a node, and per operand the id of the node that makes it and the number of the result, None for
        what is no node.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from((key, {"node": record, "op": op}) for key, record, op in records)
    for key, sources in operands:
        for position, source in enumerate(sources):
            if source is None:
                continue
            maker, result = source
            if graph.has_edge(maker, key):
                data = graph.edges[maker, key]
                data.update(operands=(*data["operands"], position), results=(*data["results"], result))
            else:
                graph.add_edge(maker, key, operands=(position,), results=(result,))
    return graph
