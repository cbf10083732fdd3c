"""Branches: one node of the tape, whose gradient is a choice between the gradients of the branches.

Every branch has the same inputs. A contribution that one branch gives, and another does not, is +0.0 where the other
runs; what no branch gives is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from common.control.body import Body, Cotangents, as_tensors, id_of, leaf, owned, payload_of, pulled, tensor_of
from common.control.loop import LoopOp, attach
from common.control.shape_trace import Abstract, AbstractTrace
from common.core import mode
from common.core.spec import Spec
from common.ops.create.creation import full_, made
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase, spec_of, wrap
from common.tensor.node import Edge, Node

Step = Callable[[int, list[TensorBase], Body | None], Body]


@dataclass(frozen=True, slots=True)
class Choice:
    """Branches of which one is to be run.

    Attributes
    ----------
    name : of the construct.
    index : 0-d int64 tensor in range; an int in a gradient.
    count : number of branches.
    step : ``step(i, leaves, body)``: branch i on new leaves, and, in a gradient, on the `Body` it differentiates.
    operands : tensors.
    old : the branches whose gradient this is.
    settle : ``settle(i, body)``, where results are recorded and all branches have been run or traced: gives Python
        numbers among the results of branch i the dtype that the other branches ask for.
    """

    name: str
    index: Any
    count: int
    step: Step
    operands: Sequence[TensorBase]
    old: Branches | None
    settle: Callable[[int, Body], None] | None = None

    def for_shapes(self) -> BranchResults:
        """Branches inside something that is traced for its shapes."""
        bodies = [trace_branch(self, i) for i in range(self.count)]
        if self.settle is not None:
            self.settle(0, bodies[0])
        branches = Branches(self, self.index, bodies)
        summed = {key: Abstract(branches.missing(key)) for key in branches.keys}
        return BranchResults([x.payload for x in bodies[0].carried], summed, branches)

    def edges(self) -> list[Edge]:
        """Where gradients of operands go; those of the old branches follow the new ones."""
        edges = [x.edge for x in self.operands]
        return edges if self.old is None else [*edges, *self.old.edges]


class BranchResults(NamedTuple):
    """Payloads of results, and the branches."""

    results: list[Any]
    summed: dict[Hashable, Any]
    branches: Branches


class Branches:
    """The branches of a call, one of which ran; the saved value of their node.

    Attributes
    ----------
    bodies : per branch; those that did not run are traced for their shapes.
    index : which one ran: an int, a tensor in a trace.
    edges : of operands.
    keys : of results that are contributions.
    """

    node: Node

    def __init__(self, choice: Choice, index: Any, bodies: list[Body], engine: Any = None) -> None:
        self.name, self.index, self.bodies, self.engine = choice.name, index, bodies, engine
        self.edges = choice.edges()
        self.results = len(bodies[0].carried)
        self.keys: list[Hashable] = list(dict.fromkeys(key for body in bodies for key in body.summed))
        self.captured: list[Edge] = list({id_of(edge): edge for body in bodies for edge in body.captured}.values())

    def missing(self, key: Hashable) -> Spec:
        """The spec of a contribution that not every branch gives."""
        return next(spec_of(body.summed[key].payload) for body in self.bodies if key in body.summed)

    def pull(self, g: Sequence[Any]) -> tuple[Any, ...]:
        """Contributions to what the node's edges lead to, by the gradient of the branch that ran."""
        given = [c if c is None else tensor_of(c) for c in g[: self.results]]
        named = {key: tensor_of(c) for key, c in zip(self.keys, g[self.results :]) if c is not None}

        def step(i: int, leaves: list[TensorBase], body: Body | None) -> Body:
            assert body is not None
            place = iter(leaves)
            carried = [None if c is None else next(place) for c in given]
            cotangents = Cotangents(carried, [], {key: next(place) for key in named}, [])
            return pulled(body, cotangents, (0, 0))

        operands = [*(c for c in given if c is not None), *named.values()]
        choice = Choice(self.name, self.index, len(self.bodies), step, operands, self)
        _, sums = run_choice(choice)
        out = [sums.get(k) for k in range(len(self.edges))] + [sums.get(id_of(edge)) for edge in self.captured]
        return tuple(out if as_tensors() else map(payload_of, out))


def run_choice(choice: Choice) -> tuple[list[TensorBase], dict[Hashable, TensorBase]]:
    """Run one of several branches by the engine at work; put it on the tape if a gradient may be wanted."""
    return choice_run(choice)[:2]


def choice_run(choice: Choice) -> tuple[list[TensorBase], dict[Hashable, TensorBase], Branches]:
    """`run_choice`, and the branches that have run."""
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        pushed: tuple[list[TensorBase], dict[Hashable, TensorBase], Branches] = level.push(choice)
        return pushed
    trace = mode.current_trace()
    chosen: BranchResults = run_eager(choice) if trace is None else trace.run_choice(choice)
    results, branches = [wrap(x) for x in chosen.results], chosen.branches
    summed = {key: wrap(x) for key, x in chosen.summed.items()}
    edges = [*branches.edges, *branches.captured]
    if mode.is_grad_enabled() and any(edge is not None for edge in edges):
        outputs = [*results, *summed.values()]
        attach(LoopOp(choice.name, len(outputs)), edges, branches, outputs)
    return results, summed, branches


def zeros(spec: Spec) -> Any:
    """The payload of zeros."""
    return payload_of(made(full_, shape=spec.shape, value=0.0, dtype=spec.dtype))


def run_eager(choice: Choice) -> BranchResults:
    """Run a branch in Python, and trace the others for their shapes."""
    taken = choice.index if isinstance(choice.index, int) else int(choice.index.payload.item())
    recording = mode.is_grad_enabled()
    bodies = []
    for i in range(choice.count):
        if i == taken:
            leaves = [leaf(x.payload, recording and x.edge is not None) for x in choice.operands]
            bodies.append(choice.step(i, leaves, None if choice.old is None else choice.old.bodies[i]))
        else:
            bodies.append(trace_branch(choice, i))
    if choice.settle is not None:
        choice.settle(taken, bodies[taken])
    branches = Branches(choice, taken, bodies)
    body = bodies[taken]
    summed = {
        key: owned(body.summed[key], body) if key in body.summed else zeros(branches.missing(key))
        for key in branches.keys
    }
    return BranchResults([owned(x, body) for x in body.carried], summed, branches)


def trace_branch(choice: Choice, i: int) -> Body:
    """A branch, traced for its shapes."""
    trace = mode.current_trace()
    recording = mode.is_grad_enabled()
    abstract = trace if isinstance(trace, AbstractTrace) else AbstractTrace(choice.name)
    with mode.activate_trace(abstract), uncounted():
        leaves = [leaf(Abstract(spec_of(x)), recording and x.edge is not None) for x in choice.operands]
        return choice.step(i, leaves, None if choice.old is None else choice.old.bodies[i])
