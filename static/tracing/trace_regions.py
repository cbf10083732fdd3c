"""Recording control flow: a region is traced once, for any number of runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from common.control.body import Body, payload_of
from common.control.branches import Branches, BranchResults, Choice
from common.control.loop import LoopRun, Ran, Request
from common.core import mode
from common.core.dtypes import int64
from common.core.errors import ArgumentError, TraceError
from common.core.python_numbers import Number
from common.core.sizes import Dim
from common.core.source_lines import locate, user_frame
from common.core.spec import Spec
from common.ops.create.creation import full_
from common.random.draw_counts import note_drawn, uncounted
from common.random.generator import default_generator
from common.tensor.base import TensorBase, spec_of
from common.tensor.leaf import Leaf
from static.graph import Node, Source, Value
from static.graph.regions import LOOP, SWITCH, close, room
from static.graph.side_effects import ACTS
from static.lowering.codegen.bodies_of_numbers import settle_few

if TYPE_CHECKING:
    from static.tracing.recorder import Recorder
    from static.tracing.tracer import Tracer


class Region:
    """A region while it is traced: its nodes take the place of the trace's.

    Parameters
    ----------
    nodes : what it starts with: in a gradient, the nodes of the region that is differentiated.

    Attributes
    ----------
    written : id -> (tensor from outside, its value before, its value after) for state that the region writes.
    """

    def __init__(self, trace: Recorder, name: str, nodes: Sequence[Node] = ()) -> None:
        self.trace, self.name, self.nodes = trace, name, list(nodes)
        self.written: dict[int, tuple[TensorBase, Value, Value]] = {}
        self.first = trace.next_id()
        self._uncounted = uncounted()

    def input(self, spec: Spec) -> Value:
        """A new input."""
        return Node(self.trace.next_id(), None, (), {"name": "input"}, (spec,), source_of(self.trace)).outputs[0]

    def leaf(self, spec: Spec, wanted: bool) -> Tracer:
        """A new input as a tensor."""
        x = self.trace.wrap(self.input(spec))
        x._requires_grad = wanted and spec.dtype.kind == "f"
        return x

    def __enter__(self) -> Region:
        self._outer, self.trace.nodes = self.trace.nodes, self.nodes
        self.trace.regions.append(self)
        self._uncounted.__enter__()
        self._grads = {key: grad for key, (_, grad) in self.trace.grads.items()}
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        trace = self.trace
        trace.nodes = self._outer
        trace.regions.pop()
        self._uncounted.__exit__()
        for x, before, _ in self.written.values():
            trace.restore(x, before)
        changed = [x for key, (x, grad) in trace.grads.items() if key in self._grads and grad is not self._grads[key]]
        changed += [x for key, (x, _) in trace.grads.items() if key not in self._grads and key not in trace.read_grads]
        if changed and kind is None:
            raise TraceError(
                f"{self.name}: a function that it runs sets `.grad` of a tensor of shape {tuple(changed[0].shape)} "
                "from outside, for example by backward(); use grad or value_and_grad, and return the gradients"
            )

    def note_write(self, x: TensorBase, before: Value, after: Value) -> None:
        """A write to `x`, which is state of the loop or the branches if it is state of the program.

        Raises
        ------
        TraceError : `x` is a traced value from outside, an argument of the function, or is differentiated.
        """
        if isinstance(x, Leaf) and not (x.requires_grad and mode.is_grad_enabled()):
            first = self.written[id(x)][1] if id(x) in self.written else before
            self.written[id(x)] = x, first, after
        elif isinstance(x, Leaf) or before.node.id < self.first:
            raise TraceError(
                f"{self.name}: a function that it runs writes to a tensor of shape {tuple(x.shape)} from outside; "
                "return the new value instead"
            )
        elif before.node.op is None:
            raise ArgumentError(
                f"{self.name}: a function that it runs writes to its argument in place; write to a clone() and return "
                "that"
            )


def source_of(trace: Recorder) -> Source:
    """The line that stands for a node: of the rule's op in a backward pass, else the user's."""
    return locate(*user_frame(3)) if trace.origin is None else trace.origin.source


class Counted(NamedTuple):
    """A number of iterations that a run has found: the value, and the size of stacks."""

    value: Value
    length: Any


class Stacks(NamedTuple):
    """Values that a loop keeps for its gradient.

    Attributes
    ----------
    hidden : stacks of what was carried into each iteration.
    node : id of the loop's node.
    rows, constants : values of the operands.
    states : pairs of the value before the loop and the stack of values in it, of state that the body writes.
    """

    node: int
    hidden: list[Value]
    rows: list[Value]
    constants: list[Value]
    states: list[tuple[Value, Value]]


def act(trace: Recorder, kind: str, operands: Sequence[Any], attrs: Any) -> None:
    """Record that something is done, see `common.control.print_assert`."""
    trace.append(ACTS[kind], [trace.payload(x) for x in operands], attrs, (Spec((), int64),), source_of(trace))


def callback(trace: Recorder, call: Any, operands: Sequence[Any], specs: Sequence[Spec]) -> list[Value]:
    """Record that Python is called, see `common.control.callback`."""
    values = [trace.constant(x) if type(x) in (int, float, Number) else trace.payload(x) for x in operands]
    node = trace.append(ACTS["callback"], values, {"call": call}, specs or (Spec((), int64),), source_of(trace))
    return list(node.outputs[: len(specs)])


def run_loop(trace: Recorder, request: Request) -> Ran:
    """Record a loop."""
    recording = mode.is_grad_enabled()
    old = request.old
    before = None if old is None else old.bodies[0]
    stacks: Stacks | None = None if old is None else old.engine
    source = source_of(trace)
    region = Region(trace, request.name, () if before is None else before.raw)
    carried_specs = [Spec(tuple(x.shape), x.dtype) for x in request.carried]
    with region:
        carried: list[TensorBase] = [region.leaf(spec, recording) for spec in carried_specs]
        rows = [region.leaf(_row(x), recording and x.edge is not None) for x in request.rows]
        constants = [region.leaf(spec_of(x), recording and x.edge is not None) for x in request.constants]
        body = request.step([*carried, *rows, *constants], before)
        body.raw = region.nodes
        results = [trace.payload(x) for x in body.carried]
        stacked = [trace.payload(x) for x in body.stacked]
        sums, totals = [], []
        for x in body.summed.values():
            part = trace.payload(x)
            sums.append(region.input(Spec(part.shape, part.dtype)))
            total: Any = sums[-1]
            totals.append(total + part)
        written = list(region.written.values())
    states = [region.input(first.spec) for _, first, _ in written]
    moved = {first.key: x for (_, first, _), x in zip(written, states)}
    carried_in = [x.payload for x in carried]
    row_in = [x.payload for x in rows]
    row_operands = [trace.payload(x) for x in request.rows]
    constant_in = [x.payload for x in constants]
    constant_operands = [trace.payload(x) for x in request.constants]
    states_before: list[tuple[Value, Value]] = []
    if old is not None and before is not None and stacks is not None:
        split = len(old.carried) + len(old.row_edges)
        row_in += [x.payload for x in before.inputs[:split]]
        constant_in += [x.payload for x in before.inputs[split:]]
        row_operands += [*stacks.hidden, *stacks.rows]
        constant_operands += stacks.constants
        states_before = stacks.states
    rows_kept = list(row_operands)
    for first, stack in states_before:
        moved[first.key] = region.input(first.spec)
        row_in.append(moved[first.key])
        row_operands.append(stack)
    hidden = [*carried_in, *states] if recording else []
    carried_operands = [trace.payload(x) for x in request.carried]
    carried_operands += [trace.record(full_, (), {"shape": x.shape, "value": 0.0, "dtype": x.dtype}) for x in sums]
    carried_operands += [first for _, first, _ in written]
    inputs = [*carried_in, *sums, *states, *row_in, *constant_in]
    outputs = [*results, *totals, *(after for _, _, after in written), *stacked, *hidden]
    graph, free = close(body.raw, inputs, outputs, moved, region.first)
    if trace.replays:  # a graph of open sizes is not written again
        settle_few(graph)
    count, counted = request.count, isinstance(request.count, Counted)
    length = count.length if counted else count
    length = trace.dims.settled(length) if isinstance(length, Dim) else length
    condition, tests = _condition(trace, request, carried_specs, [x.spec for x in (*sums, *states)])
    attrs: dict[str, Any] = {
        "body": graph, "carried": len(carried_operands), "rows": len(row_operands),
        "constants": len(constant_operands) + len(free), "backwards": request.flip, "counted": counted,
    }  # fmt: skip
    if condition is not None:
        attrs["condition"] = condition
        length = room(trace.dims, region.first)
    attrs["length"] = length
    if stacks is not None:
        attrs["of"] = stacks.node
    if sums:
        attrs["sums"] = (len(carried), len(carried) + len(sums))
    operands = [
        *([count.value] if counted else []),
        *carried_operands,
        *row_operands,
        *constant_operands,
        *free,
        *tests,
    ]
    specs = [x.spec for x in carried_operands]
    specs = [Spec(x.shape, x.dtype) for x in specs]
    specs += [Spec((length, *x.shape), x.dtype) for x in (*stacked, *hidden)]
    if condition is not None:
        specs.append(Spec((), int64))
    node = trace.append(LOOP, operands, attrs, specs, source)
    values = list(node.outputs)
    if condition is not None:
        count = Counted(values[-1], length)
    n, m = len(carried_specs), len(carried_operands)
    for (x, first, _), value in zip(written, values[n + len(sums) : m]):
        _write(trace, x, first, value)
    summed: dict[Hashable, Any] = dict(zip(body.summed, values[n:]))
    at = m + len(stacked)
    new_states = [(first, v) for (_, first, _), v in zip(written, values[at + n :])] if recording else []
    kept = Stacks(node.id, values[at : at + n], rows_kept, constant_operands, [*new_states, *states_before])
    return Ran(values[:n], values[m:at], summed, LoopRun(request, count, [body], body, kept))


def _write(trace: Recorder, x: TensorBase, before: Value, after: Value) -> None:
    """State holds after a node with regions what these have written; if it counts draws, so many have been drawn."""
    trace.set_elements(x, after)
    if x is default_generator.offset:
        with mode.no_grad():
            drawn: Any = trace.wrap(after)
            note_drawn(drawn - trace.wrap(before))


def _row(x: TensorBase) -> Spec:
    return Spec(tuple(x.shape[1:]), x.dtype)


def _condition(trace: Recorder, request: Request, specs: list[Spec], unread: list[Spec]) -> tuple[Any, list[Value]]:
    """The region that decides whether a loop goes on, and what it reads from outside."""
    if request.condition is None:
        return None, []
    region = Region(trace, request.name)
    with region, mode.no_grad():
        leaves: list[TensorBase] = [region.leaf(spec, False) for spec in specs]
        answer = payload_of(request.condition(leaves))
        rest = [region.input(spec) for spec in unread]
    if region.written:
        raise TraceError(f"{request.name}: its condition writes to a tensor, or draws random numbers; its body may")
    return close(region.nodes, [*(x.payload for x in leaves), *rest], [answer], {})


def run_choice(trace: Recorder, choice: Choice) -> BranchResults:
    """Record branches."""
    recording = mode.is_grad_enabled()
    source = source_of(trace)
    bodies: list[Body] = []
    regions: list[Region] = []
    old = choice.old
    for i in range(choice.count):
        before = None if old is None else old.bodies[i]
        region = Region(trace, choice.name, () if before is None else before.raw)
        with region:
            leaves: list[TensorBase] = [
                region.leaf(spec_of(x), recording and x.edge is not None) for x in choice.operands
            ]
            body = choice.step(i, leaves, before)
            body.raw = region.nodes
        bodies.append(body)
        regions.append(region)
    kept = Branches(choice, choice.index, bodies)
    states = {key: entry for region in regions for key, entry in region.written.items()}
    values = [trace.payload(x) for x in choice.operands]
    if old is not None:
        values += old.engine
    closed: list[Any] = []
    for region, body in zip(regions, bodies):
        with region:
            if choice.settle is not None:
                choice.settle(len(closed), body)
            outputs = [trace.payload(x) for x in body.carried]
            for key in kept.keys:
                spec = kept.missing(key)
                zeros = {"shape": spec.shape, "value": 0.0, "dtype": spec.dtype}
                given = body.summed.get(key)
                outputs.append(trace.record(full_, (), zeros) if given is None else trace.payload(given))
        outputs += [region.written.get(key, (x, first, first))[2] for key, (x, first, _) in states.items()]
        inputs = [x.payload for x in body.inputs]
        closed.append((inputs, *close(region.nodes, inputs, outputs, {}, region.first)))
    specs = [Spec(v.shape, v.dtype) for v in closed[0][1].outputs]
    places: dict[Any, int] = {}
    operands: list[Value] = [trace.payload(choice.index)]
    attrs: dict[str, Any] = {}
    for i, (inputs, graph, free) in enumerate(closed):
        uses = []
        for value in (*values[: len(inputs)], *free):
            if value.key not in places:
                places[value.key] = len(operands) - 1
                operands.append(value)
            uses.append(places[value.key])
        attrs[f"branch{i}"], attrs[f"uses{i}"] = graph, tuple(uses)
    node = trace.append(SWITCH, operands, attrs, specs, source)
    results = list(node.outputs)
    kept.engine = values
    n = kept.results
    summed: dict[Hashable, Any] = dict(zip(kept.keys, results[n:]))
    for (x, first, _), value in zip(states.values(), results[n + len(kept.keys) :]):
        _write(trace, x, first, value)
    return BranchResults(results[:n], summed, kept)
