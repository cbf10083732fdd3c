"""Loops: one node of the tape, whose gradient is a loop again, from the last iteration to the first.

A loop carries values from iteration to iteration, reads a row of each stack of inputs, sees constants, writes a row
of each stack of results, and sums up what is a contribution to a constant or to something captured. That is enough
for its own gradient: cotangents are carried, those of stacked results are rows, those of rows are stacked, those of
constants and captured values are summed, from +0.0, in the order in which iterations run. What the forward loop
carried is read back as rows, its intermediate values are on the tape (eager engine) or computed again (compiled).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from common.autograd.backward_pass import added
from common.control.body import Body, Cotangents, as_tensors, id_of, leaf, owned, payload_of, pulled, tensor_of
from common.control.shape_trace import Abstract, AbstractTrace
from common.core import mode
from common.core.source_lines import user_frame
from common.core.spec import Spec
from common.ops.create.creation import full_, made
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase, spec_of, wrap
from common.tensor.node import Edge, Node

Step = Callable[[list[TensorBase], Body | None], Body]


class Request(NamedTuple):
    """A loop to be run.

    Attributes
    ----------
    name : of the construct.
    step : ``step(leaves, body)``: one iteration on new leaves (carried, rows, constants), and, in a gradient, on the
        `Body` that it differentiates.
    carried, rows, constants : tensors; rows are stacks, read row by row.
    count : number of iterations; one that a trace has found has a `length`, the size of stacks. None if `condition`
        decides.
    condition : ``condition(carried) -> bool tensor``.
    flip : whether rows are visited from the last to the first.
    old : the loop whose gradient this is.
    """

    name: str
    step: Step
    carried: Sequence[TensorBase]
    rows: Sequence[TensorBase]
    constants: Sequence[TensorBase]
    count: Any
    condition: Callable[[list[TensorBase]], TensorBase] | None
    flip: bool
    old: LoopRun | None

    def for_shapes(self) -> Ran:
        """A loop inside something that is traced for its shapes."""
        body = trace_once(self, None if self.old is None else self.old.some)
        count = self.count
        length = 0 if count is None else getattr(count, "length", count)
        stacked = [Abstract(Spec((length, *y.shape), y.dtype)) for y in body.stacked]
        summed = {key: x.payload for key, x in body.summed.items()}
        return Ran([Abstract(spec_of(x)) for x in self.carried], stacked, summed, LoopRun(self, count, [], body))

    def row_edges(self) -> list[Edge]:
        """Where gradients of rows go; those of the old loop follow the new ones."""
        edges = [x.edge for x in self.rows]
        if self.old is not None:
            edges += [*self.old.hidden_edges(), *self.old.row_edges]
        return edges

    def constant_edges(self) -> list[Edge]:
        """Where gradients of constants go; those of the old loop follow the new ones."""
        edges = [x.edge for x in self.constants]
        return edges if self.old is None else [*edges, *self.old.constant_edges]


class Ran(NamedTuple):
    """Payloads of results, and the loop."""

    carried: list[Any]
    stacked: list[Any]
    summed: dict[Hashable, Any]
    loop: LoopRun


class LoopRun:
    """The loop that ran; the saved value of its node.

    Attributes
    ----------
    bodies : per iteration, in the order of execution, None before anything had a gradient; in a trace the only one.
    some : one of them; if there was no iteration, one that was traced for its shapes.
    carried : specs of what is carried.
    row_edges, constant_edges : see `Request`.
    stacked : number of stacked results.
    keys : of summed results.
    engine : what a trace keeps: the values of stacks.
    node : the node that saves this; weakly, because a cycle would keep the memory until the collector comes.
    """

    node: ref[Node]

    def __init__(self, request: Request, count: Any, bodies: list[Body | None], some: Body, engine: Any = None) -> None:
        self.name, self.flip, self.count = request.name, request.flip, count
        self.bodies, self.some, self.engine = bodies, some, engine
        self.carried = [Spec(tuple(x.shape), x.dtype) for x in request.carried]
        self.row_edges, self.constant_edges = request.row_edges(), request.constant_edges()
        self.stacked = len(some.stacked)
        runs = [body for body in bodies if body is not None] or [some]
        self.keys: list[Hashable] = list(dict.fromkeys(key for body in runs for key in body.summed))
        self.captured: list[Edge] = list({id_of(edge): edge for body in runs for edge in body.captured}.values())

    @property
    def counts(self) -> tuple[int, int]:
        """How many inputs are carried, how many are rows."""
        return len(self.carried), len(self.row_edges)

    def hidden_edges(self) -> list[Edge]:
        """Where gradients of carried inputs go, as rows of a loop that reads them back."""
        first = len(self.carried) + self.stacked + len(self.keys)
        return [(self.node(), first + k) if s.dtype.kind == "f" else None for k, s in enumerate(self.carried)]

    def pull(self, g: Sequence[Any]) -> tuple[Any, ...]:
        """Contributions to what the node's edges lead to, by a loop in the other direction."""
        n, m = len(self.carried), len(self.carried) + self.stacked
        finals = [
            None if spec.dtype.kind != "f" else tensor_of(made(full_, shape=spec.shape, value=0.0, dtype=spec.dtype))
            if c is None else tensor_of(c)
            for c, spec in zip(g, self.carried)
        ]  # fmt: skip
        stacked, summed, hidden = g[n:m], g[m : m + len(self.keys)], g[m + len(self.keys) :]
        named = {key: tensor_of(c) for key, c in zip(self.keys, summed) if c is not None}

        def step(leaves: list[TensorBase], body: Body | None) -> Body:
            assert body is not None
            place = iter(leaves)
            cotangents = Cotangents(
                [None if c is None else next(place) for c in finals],
                [None if c is None else next(place) for c in stacked],
                {},
                [None if c is None else next(place) for c in hidden],
            )
            cotangents.summed.update((key, next(place)) for key in named)
            return pulled(body, cotangents, self.counts)

        rows = [tensor_of(c) for c in (*stacked, *hidden) if c is not None]
        request = Request(
            self.name, step, [c for c in finals if c is not None], rows, list(named.values()), self.count, None,
            not self.flip, self,
        )  # fmt: skip
        carried, taken, sums = run_loop(request)
        back = iter(carried)
        out: list[Any] = [next(back) if spec.dtype.kind == "f" else None for spec in self.carried]
        back = iter(taken)
        out += [next(back) if x.requires_grad else None for x in self.some.inputs[n : n + len(self.row_edges)]]
        out += [sums.get(k) for k in range(len(self.constant_edges))]
        out += [sums.get(id_of(edge)) for edge in self.captured]
        return tuple(out if as_tensors() else map(payload_of, out))


class LoopOp:
    """The op of a loop's node."""

    kind = "region"
    saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, name: str, nout: int) -> None:
        self.name, self.nout = name, nout
        self.node_name = "".join(w.capitalize() for w in name.split("_")) + "Backward"

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the rule reads itself; those of the bodies' nodes are looked at when their pass begins."""
        return []

    def backward(self, saved: tuple[Any], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the inputs and to what is captured."""
        (ran,) = saved
        return ran.pull((g,) if self.nout == 1 else g)


def run_loop(request: Request) -> tuple[list[TensorBase], list[TensorBase], dict[Hashable, TensorBase]]:
    """Run a loop by the engine that is at work, and put it on the tape if a gradient may be wanted."""
    return loop_run(request)[:3]


def loop_run(
    request: Request,
) -> tuple[list[TensorBase], list[TensorBase], dict[Hashable, TensorBase], LoopRun]:
    """`run_loop`, and the loop that has run."""
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        pushed: tuple[list[TensorBase], list[TensorBase], dict[Hashable, TensorBase], LoopRun] = level.push(request)
        return pushed
    trace = mode.current_trace()
    ran: Ran = run_eager(request) if trace is None else trace.run_loop(request)
    carried, stacked = [wrap(x) for x in ran.carried], [wrap(x) for x in ran.stacked]
    summed = {key: wrap(x) for key, x in ran.summed.items()}
    loop = ran.loop
    edges = [*(x.edge for x in request.carried), *loop.row_edges, *loop.constant_edges, *loop.captured]
    if mode.is_grad_enabled() and any(edge is not None for edge in edges):
        outputs = [*carried, *stacked, *summed.values()]
        attach(LoopOp(request.name, len(outputs) + len(carried)), edges, loop, outputs)
    return carried, stacked, summed, loop


def attach(op: Any, edges: Sequence[Edge], saved: Any, outputs: Sequence[TensorBase]) -> None:
    """Make results the outputs of one node."""
    node = Node(op, None, tuple(edges), (saved,), None, *user_frame(3))
    saved.node = ref(node)
    for position, x in enumerate(outputs):
        if x.dtype.kind == "f":
            x.grad_fn, x.output_nr, x._requires_grad = node, position, True


def run_eager(request: Request) -> Ran:
    """Run a loop in Python."""
    recording = mode.is_grad_enabled()
    bodies: list[Body | None] = []
    rows = [x.payload for x in request.rows]
    constants = [leaf(x.payload, recording and x.edge is not None) for x in request.constants]
    flags = [recording and x.edge is not None for x in request.rows]
    active = recording and any(
        e is not None for e in (*(x.edge for x in request.carried), *request.row_edges(), *request.constant_edges())
    )
    state = [x.payload for x in request.carried]
    collected: list[list[Any]] = []
    sums: dict[Hashable, Any] = {}
    old, count, unrecorded = request.old, request.count, mode.no_grad()
    done = 0
    while True:
        if request.condition is None:
            if done == count:
                break
        else:
            with unrecorded:
                if not request.condition([leaf(x, False) for x in state]).payload.item():
                    break
        row = count - 1 - done if request.flip and count is not None else done
        previous = None if old is None else old.bodies[count - 1 - done]
        if old is not None and previous is None:
            break  # nothing before has a gradient
        leaves = [leaf(x, recording) for x in state]
        leaves += [leaf(x[row], wanted) for x, wanted in zip(rows, flags)]
        body = request.step([*leaves, *constants], previous)
        active = active or (recording and bool(body.captured))
        bodies.append(body if active else None)
        state = [x.payload for x in body.carried]
        collected.append([x.payload for x in body.stacked])
        if not done and count is not None:  # what does not fit into memory is refused before all rows are computed
            for part in collected[0]:
                np.empty((count, *part.shape), part.dtype)
        for key, x in body.summed.items():
            before = sums.get(key)
            sums[key] = added(np.zeros(x.payload.shape, x.payload.dtype) if before is None else before, x.payload)
        done += 1
    if not collected:
        body = trace_once(request, None if old is None else old.some)
    stacked = [np.zeros((done, *y.shape), y.dtype) for y in body.stacked]
    for done_before, parts in enumerate(collected):
        for out, part in zip(stacked, parts, strict=True):
            out[done - 1 - done_before if request.flip else done_before] = part
    if not done:
        sums = {key: np.zeros(x.shape, x.dtype) for key, x in body.summed.items()}
    carried = [owned(x, body) for x in body.carried] if done else [np.array(x, order="C") for x in state]
    return Ran(carried, stacked, sums, LoopRun(request, done, bodies, body))


def trace_once(request: Request, old: Body | None) -> Body:
    """One iteration, traced for its shapes."""
    trace = mode.current_trace()
    recording = mode.is_grad_enabled()
    abstract = trace if isinstance(trace, AbstractTrace) else AbstractTrace(request.name)
    with mode.activate_trace(abstract), uncounted():
        leaves = [leaf(Abstract(spec_of(x)), recording) for x in request.carried]
        for x in request.rows:
            row = Spec(tuple(x.shape[1:]), x.dtype)
            leaves.append(leaf(Abstract(row), recording and x.edge is not None))
        leaves += [leaf(Abstract(spec_of(x)), recording and x.edge is not None) for x in request.constants]
        if request.condition is not None:
            with mode.no_grad():
                request.condition([leaf(Abstract(spec_of(x)), False) for x in request.carried])
        return request.step(leaves, old)
