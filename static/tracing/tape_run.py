"""A recorded graph, run again inside a trace: op by op on the tape, or as it is where nothing is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.control.body import Body
from common.control.branches import Choice, run_choice
from common.control.loop import Request, loop_run
from common.core import mode
from common.core.dispatch import apply
from common.core.errors import TraceError
from common.core.op import Op
from common.core.sizes import resolve
from common.core.spec import Spec
from common.tensor.base import TensorBase
from common.tensor.node import next_number
from common.tensor.read_saved import with_edge
from static.graph import Graph, Node, Value
from static.graph.regions import LoopParts, branches, close
from static.graph.side_effects import gives
from static.tracing.recorder import Recorder
from static.tracing.trace_regions import Counted

Key = tuple[int, int]


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

    @property
    def elsewhere(self) -> bool:
        """Whether nodes with regions cannot be copied: the trace is that of `vmap`, or tangents are carried on."""
        return not isinstance(self.trace, Recorder) or mode.tangents_around() is not None

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
            if not (wanted or self.elsewhere) or node.id in self.quiet:
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
        hidden = {} if self.elsewhere else parts.hidden()
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
            count = _counted(self.trace, operands[0], count)
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


def _counted(trace: Any, x: Any, length: Any) -> Any:
    """How often a loop runs whose number of iterations was data, around calls of `vmap`, which do not change it."""
    value = trace.payload(x)
    if trace.outside is None:
        return Counted(value, length)
    with trace.outside:
        around = mode.current_trace()
        return int(value.value) if around is None else _counted(around, value.value, length)
