"""Passes over networkx: a user's function from DAG to DAG as a pass, and each pass as such a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from common.core.errors import CompileError
from static.graph import Graph

if TYPE_CHECKING:
    import networkx as nx

#: A rewrite of a graph that keeps every bit.
Pass = Callable[[Graph], Graph]


def on_dag(rewrite: Callable[[nx.DiGraph], nx.DiGraph]) -> Pass:
    """A function from a networkx DAG to one as a pass, for ``static.function(passes=[...])``.

    Parameters
    ----------
    rewrite : gets a DAG of its own, with the data that `static.graph.dag` lists, and may change and return it. In
        `passes` this wrapper may be left out if the parameter is annotated as an ``nx.DiGraph``.

    Examples
    --------
    >>> import numpy as np, static
    >>> from static.passes import on_dag
    >>> @on_dag
    ... def swap(dag):
    ...     for node in [i for i, op in dag.nodes(data="op") if op == "mul"]:
    ...         for _, _, data in dag.in_edges(node, data=True):
    ...             data["operands"] = tuple(1 - i for i in data["operands"])
    ...         numbers = dag.nodes[node]["numbers"]
    ...         dag.nodes[node]["numbers"] = {1 - i: x for i, x in numbers.items()}
    ...     return dag
    >>> f = static.function(lambda x: x * 2.0, passes=[swap])
    >>> f(np.ones(3, np.float32))
    tensor([2., 2., 2.])
    >>> print(f.newest.graph.nodes[-1])
    %1: float32[arg0.shape[0]=3] = mul(2.0, %0)
    """

    @functools.wraps(rewrite)
    def on_graph(graph: Graph) -> Graph:
        from static.graph.dag import graph_of

        made: Any = rewrite(graph.dag)
        if made is None:
            raise CompileError(f"the pass {on_graph.__name__} returns None, not the DAG")
        return graph_of(made, f"after {on_graph.__name__}")

    return on_graph


def from_graph(rewrite: Pass) -> Callable[[nx.DiGraph], nx.DiGraph]:
    """A pass of this package as a function from DAG to DAG.

    Examples
    --------
    >>> import numpy as np, static
    >>> from static.passes import from_graph, merge_equal
    >>> dag = static.trace(lambda x: x.exp() + x.exp(), np.ones(3, np.float32))
    >>> [op for _, op in dag.nodes(data="op")]
    ['input', 'exp', 'exp', 'add']
    >>> [op for _, op in from_graph(merge_equal)(dag).nodes(data="op")]
    ['input', 'exp', 'add']
    """

    @functools.wraps(rewrite)
    def over_dag(dag: nx.DiGraph) -> nx.DiGraph:
        from static.graph.dag import graph_of

        made = rewrite(graph_of(dag, f"{rewrite.__name__}()", derive=False)).dag
        for name in dag.graph.keys() - made.graph.keys():
            made.graph[name] = dag.graph[name]
        for key in made:
            made.nodes[key].update({k: x for k, x in dag.nodes[key].items() if k not in made.nodes[key]})
        return made

    return over_dag


def adapted(rewrite: Callable[..., Any]) -> Pass:
    """A pass that a user gives: as it is, or wrapped if it says by its annotation that it takes a DAG."""
    notes = {k: x for k, x in getattr(rewrite, "__annotations__", {}).items() if k != "return"}
    first = next(iter(notes.values()), None)
    name = first if isinstance(first, str) else getattr(first, "__name__", "")
    return on_dag(rewrite) if name.rpartition(".")[2] == "DiGraph" else rewrite
