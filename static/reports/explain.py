"""The report of a compiled function: data that prints well."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from static.passes import PassReport
from static.passes.rematerialise import Repeated
from static.reports import costs
from static.reports.paths import Path, paths

if TYPE_CHECKING:
    import networkx as nx

    from static.graph import Value
    from static.tracing.captured import Captured

SHOWN_REASONS = 6


class Inspected(Protocol):
    """A compiled function, as far as its explanations need it; see `static.jit.shown.TraceReports`."""

    __name__: str
    retraces: list[str]
    plans_made: int
    passes: Any

    @property
    def traces(self) -> Any:
        """Its traces, in order."""
        ...

    @property
    def newest(self) -> Any:
        """The newest trace."""
        ...

    @property
    def newest_plan(self) -> Any:
        """The plan that was made last for it."""
        ...

    @property
    def compiler(self) -> str:
        """The compiler of its kernels."""
        ...

    def explain(self) -> Explanation:
        """Explain tracing, rewriting, fusion and compilation."""
        ...


class Explanation:
    """Facts about a `Function`; all but `retraces`, `traces` and `plans` concern its newest trace and plan.

    Attributes
    ----------
    traces, plans : how many structures have been traced, and how many sizes planned.
    seconds : phase -> seconds: trace, passes, lower (to kernel source), kernels (to machine code, or from disk; those
        that the process already had take none).
    passes : per pass its name, nodes before and after, and seconds.
    nodes, edges, depth : of the graph after the passes; `depth` is the number of nodes on its longest path.
    width : how many nodes could run side by side at most: the largest topological generation.
    necks : nodes after the inputs through which all results are computed (dominators), as names with the user's line.
    captures : tensors and arrays that the program reads by reference.
    guards : facts on which the trace relies.
    operations : items of work after views were folded away; each is in one kernel.
    kernels : per kernel call a `static.reports.costs.KernelCost`: what it computes, bytes, flops, origin, and why
        neighbours were not fused.
    kept : values that calls hand to the backward half, and their bytes; empty if calls have no gradient.
    arena : per temporary a `static.reports.costs.Piece`: where it lies in memory, and when it lives.
    arena_bytes, unshared_bytes : size of the arena, and what its temporaries would take without sharing memory.
    arena_without, recomputed : with a budget of memory, size of the arena if nothing were computed again, and per node
        that is, a `static.passes.rematerialise.Repeated`: what and where it is, its bytes, about how long it takes.
    compiler : of the kernels, "llvm" or "numba".
    machine_code : how many distinct kernels were "compiled" and how many came from the "disk" in this process.
    retraces : why each trace after the first was made.
    paths : per path of Python's decisions on traced values a `static.reports.paths.Path`.
    donations : per array of an argument in `donate_argnums` what became of its memory.
    hooks : how many hooks ran while it was traced. What they computed is part of the program; what else they did, such
        as printing or appending to a list, is not repeated.
    """

    def __init__(self, function: Inspected) -> None:
        import networkx as nx

        newest, plan = function.newest, function.newest_plan
        dag = newest.graph.dag
        self.nodes, self.edges = dag.number_of_nodes(), dag.number_of_edges()
        self.depth = len(nx.dag_longest_path(dag, default_weight=1))
        self.width = max(map(len, nx.topological_generations(dag)), default=0)
        self.necks = _necks(dag)
        self.name, self.traces = function.__name__, len(function.traces)
        self.seconds = dict(newest.seconds)
        self.passes: list[PassReport] = newest.passes
        self.captures = [_describe(source, value) for value, source in newest.captured]
        self.guards = [str(guard) for guard in newest.trace.guards]
        self.guards += [f"argument {i} == {value!r}" for i, value in newest.trace.fixed.items()]
        program = newest.program if plan is None else plan.program.lowered
        self.operations = 0 if program is None else len(program.work.items)
        self.kernels: list[costs.KernelCost] = []
        self.kept = [] if newest.op is None or plan is None else newest.op.describe_kept(plan.env)
        self.arena: list[costs.Piece] = []
        self.arena_bytes = self.unshared_bytes = 0
        if plan is not None:
            self.kernels = costs.kernels(program, plan.layout, plan.env)
            self.arena, self.arena_bytes = costs.arena(plan), plan.arena_bytes
            self.unshared_bytes = sum(piece.nbytes for piece in self.arena)
        within = newest.within
        self.arena_without = self.arena_bytes if within is None else within.before
        self.recomputed: list[Repeated] = [] if within is None else list(within.repeated)
        origins = {kernel.name: kernel.origin for kernel in self.kernels if kernel.origin is not None}
        self.compiler = function.compiler
        self.machine_code = dict(Counter(origin.place for origin in origins.values()))
        self.seconds["kernels"] = sum(o.seconds for o in origins.values() if o.start >= newest.start)
        self.retraces = list(function.retraces)
        self.plans = function.plans_made
        self.hooks = newest.trace.hooks
        self.paths = paths(function.traces)
        self.donations = list(newest.donations)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.traces} trace(s), {self.plans} plan(s)"]
        lines += [f"  {phase}: {seconds * 1e3:.1f} ms" for phase, seconds in self.seconds.items()]
        lines += [f"  pass {p.name}: {p.before} -> {p.after} nodes" for p in self.passes]
        lines.append(
            f"  graph: {self.nodes} nodes, {self.edges} edges, longest path of {self.depth} nodes, "
            f"at most {self.width} side by side"
        )
        lines += [f"  donated: {text}" for text in self.donations]
        if self.hooks:
            lines.append(
                f"  hooks: {self.hooks} ran while tracing; what they computed is recorded, their other effects are not"
            )
        for title in ("captures", "guards"):
            lines += _section(title, getattr(self, title))
        lines += _section("kernels", self._kernel_lines())
        if self.kept:
            lines += _section("kept for the backward half", [f"{name}: {nbytes} bytes" for name, nbytes in self.kept])
        if self.recomputed:
            lines += _section("computed again, to stay within the budget of memory", self._recomputed_lines())
        lines += _section("arena", [self._arena_line(), *map(str, self.arena)] if self.arena else [])
        if self.paths:
            lines += _section("paths", [line for path in self.paths for line in _path_lines(path)])
        return "\n".join([*lines, *_section("retraces", self.retraces)])

    __repr__ = __str__

    def _kernel_lines(self) -> list[str]:
        if not self.kernels:
            return []
        distinct = len({kernel.name for kernel in self.kernels})
        told = ", ".join(f"{count} {place}" for place, count in self.machine_code.items())
        reads, writes, flops = (sum(getattr(k, name) for k in self.kernels) for name in ("reads", "writes", "flops"))
        lines = [
            f"{len(self.kernels)} for {self.operations} operations, {distinct} distinct ({told}), by {self.compiler}",
            f"reads {costs.amount(reads, 'B')}, writes {costs.amount(writes, 'B')}, {costs.amount(flops, 'flop')}",
        ]
        for kernel in self.kernels:
            lines.append(f"  {kernel}")
            lines += [f"    {told}" for told in (*kernel.reused, *kernel.refused[:SHOWN_REASONS])]
        return lines

    def _recomputed_lines(self) -> list[str]:
        """The arena with and without, then each place in the user's program, the costliest first."""
        places: dict[str, list[Repeated]] = {}
        for node in self.recomputed:
            places.setdefault(node.name, []).append(node)
        cost = {name: sum(node.nanoseconds for node in nodes) for name, nodes in places.items()}
        told = [
            f"{name}: {len(places[name])} times, {sum(node.nbytes for node in places[name])} bytes, "
            f"about {cost[name] / 1e3:.1f} us"
            for name in sorted(places, key=lambda name: -cost[name])
        ]
        more = [f"... {len(told) - SHOWN_REASONS} more"] if len(told) > SHOWN_REASONS else []
        about = f"about {sum(cost.values()) / 1e3:.1f} us for an arena of {self.arena_bytes} bytes, not"
        return [f"{about} {self.arena_without}", *told[:SHOWN_REASONS], *more]

    def _arena_line(self) -> str:
        return f"{self.arena_bytes} bytes for {len(self.arena)} temporaries, {self.unshared_bytes} without sharing"


def _necks(dag: nx.DiGraph) -> list[str]:
    """The nodes without which no result is computed from the inputs."""
    import networkx as nx

    flow = nx.DiGraph(dag.edges)
    flow.add_edges_from(("inputs", key) for key, op in dag.nodes(data="op") if op == "input")
    flow.add_edges_from((key, "results") for key, _ in dag.graph["outputs"])
    if "inputs" not in flow or "results" not in flow or not nx.has_path(flow, "inputs", "results"):
        return []
    above = nx.immediate_dominators(flow, "inputs")
    found, key = [], above["results"]
    while key != "inputs":
        if dag.nodes[key]["op"] != "input":
            file, line, _ = dag.nodes[key]["source"]
            found.append(f"{dag.nodes[key]['op']} at {file}:{line}")
        key = above[key]
    return found[::-1]


def _path_lines(path: Path) -> list[str]:
    """The decisions that the path before does not have, each a step further in, and how often it ran."""
    new = [f"{'  ' * i}{path.decisions[i]}" for i in range(path.shared, len(path.decisions))]
    return [*new, f"{'  ' * len(path.decisions)}ran {path.runs} times"]


def _section(title: str, entries: list[str]) -> list[str]:
    return [f"{title}:" if entries else f"{title}: none", *(f"  {entry}" for entry in entries)]


def _describe(source: Captured, value: Value) -> str:
    name = getattr(source.owner, "name", None) or type(source.owner).__name__
    file, line, _ = value.node.source
    return f"{source.kind} {name} {value.spec}, first used at {file}:{line}"
