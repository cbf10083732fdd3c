"""What a compiled function did: data that prints well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from static.passes import PassReport

if TYPE_CHECKING:
    from static.graph import Value
    from static.jit import Function
    from static.trace import Captured


class Explanation:
    """Facts about a `Function`; all but `retraces` and `plans` concern its newest trace.

    Attributes
    ----------
    seconds : phase -> seconds.
    passes : per pass its name, nodes before and after, and seconds.
    nodes, edges, depth : of the graph after the passes; `depth` is the number of nodes on its longest path.
    captures : tensors and arrays that the program reads by reference.
    guards : facts on which the trace relies.
    groups : kernels, and why neighbours were not fused.
    retraces : why each trace after the first was made.
    plans : how many sizes have been planned.
    hooks : how many hooks ran while it was traced. What they computed is part of the program; what else they did, such
        as printing or appending to a list, is not repeated.
    """

    def __init__(self, function: Function) -> None:
        import networkx as nx

        newest = function.newest
        dag = newest.graph.dag
        self.nodes, self.edges = dag.number_of_nodes(), dag.number_of_edges()
        self.depth = len(nx.dag_longest_path(dag, default_weight=1))
        self.name, self.traces = function.__name__, len(function.traces)
        self.seconds = dict(newest.seconds)
        self.passes: list[PassReport] = newest.passes
        self.captures = [_describe(source, value) for value, source in newest.captured]
        self.guards = [str(guard) for guard in newest.trace.guards]
        self.guards += [f"argument {i} == {value!r}" for i, value in newest.trace.fixed.items()]
        self.groups: list[str] = [] if newest.program is None else list(newest.program.explain_lines())
        self.retraces = list(function.retraces)
        self.plans = function.plans_made
        self.hooks = newest.trace.hooks

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.traces} trace(s), {self.plans} plan(s)"]
        lines += [f"  {phase}: {seconds * 1e3:.1f} ms" for phase, seconds in self.seconds.items()]
        lines += [f"  pass {p.name}: {p.before} -> {p.after} nodes" for p in self.passes]
        lines.append(f"  graph: {self.nodes} nodes, {self.edges} edges, longest path of {self.depth} nodes")
        if self.hooks:
            lines.append(
                f"  hooks: {self.hooks} ran while tracing; what they computed is recorded, their other effects are not"
            )
        for title in ("captures", "guards", "groups", "retraces"):
            entries = getattr(self, title)
            lines += [f"{title}:" if entries else f"{title}: none", *(f"  {entry}" for entry in entries)]
        return "\n".join(lines)

    __repr__ = __str__


def _describe(source: Captured, value: Value) -> str:
    name = getattr(source.owner, "name", None) or type(source.owner).__name__
    file, line, _ = value.node.source
    return f"{source.kind} {name} {value.spec}, first used at {file}:{line}"
