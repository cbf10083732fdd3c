"""Branches and loops of mapped functions.

A loop of one example is a loop of all of them outside, whose iterations run the body on `Batched` values: it is
recorded, compiled and differentiated there, and the tape of the mapped function differentiates it as it does any loop.
What is carried differs between examples if anything that it depends on does. Where the condition does, the loop goes on
until no example does, and an example that is done keeps what it has.

Branches all run, and each example takes its results from one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.control.body import Body, leaf
from common.control.branches import Branches, BranchResults, Choice, choice_run
from common.control.loop import LoopRun, Ran, Request, loop_run
from common.control.shape_trace import Abstract, AbstractTrace
from common.core import mode
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.ops.create.creation import zeros
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase, spec_of
from common.tensor.create import lift
from common.tensor.node import next_number
from common.transforms.batching import batch_rules as rules
from common.transforms.batching.batched import Batched
from common.transforms.batching.some_examples import BranchOfSome


def run_loop(trace: Any, request: Request) -> Ran:
    """Run a loop."""
    return _LoopOfAll(trace, request).run()


def _outside(trace: Any, old: Any) -> tuple[Any, bool]:
    """The loop or the branches of all examples behind those of one; and whether they are from outside themselves."""
    if old is None:
        return None, False
    ours = type(old.engine) is tuple and old.engine[0] is trace
    return (old.engine[1], False) if ours else (old, True)


def run_choice(trace: Any, choice: Choice) -> BranchResults:
    """Run all branches, and choose among their results."""
    recording = mode.is_grad_enabled()
    if choice.old is not None and _outside(trace, choice.old)[1]:
        return _pulled_outside(trace, choice, recording)
    index = trace.payload(choice.index)
    some = choice.old is None and type(index) is Batched and index.mapped
    bodies, reads = [], []
    for i in range(choice.count):
        reads.append(BranchOfSome(REGISTRY["eq"](index, i), trace.outside) if some else None)
        with trace.branch(reads[-1]):
            leaves = [leaf(trace.payload(x), recording and x.edge is not None) for x in choice.operands]
            bodies.append(choice.step(i, leaves, None if choice.old is None else choice.old.bodies[i]))
    for i, body in enumerate(bodies):
        if choice.settle is not None:
            choice.settle(i, body)
    branches = Branches(choice, choice.index, bodies, (trace, None))

    def chosen(values: Sequence[Any]) -> Any:
        origins = [x if branch is None else branch.origin(x) for x, branch in zip(values, reads, strict=True)]
        if all(x.value is origins[0].value for x in origins):
            return origins[0]  # all branches hand the same value through
        y = values[0]
        for i, x in enumerate(values[1:], 1):
            y = REGISTRY["where"](REGISTRY["eq"](index, i), x, y)
        return y

    def contribution(body: Body, key: Any) -> Any:
        if key in body.summed:
            return trace.payload(body.summed[key])
        spec = branches.missing(key)
        return trace.payload(lift(zeros(spec.shape, dtype=spec.dtype)))

    results = [chosen([trace.payload(x) for x in column]) for column in zip(*(b.carried for b in bodies), strict=True)]
    return BranchResults(
        results, {key: chosen([contribution(body, key) for body in bodies]) for key in branches.keys}, branches
    )


def _pulled_outside(trace: Any, choice: Choice, recording: bool) -> BranchResults:
    """The gradient, for cotangents of examples, of branches from outside: that of the branch that ran there."""
    operands = [trace.payload(x) for x in choice.operands]

    def step(i: int, leaves: list[TensorBase], old: Body | None) -> Body:
        body = _BodyOfAll([*leaves, *([] if old is None else old.inputs)], next_number() if old is None else old.start)
        with trace.reopened():
            inside = [
                leaf(Batched(value, x.mapped, trace), recording and y.edge is not None)
                for value, x, y in zip(leaves, operands, choice.operands, strict=True)
            ]
            body.example = choice.step(i, inside, old)
            found = {key: trace.payload(x) for key, x in body.example.summed.items()}
        body.summed = {key: rules.spread(x, trace.count) for key, x in found.items()}
        return body

    with trace.outside:
        index = choice.index if isinstance(choice.index, int) else trace.payload(choice.index).value
        outside = Choice(choice.name, index, choice.count, step, [x.value for x in operands], choice.old)
        _, summed, ran = choice_run(outside)
    bodies: list[Any] = [getattr(body, "example", body) for body in ran.bodies]
    branches = Branches(choice, choice.index, bodies, (trace, ran))
    return BranchResults([], {key: Batched(x, True, trace) for key, x in summed.items()}, branches)


class _BodyOfAll(Body):
    """One iteration of all examples.

    Attributes
    ----------
    example : the iteration as it is for one.
    """

    __slots__ = ("example",)

    example: Body


class _LoopOfAll:
    """A loop of one example, as one of all of them.

    Parameters
    ----------
    trace : the call of `vmap`.
    request : of one example.
    """

    def __init__(self, trace: Any, request: Request) -> None:
        self.trace, self.request = trace, request
        self.carried = [trace.payload(x) for x in request.carried]
        self.rows = [trace.payload(x) for x in request.rows]
        self.constants = [trace.payload(x) for x in request.constants]
        self.recording = mode.is_grad_enabled()
        #: The loop of all examples whose gradient this is; it may be one from outside, of which examples share nothing.
        self.old, self.shared = _outside(trace, request.old)
        self.differ = [x.mapped for x in self.carried]
        self.chosen = self.differentiated = False
        self._settle()

    def _settle(self) -> None:
        """Find out what differs between examples, by iterations that are traced for their shapes."""
        trace, outer = self.trace, self.trace.outer
        trace.outer = outer if isinstance(outer, AbstractTrace) else AbstractTrace(self.request.name)
        try:
            with mode.activate_trace(trace), uncounted():
                while True:
                    before = list(self.differ)
                    body = self._body(self._abstract(), None if self.old is None else self.old.some)
                    self.differ = [a or trace.payload(x).mapped for a, x in zip(self.differ, body.carried, strict=True)]
                    if self.request.condition is not None:
                        with mode.no_grad():
                            leaves = self._leaves(self._abstract()[: len(self.carried)])
                            self.chosen = trace.payload(self.request.condition(leaves)).mapped
                    if self.chosen:  # an example that is done keeps what it has, unless all hand it through
                        self.differ = [a or not kept for a, kept in zip(self.differ, self.kept, strict=True)]
                    if before == self.differ:
                        break
                edges = [x.edge for x in (*self.request.carried, *self.request.rows, *self.request.constants)]
                self.differentiated = self.recording and any(e is not None for e in (*edges, *body.captured))
        finally:
            trace.outer = outer

    def _abstract(self) -> list[TensorBase]:
        """Tensors outside that have shapes only, like those that an iteration is given."""
        with self.trace.outside:
            specs = [spec_of(x.value) for x in (*self.carried, *self.rows, *self.constants)]
            n = len(self.carried)
            for i, (x, differs) in enumerate(zip(self.carried, self.differ, strict=True)):
                if differs and not x.mapped:
                    specs[i] = Spec((self.trace.count, *specs[i].shape), specs[i].dtype)
            for i, x in enumerate(self.rows):
                shape = specs[n + i].shape
                specs[n + i] = Spec((shape[0], *shape[2:]) if x.mapped else shape[1:], specs[n + i].dtype)
            outer: Any = self.trace.outer
            return [outer.wrap(Abstract(spec)) for spec in specs]

    def _leaves(self, outside: Sequence[TensorBase]) -> list[TensorBase]:
        """Leaves of one example over tensors of all of them."""
        x = self.request
        flags = [*self.differ, *(p.mapped for p in self.rows), *(p.mapped for p in self.constants)]
        wanted = [True] * len(self.carried) + [y.edge is not None for y in (*x.rows, *x.constants)]
        return [
            leaf(Batched(value, differs, self.trace), self.recording and want)
            for value, differs, want in zip(outside, flags, wanted)
        ]

    def _body(self, outside: Sequence[TensorBase], old: Any) -> Body:
        """One iteration of one example."""
        leaves = self._leaves(outside)
        body = self.request.step(leaves, old if old is None or self.shared else old.example)
        payload = self.trace.payload
        self.kept = [payload(new) is payload(was) for new, was in zip(body.carried, leaves)]
        if self.chosen and self.request.condition is not None:
            with mode.no_grad():
                goes_on = self.request.condition(leaves[: len(self.carried)])
            body.carried = [
                was if kept else REGISTRY["where"](goes_on, new, was)
                for new, was, kept in zip(body.carried, leaves, self.kept)
            ]
        return body

    def step(self, leaves: list[TensorBase], old: Body | None) -> Body:
        """One iteration of all examples, run outside."""
        trace, count = self.trace, self.trace.count
        body = self._new_body(leaves, old)
        with trace.reopened():
            inner = self._body(leaves, old)
            carried = [trace.payload(x) for x in inner.carried]
            stacked = [trace.payload(x) for x in inner.stacked]
            summed = {key: trace.payload(x) for key, x in inner.summed.items()}
        body.carried = [rules.spread(x, count) if d else x.value for x, d in zip(carried, self.differ, strict=True)]
        body.stacked = [rules.spread(x, count) for x in stacked]
        body.summed = {key: rules.spread(x, count) for key, x in summed.items()}
        body.example = inner
        return body

    def _new_body(self, leaves: list[TensorBase], old: Body | None) -> _BodyOfAll:
        """A body with inputs as `common.control.body.pulled` has them: those of the body that it differentiates too."""
        if old is None or self.old is None:
            return _BodyOfAll(leaves, next_number())
        own, known = len(self.carried) + len(self.rows), sum(self.old.counts)
        return _BodyOfAll([*leaves[:own], *old.inputs[:known], *leaves[own:], *old.inputs[known:]], old.start)

    def condition(self, leaves: list[TensorBase]) -> TensorBase:
        """Whether an example goes on."""
        assert self.request.condition is not None
        with self.trace.reopened():
            answer = self.trace.payload(self.request.condition(self._leaves(leaves)))
        if not answer.mapped:
            return answer.value
        return REGISTRY["any"](answer.value, dim=(0,), keepdim=False)

    def run(self) -> Ran:
        """Run the loop outside; its results, and the loop of one example that has run."""
        trace, request, count = self.trace, self.request, self.trace.count
        with trace.outside:
            carried = [rules.spread(x, count) if d else x.value for x, d in zip(self.carried, self.differ, strict=True)]
            rows = [rules.swapped(x.value) if x.mapped else x.value for x in self.rows]
            constants = [x.value for x in self.constants]
            tied = self.differentiated and not any(x._requires_grad for x in (*carried, *rows, *constants))
            if tied:  # iterations are kept where something outside is differentiated
                constants.append(lift(zeros(())).requires_grad_())
            outside = Request(
                request.name, self.step, carried, rows, constants, request.count,
                None if request.condition is None else self.condition, request.flip, self.old,
            )  # fmt: skip
            ran: Any = loop_run(outside)
            results, stacked, summed, loop = ran
            if tied:
                results, stacked = ([x.detach() for x in part] for part in (results, stacked))
                summed = {key: x.detach() for key, x in summed.items()}
            stacked = [rules.swapped(x) for x in stacked]
        bodies = [None if body is None else body.example for body in loop.bodies]
        example = LoopRun(request, loop.count, bodies, loop.some.example, (trace, loop))
        return Ran(
            [
                own if kept else Batched(x, d, trace)
                for own, kept, x, d in zip(self.carried, self.kept, results, self.differ, strict=True)
            ],
            [Batched(x, True, trace) for x in stacked],
            {key: Batched(x, True, trace) for key, x in summed.items()},
            example,
        )
