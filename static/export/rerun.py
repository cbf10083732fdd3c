"""A recorded program as a function: run op by op on the tape, in a trace, it is compiled and differentiated as any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.control.body import Body
from common.control.branches import Choice, run_choice
from common.control.loop import Request, loop_run
from common.core import mode
from common.core.dispatch import apply
from common.core.errors import ArgumentError, GradientError, StateError, TraceError
from common.core.op import Op
from common.core.polynomials import evaluate, render
from common.core.sizes import resolve
from common.core.spec import Spec
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase
from common.tensor.node import next_number
from common.tensor.read_saved import with_edge
from static.export.recorded import RecordedCall
from static.graph import Graph, Node, Value
from static.graph.regions import LoopParts, branches, close, room, rooms
from static.graph.side_effects import gives
from static.tracing.captured import Captured
from static.tracing.trace_regions import Counted

Key = tuple[int, int]


class Rerun:
    """A function that does in a trace what a program says.

    Parameters
    ----------
    programs : recorded calls; the first that fits the arguments runs.
    """

    def __init__(self, programs: Sequence[RecordedCall]) -> None:
        self.programs = tuple(programs)
        self.__name__ = self.__qualname__ = self.programs[0].name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The program's results for traced arguments.

        Raises
        ------
        ArgumentError : it was recorded for other arguments, or for other sizes.
        StateError : it was recorded while a `.grad` was None, or was not.
        """
        leaves, structure = flatten((args, kwargs))
        trace: Any = mode.current_trace()
        leaves = [_taken(x, trace) for x in leaves]
        reasons = []
        for program in self.programs:
            reason = _objection(program, structure, leaves, trace)
            if reason is None:
                return run_program(program, leaves, TapeRun(trace, program.quiet))
            reasons.append(reason)
        raise ArgumentError(f"{self.__name__}: {reasons[0]}" + (f" ({len(reasons)} programs)" if reasons[1:] else ""))


def _taken(x: Any, trace: Any) -> Any:
    """Data among the arguments of a call inside another function as tensors."""
    if isinstance(x, np.ndarray):
        return trace.wrap(trace.payload(x))
    return trace.wrap(trace.constant(x)) if type(x) in (int, float) else x


def _objection(program: RecordedCall, structure: Any, leaves: Sequence[Any], trace: Any) -> str | None:
    """Why a program does not serve a call; what it finds out of sizes are guards of the trace."""
    if structure != program.structure:
        return f"the arguments are nested as {structure}, the program was made for {program.structure}"
    sizes: dict[Any, Any] = {}
    for p, (i, value) in enumerate(zip(program.positions, program.graph.inputs, strict=False)):
        x, spec = leaves[i], value.spec
        if not isinstance(x, TensorBase):
            return f"argument {i} is {x!r}, the program was made for {spec}"
        if x.dtype != spec.dtype or x.ndim != spec.ndim or x.payload.spec.weak != spec.weak:
            return f"argument {i} is {x.payload.spec}, the program was made for {spec}"
        for axis, (n, wanted) in enumerate(zip(x.shape, spec.shape, strict=True)):
            if type(wanted) is int and n != wanted:
                return f"size {axis} of argument {i} is {n}, the program was made for {wanted}"
            sizes["in", p, axis] = n
    data = set(program.positions)
    for i, wanted in enumerate(program.leaves):
        if i not in data and (type(leaves[i]) is not type(wanted) or leaves[i] != wanted):
            return f"argument {i} is {leaves[i]!r}, the program was made for {wanted!r}"
    for i, number in program.fixed.items():
        if repr(trace.known_number(leaves[i].payload)) != repr(number):
            return f"argument {i} is another number than {number!r}, which the program was made for"
    for guard in program.guards:
        a, b = evaluate(guard.left, sizes), evaluate(guard.right, sizes)
        if (a == b if guard.relation == "==" else a < b) is not guard.holds:
            relation = "equal" if guard.relation == "==" else "less than"
            told = f"{render(guard.left)} is {relation if guard.holds else 'not ' + relation} {render(guard.right)}"
            if guard.relation == "==" and not guard.holds:
                told = f"{render(guard.left)} is not {render(guard.right)}"
            return f"the program was made for sizes of which {told}"
    return None


def run_program(program: RecordedCall, leaves: Sequence[Any], run: TapeRun) -> Any:
    """TapeRun a program on traced arguments; what it returns.

    Raises
    ------
    StateError : it was recorded while a `.grad` was None, or was not.
    """
    graph, trace = program.graph, run.trace
    if program.custom and mode.is_grad_enabled():
        known = [leaves[i] for i in program.positions] + [source.owner for source in program.captured]
        if any(isinstance(x, TensorBase) and x.edge is not None for x in known):
            raise GradientError(
                f"{program.name} has gradients that are Python functions of its own ({', '.join(program.custom)}), "
                "which are no part of its graph: call it under no_grad()"
            )
    for x, was_none in program.without_grad:
        if (x.grad is None) is not was_none:
            state = "None" if was_none else "set"
            raise StateError(
                f"{program.name} was recorded while the gradient of a tensor of shape {tuple(x.shape)} was {state}, "
                "and it is not now: " + ("call zero_grad() before" if was_none else "record it again")
            )
    given = [leaves[i] for i in program.positions]
    given += [_held(source) for source in program.captured]
    for p, x in enumerate(given[: len(program.positions)]):
        run.env.update({("in", p, axis): n for axis, n in enumerate(x.shape)})
    run.env.update({atom: room(trace.dims, trace.next_id()) for atom in rooms(graph)})
    run.nodes(graph, given)
    for effect in graph.effects:
        target = given[graph.inputs.index(effect.state)]
        trace.set_elements(target, run.values[effect.value.key])
    outputs = [run.tensor(value) for value in graph.outputs]
    first = len(outputs) - len(program.targets)
    for x, grad in zip(program.targets, outputs[first:], strict=True):
        trace.set_grad(x, grad)
    for x in program.cleared:
        trace.set_grad(x, None)
    results, places = list(program.results), iter(program.places)
    for i, x in enumerate(results):
        if x is None:
            results[i] = outputs[next(places)]
    return unflatten(program.out_structure, results)


def _held(source: Captured) -> Any:
    """The owner of a captured input: a tensor, its gradient as the trace sees it, or an array."""
    return source.owner.grad if source.kind == "grad" else source.owner


class TapeRun:
    """A run of a graph inside a trace.

    Attributes
    ----------
    values : by key, tensors.
    env : sizes of the trace by the atoms of the program's.
    ids : id of a node that is recorded as it is -> its id in the trace, and of what it is made of.
    """

    def __init__(self, trace: Any, quiet: frozenset[int]) -> None:
        self.trace, self.quiet = trace, quiet
        self.values: dict[Key, Any] = {}
        self.env: dict[Any, Any] = {}
        self.ids: dict[tuple[int, int], int] = {}

    def tensor(self, value: Value) -> TensorBase:
        """The tensor that a value is."""
        x = self.values[value.key]
        return x if isinstance(x, TensorBase) else self.trace.wrap(self.trace.payload(x))

    def nodes(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """TapeRun a graph, or a region; its outputs."""
        self.values.update((v.key, x) for v, x in zip(graph.inputs, given, strict=True))
        for node in graph.nodes:
            if node.op is not None:
                results = self.node(node)
                self.values.update((v.key, x) for v, x in zip(node.outputs, results, strict=True))
        return [self.tensor(value) for value in graph.outputs]

    def node(self, node: Node) -> Sequence[Any]:
        """TapeRun a node; its results."""
        operands = [self.values[x.key] if type(x) is Value else x for x in node.operands]
        assert node.op is not None
        kind, name = node.op.kind, node.name
        if kind == "control":
            wanted = mode.is_grad_enabled() and any(isinstance(x, TensorBase) and x.edge is not None for x in operands)
            if not wanted or node.id in self.quiet:
                return self.as_it_is(node, operands)
            return self.switch(node, operands) if name == "switch" else self.loop(node, operands)
        if kind == "act":
            if gives(node):
                specs = [self.spec(v) for v in node.outputs]
                return [self.trace.wrap(x) for x in self.trace.callback(node.attrs["call"], operands, specs)]
            if name == "expect":
                raise TraceError("a program of which Python decides the path is not recorded")
            self.trace.act(name, operands, node.attrs)
            return [None]
        attrs = {key: resolve(x, self.env) for key, x in node.attrs.items()}
        if node.op.literal:
            return [self.trace.wrap(self.trace.constant(attrs["value"]))]
        if node.id in self.quiet:
            with mode.no_grad():
                made = apply(node.op, operands, attrs)
        else:
            made = apply(node.op, operands, attrs) if operands else self.trace.wrap(
                self.trace.record(node.op, (), attrs)
            )  # fmt: skip
        return made if isinstance(made, tuple) else [made]

    def spec(self, value: Value) -> Spec:
        """The spec of a value, with sizes of this trace."""
        return Spec(resolve(tuple(value.shape), self.env), value.dtype, value.spec.weak)

    # ---------------------------------------------------------------- regions
    def as_it_is(self, node: Node, operands: Sequence[Any]) -> list[Any]:
        """Record a node with regions that is not differentiated."""
        values = [self.trace.payload(x) for x in operands]
        attrs, specs = self.attributes(node), [self.spec(v) for v in node.outputs]
        made = self.trace.append(node.op, values, attrs, specs, self.trace._source())
        self.ids[node.id, 0] = made.id
        return [self.trace.wrap(value) for value in made.outputs]

    def attributes(self, node: Node) -> dict[str, Any]:
        """Attributes with sizes and ids of this trace."""
        attrs: dict[str, Any] = {
            key: self.region(x) if isinstance(x, Graph) else resolve(x, self.env) for key, x in node.attrs.items()
        }
        if node.regions and "of" in attrs:  # on the tape, a loop has other nodes than those that its gradient has again
            first = self.ids.get((attrs.pop("of"), 0))
            attrs.update({} if first is None else {"of": first})
        return attrs

    def region(self, graph: Graph) -> Graph:
        """A region as it is; nodes that two regions share are the same in both."""
        new: dict[Key, Any] = {}
        nodes: list[Node] = []
        for old in graph.nodes:
            operands = tuple(new[v.key] if type(v) is Value else v for v in old.operands)
            if isinstance(old.op, Op) and old.op.forward is not None:
                made = self.composite(old, operands)
                outputs = [self.trace.payload(x) for x in made[1]]
                nodes += made[0]
            else:
                specs = [self.spec(v) for v in old.outputs]
                number = old.id if old.id < 0 else self.ids.setdefault((old.id, 0), self.trace.next_id())
                nodes.append(Node(number, old.op, operands, self.attributes(old), specs, old.source, old.scope))
                outputs = [*nodes[-1].outputs]
            new.update((v.key, x) for v, x in zip(old.outputs, outputs, strict=True))
        closed, _ = close(nodes, [new[v.key] for v in graph.inputs], [new[v.key] for v in graph.outputs], {})
        return closed

    def composite(self, old: Node, operands: Sequence[Any]) -> tuple[list[Node], Sequence[Any]]:
        """The nodes that an op is made of, and its results."""
        trace, given = self.trace, [self.trace.wrap(x) if type(x) is Value else x for x in operands]
        outer, trace.nodes = trace.nodes, []
        try:
            with mode.no_grad():
                made = trace.record(old.op, given, {key: resolve(x, self.env) for key, x in old.attrs.items()})
        finally:
            inner, trace.nodes = trace.nodes, outer
        for i, node in enumerate(inner):
            node.id, node.source = self.ids.setdefault((old.id, i + 1), node.id), old.source
        return inner, made if isinstance(made, tuple) else (made,)

    def inside(self, region: Graph, given: Sequence[Any]) -> list[Any]:
        """TapeRun a region."""
        inner = type(self)(self.trace, self.quiet)
        inner.env = self.env
        return inner.nodes(region, given)

    def loop(self, node: Node, operands: Sequence[Any]) -> list[Any]:
        """TapeRun a loop on the tape."""
        parts = LoopParts(node)
        body_graph, sums = parts.without_sums()
        constants = [operands[i] for i in parts.constants]
        tests = [operands[i] for i in parts.tests]
        own = [k for k in range(parts.n) if k not in sums]
        hidden = parts.hidden()
        kept = [i for i in parts.stacked if i not in hidden]

        def step(leaves: list[TensorBase], _: Body | None) -> Body:
            body = Body(leaves, next_number())
            outputs = self.inside(body_graph, [*leaves, *constants])
            body.carried = [outputs[i] for i in own]
            body.stacked = [outputs[i] for i in kept]
            body.summed = {i: outputs[i] for i in sums}
            return body

        def holds(leaves: list[TensorBase]) -> TensorBase:
            assert parts.condition is not None
            return self.inside(parts.condition, [*leaves, *tests])[0]

        given, rows = [self.leaf(operands[parts.carried[k]]) for k in own], [self.leaf(operands[i]) for i in parts.rows]
        condition = None if parts.condition is None else holds
        count = None if condition else resolve(parts.length, self.env)
        if parts.counted:
            count = Counted(self.trace.payload(operands[0]), count)
        carried, stacked, summed, ran = loop_run(
            Request("loop", step, given, rows, [], count, condition, parts.backwards, None)
        )  # fmt: skip
        results: list[Any] = [None] * len(node.outputs)
        if condition is not None:
            self.env[parts.room], results[-1] = ran.count.length, self.trace.wrap(ran.count.value)
        for i, x in (*zip(own, carried, strict=True), *zip(kept, stacked, strict=True), *summed.items()):
            results[i] = x  # type: ignore[call-overload]
        edges = ran.hidden_edges() if hasattr(ran, "node") else [None] * len(own)
        for i, k in hidden.items():  # their gradients are added last, as on the tape that was recorded
            results[i] = with_edge(ran.engine.hidden[own.index(k)], edges[own.index(k)])
        return results

    def switch(self, node: Node, operands: Sequence[Any]) -> list[Any]:
        """TapeRun branches on the tape."""
        regions = branches(node)
        uses = [read for _, read in regions]
        shared = next((i for i, read in enumerate(zip(*uses, strict=False)) if len(set(read)) > 1), min(map(len, uses)))

        def step(i: int, leaves: list[TensorBase], _: Body | None) -> Body:
            body = Body(leaves, next_number())
            body.carried = self.inside(regions[i][0], [*leaves, *(operands[1 + at] for at in uses[i][shared:])])
            return body

        given = [self.leaf(operands[1 + at]) for at in uses[0][:shared]]
        carried, _ = run_choice(Choice("switch", self.leaf(operands[0]), len(regions), step, given, None, None))
        return carried

    def leaf(self, x: Any) -> TensorBase:
        """An operand as a tensor."""
        return x if isinstance(x, TensorBase) else self.trace.wrap(self.trace.payload(x))
