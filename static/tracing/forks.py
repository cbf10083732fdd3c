"""The common beginning of paths, run once by a function that changes its path.

Each path is a program of its own from the first line on (`static.tracing.paths`), which costs a call that stays on the
last path nothing. A call that leaves it would compute the common beginning twice. So where that is costly, and the path
has changed more than once, calls begin with a third program: the common beginning up to the first decision on which the
paths part. It gives what was decided on, and what the rest of the paths needs of it: a minimum cut, as between the
halves of a call with gradients (`static.graph.partition`). The rest of each path takes these values in place of
computing them. No bit depends on it. After some calls in a row on one path its whole program is tried first again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from common.dim import Dim
from common.dim import key as size_key
from static.acts import Mismatch, acts
from static.graph import Graph, Node, Value
from static.graph.partition import continued, least
from static.graph.recompute import nanoseconds
from static.graph.regions import NeedsRoom
from static.lowering.options import Options
from static.passes import run_passes
from static.running.interpreter import Interpreted

if TYPE_CHECKING:
    from static.tracing.traced import Traced

WORTHWHILE = 50_000.0
"""Nanoseconds that a common beginning takes, from which on it is a program of its own: two calls cost some 10 us."""

STEADY = 16
"""Calls in a row on one path after which its whole program is tried first again."""


class Part:
    """A graph as a program, planned for the sizes of each call."""

    def __init__(self, graph: Graph, options: Options, compiled: bool) -> None:
        self.graph, self._options, self._compiled = graph, options, compiled
        self._program: Any = None
        self._plans: dict[Any, Any] = {}

    def plan(self, env: Mapping[Any, int]) -> Any:
        """The program for sizes."""
        key = tuple(env.items())
        if key not in self._plans:
            if not self._compiled:
                return Interpreted(self.graph, env)
            if self._program is None:
                from static.lowering.program import compile_graph

                self._program = compile_graph(self.graph, *self._options)
            self._plans[key] = self._program.plan(env)
        return self._plans[key]


class Fork:
    """Paths that begin alike.

    Parameters
    ----------
    at : the number of the decision on which they part.
    first : the common beginning; its outputs are what was decided on, and values.
    rests : per path its rest, which takes some of the values behind its inputs, and which of them.

    Attributes
    ----------
    active : whether calls begin with the common beginning.
    """

    def __init__(self, at: int, first: Part, rests: dict[Traced, tuple[Part, list[int]]]) -> None:
        self.at, self.first, self.rests = at, first, rests
        self.active, self._in_a_row = False, 0
        self._before: Traced | None = None
        self._latest: dict[int, Traced] = {}
        for traced in rests:
            self._latest.setdefault(traced.decisions[at].bits, traced)

    def begins(self, path: Traced) -> None:
        """From now on calls begin with the common beginning; the last one was on `path`."""
        self.active, self._in_a_row = True, 0
        self.note(path)

    def note(self, path: Traced) -> None:
        """A call has taken a path."""
        self._latest[path.decisions[self.at].bits] = path

    def run(self, leaves: Sequence[Any]) -> tuple[Traced, Rest] | None:
        """Run the common beginning; the path to take then, as far as it is known, and the rest of it as a plan."""
        some = next(iter(self.rests))
        inputs = [*(leaves[i] for i in some.positions), *(x.payload for x in some.state)]
        try:
            bits, *values = self.first.plan(some.env(leaves))(*inputs[: len(self.first.graph.inputs)])
        except Mismatch:  # another path branches off before
            self.active = False
            return None
        except NeedsRoom as need:
            some.make_room(need)
            self.active = False
            return None
        path = self._latest.get(int(np.asarray(bits).view(np.int64)))
        if path is None or path.state_objection() is not None:
            self.active = False
            return None
        self._in_a_row = self._in_a_row + 1 if path is self._before else 0
        self._before = path
        self.active = self._in_a_row < STEADY
        return path, Rest(self, path, path.env(leaves), values)


class Rest:
    """The rest of a path for one call, as a plan of the whole of it.

    Parameters
    ----------
    values : what the common beginning has given.
    """

    outdated = False

    def __init__(self, fork: Fork, path: Traced, env: Mapping[Any, int], values: Sequence[np.ndarray]) -> None:
        self.fork, self.path, self.env, self.values = fork, path, dict(env), values

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """The path's results; `inputs` are those of its whole program."""
        part, used = self.fork.rests[self.path]
        results: list[np.ndarray] = part.plan(self.env)(*inputs, *(self.values[i] for i in used))
        return results

    def other(self, path: Traced) -> Rest | None:
        """The rest of another path, which branches off later; None if that has been traced since."""
        if path not in self.fork.rests:
            return None
        self.fork.note(path)
        return Rest(self.fork, path, {**self.env, **path.rooms}, self.values)


def fork_of(traces: Sequence[Traced], options: Options) -> Fork | None:
    """The fork of paths; None if they have no common beginning that it pays to run once."""
    if len(traces) < 2:
        return None
    some, at = traces[0], 0
    while all(len(x.decisions) > at and x.decisions[at] == some.decisions[at] for x in traces):
        at += 1
    if any(len(x.decisions) <= at for x in traces):
        return None
    limits = [next(n.id for n in x.raw.nodes if n.name == "expect" and n.attrs["decision"] == at) for x in traces]
    limit = limits[0]
    own = _until(some.raw, limit)
    if any(
        _forms(_until(x.raw, n)) != _forms(own) or _read(x, n) != _read(some, limit) for x, n in zip(traces, limits)
    ):
        return None
    if any(acts(node) and node.name != "expect" for node in own):
        return None
    found: dict[Any, Value] = {}
    for x in traces:
        found.update((v.key, v) for v in _needed(x.graph, limit))
    made = {v.key: v for node in own for v in node.outputs}
    values = [made[key] for key in found if key in made]
    rests = {}
    for x in traces:
        nodes = [n for n in x.graph.nodes if n.id > limit or n.op is None or not acts(n)]
        rest, used = continued(Graph(x.graph.inputs, nodes, x.graph.outputs, x.graph.effects), values)
        if _cost(x.graph) - _cost(rest) < WORTHWHILE:
            return None
        rests[x] = Part(rest, options, x.compiled), used
    decided = next(n for n in some.raw.nodes if n.id == limit).operands[0]
    inputs = [v for v in some.raw.inputs if v.node.id < limit]
    first, _ = run_passes(Graph(inputs, own, [decided, *values], []))
    return Fork(at, Part(first, options, some.compiled), rests)


def _until(graph: Graph, limit: int) -> list[Node]:
    return [node for node in graph.nodes if node.id < limit]


def _read(traced: Traced, limit: int) -> list[int]:
    """What a trace has captured up to a node, by identity."""
    return [id(source.owner) for value, source in traced.captured if value.node.id < limit]


def _forms(nodes: Sequence[Node]) -> list[Any]:
    """What nodes compute, in a form that can be compared."""
    return [
        (n.id, n.name, [_form(x) for x in n.operands], _form(n.attrs), [_form(tuple(v.spec)) for v in n.outputs])
        for n in nodes
    ]


def _form(x: Any) -> Any:
    if type(x) is Value:
        return x.key
    if isinstance(x, Dim):
        return "size", size_key(x)
    if isinstance(x, Graph):
        return _forms(x.nodes), [v.key for v in (*x.inputs, *x.outputs)]
    if isinstance(x, dict):
        return {name: _form(y) for name, y in x.items()}
    if isinstance(x, (tuple, list)):
        return [_form(y) for y in x]
    return type(x), repr(x)


def _needed(graph: Graph, limit: int) -> list[Value]:
    """The values to hand over: what what follows needs of what was computed before."""
    late = [node for node in graph.nodes if node.id > limit and node.op is not None]
    uses = [v for node in late for v in node.values if v.node.id < limit]
    uses += [v for v in graph.results if v.node.id < limit]
    return [v for v in least(graph, uses) if v.node.op is not None]


def _cost(graph: Graph) -> float:
    return sum(nanoseconds(node) for node in graph.nodes if node.op is not None and node.op.kind != "act")
