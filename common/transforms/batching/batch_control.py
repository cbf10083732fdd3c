"""Branches and loops of mapped functions.

A loop of one example is a loop of all of them outside, whose iterations run the body on `Batched` values: it is
recorded, compiled and differentiated there, and the tape of the mapped function differentiates it as it does any loop.
What is carried differs between examples if anything that it depends on does. Where the condition does, the loop goes on
until no example does, and an example that is done keeps what it has.

So are branches of which all examples take the same: one of them runs. Where examples differ in that, all branches run,
and each example takes its results from one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from common.control.body import Body, leaf
from common.control.branches import Branches, BranchResults, Choice, choice_run
from common.control.loop import LoopRun, Ran, Request, loop_run
from common.control.shape_trace import Abstract
from common.core import mode
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.ops.create.creation import zeros
from common.tensor.base import TensorBase, spec_of
from common.tensor.create import lift
from common.tensor.node import next_number
from common.transforms.batching import batch_operands
from common.transforms.batching.batched import Batched
from common.transforms.batching.bodies_of_all import BodyOfAll, body_of, for_shapes, keep, outside_of
from common.transforms.batching.some_examples import BranchOfSome


def run_loop(trace: Any, request: Request) -> Ran:
    """Run a loop."""
    return _LoopOfAll(trace, request).run()


def run_choice(trace: Any, choice: Choice) -> BranchResults:
    """Run the branch that all examples take; or all branches, and choose among their results."""
    recording = mode.is_grad_enabled()
    old, shared = outside_of(trace, choice.old)
    index = trace.payload(choice.index)
    some = choice.old is None and type(index) is Batched and index.mapped
    if old is not None or not (some or choice.old is not None or trace.level is not None):
        return _ChoiceOfAll(trace, choice, old, shared).run()
    bodies, reads = [], []
    for i in range(choice.count):
        reads.append(BranchOfSome(REGISTRY["eq"](index, i), trace.outside) if some else None)
        with trace.branch(reads[-1]), body_of(trace, choice.name, choice.old, True):
            leaves = [leaf(trace.payload(x), recording and x.edge is not None) for x in choice.operands]
            if choice.old is None:
                trace.bodies[-1][2].extend(leaves)
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


class _ChoiceOfAll:
    """Branches of which all examples take the same, as those of all of them, or the gradient of such.

    Parameters
    ----------
    trace : the call of `vmap`.
    choice : of one example.
    old : the branches of all examples whose gradient this is.
    shared : whether they are from outside.
    """

    def __init__(self, trace: Any, choice: Choice, old: Branches | None, shared: bool) -> None:
        self.trace, self.choice, self.old, self.shared = trace, choice, old, shared
        self.operands = [trace.payload(x) for x in choice.operands]
        #: Results and contributions that differ between examples in one of the branches.
        self.differ: list[bool] = []
        self.summed: dict[Hashable, bool] = {}
        self._settle()

    def _settle(self) -> None:
        """Find out what differs between examples, by branches that are traced for their shapes."""
        with for_shapes(self.trace, self.choice.name) as outer:
            for i in range(self.choice.count):
                with self.trace.outside:
                    outside = [outer.wrap(Abstract(spec_of(x.value))) for x in self.operands]
                body = self._body(i, outside, None if self.old is None else self.old.bodies[i])
                carried = [self.trace.payload(x).mapped for x in body.carried]
                self.differ = [a or b for a, b in zip(self.differ or carried, carried)]
                for key, x in body.summed.items():
                    self.summed[key] = self.summed.get(key, False) or self.trace.payload(x).mapped

    def _body(self, i: int, outside: Sequence[TensorBase], old: Any) -> Body:
        """A branch of one example over tensors of all of them."""
        recording = mode.is_grad_enabled()
        with body_of(self.trace, self.choice.name, old, False):
            leaves = [
                leaf(Batched(value, x.mapped, self.trace), recording and y.edge is not None)
                for value, x, y in zip(outside, self.operands, self.choice.operands, strict=True)
            ]
            return self.choice.step(i, leaves, old if old is None or self.shared else old.example)

    def _of_all(self, x: Any, differs: bool) -> Any:
        return batch_operands.spread(x, self.trace.count) if differs else x.value

    def step(self, i: int, leaves: list[TensorBase], old: Body | None) -> Body:
        """A branch of all examples, run outside."""
        trace = self.trace
        body = BodyOfAll([*leaves, *([] if old is None else old.inputs)], next_number() if old is None else old.start)
        with trace.reopened():
            body.example = self._body(i, leaves, old)
            carried = [trace.payload(x) for x in body.example.carried]
            summed = {key: trace.payload(x) for key, x in body.example.summed.items()}
        body.carried = [self._of_all(x, differs) for x, differs in zip(carried, self.differ, strict=True)]
        body.summed = {key: self._of_all(x, self.summed[key]) for key, x in summed.items()}
        return body

    def settle(self, i: int, body: Any) -> None:
        """Give numbers among the results the dtypes that the other branches ask for."""
        trace, before = self.trace, list(body.example.carried)
        with trace.reopened():
            assert self.choice.settle is not None
            self.choice.settle(i, body.example)
            carried = [trace.payload(x) for x in body.example.carried]
        for k, (x, was) in enumerate(zip(body.example.carried, before, strict=True)):
            if x is not was:
                body.carried[k] = self._of_all(carried[k], self.differ[k])

    def run(self) -> BranchResults:
        """Run a branch outside; the results, and the branches of one example."""
        trace, choice, old = self.trace, self.choice, self.old
        index = trace.payload(choice.index) if old is None else old.index
        settle = None if choice.settle is None else self.settle
        operands = [x.value for x in self.operands]
        with trace.outside:
            outside = Choice(
                choice.name, getattr(index, "value", index), choice.count, self.step, operands, old, settle
            )  # fmt: skip
            results, summed, ran = choice_run(outside)
        of_all: list[Any] = list(ran.bodies)
        bodies = [body.example for body in of_all]
        return BranchResults(
            [Batched(x, differs, trace) for x, differs in zip(results, self.differ, strict=True)],
            {key: Batched(x, self.summed[key], trace) for key, x in summed.items()},
            Branches(choice, choice.index, bodies, (trace, ran)),
        )


def _untied(tie: TensorBase, results: Any, stacked: Any, summed: Any, loop: Any) -> Any:
    """The results of a loop without the history that a constant alone has given them; what else it reads stays."""
    node = loop.node()
    if node is None:
        return results, stacked, summed
    loop.constant_edges = [None if edge is tie else edge for edge in loop.constant_edges]
    node.edges = tuple(None if edge is tie else edge for edge in node.edges)
    if any(edge is not None for edge in node.edges):
        return results, stacked, summed
    plain = ([x.detach() for x in part] for part in (results, stacked))
    return *plain, {key: x.detach() for key, x in summed.items()}


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
        self.old, self.shared = outside_of(trace, request.old)
        self.differ = [x.mapped for x in self.carried]
        self.chosen = self.differentiated = False
        self._settle()

    def _settle(self) -> None:
        """Find out what differs between examples, by iterations that are traced for their shapes."""
        trace = self.trace
        with for_shapes(trace, self.request.name):
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
            edges = [*(x.edge for x in self.request.carried), *self.request.row_edges(), *self.request.constant_edges()]
            self.differentiated = self.recording and any(e is not None for e in (*edges, *body.captured))

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
        with body_of(self.trace, self.request.name, old, self.chosen):
            leaves = self._leaves(outside)
            body = self.request.step(leaves, old if old is None or self.shared else old.example)
        payload = self.trace.payload
        self.kept = [payload(new) is payload(was) for new, was in zip(body.carried, leaves)]
        if self.chosen and self.request.condition is not None:
            with mode.no_grad():
                goes_on = self.request.condition(leaves[: len(self.carried)])
            keep(body, goes_on, self.kept)
        return body

    def step(self, leaves: list[TensorBase], old: Body | None) -> Body:
        """One iteration of all examples, run outside."""
        trace, count = self.trace, self.trace.count
        body = self._new_body(leaves, old)
        with trace.reopened():
            inner = self._body(leaves, old)
            stacked = [trace.payload(x) for x in inner.stacked]
            summed = {key: trace.payload(x) for key, x in inner.summed.items()}
        body.stacked = [batch_operands.spread(x, count) for x in stacked]
        body.summed = {key: batch_operands.spread(x, count) for key, x in summed.items()}
        body.example, body.loop = inner, self
        self.carry(body)
        return body

    def carry(self, body: BodyOfAll) -> None:
        """What the example of a body carries on, as it is for all."""
        with self.trace.reopened():
            carried = [self.trace.payload(x) for x in body.example.carried]
        body.carried = [
            batch_operands.spread(x, self.trace.count) if d else x.value
            for x, d in zip(carried, self.differ, strict=True)
        ]

    def _new_body(self, leaves: list[TensorBase], old: Body | None) -> BodyOfAll:
        """A body with inputs as `common.control.body.pulled` has them: those of the body that it differentiates too."""
        if old is None or self.old is None:
            return BodyOfAll(leaves, next_number())
        own, known = len(self.carried) + len(self.rows), sum(self.old.counts)
        return BodyOfAll([*leaves[:own], *old.inputs[:known], *leaves[own:], *old.inputs[known:]], old.start)

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
            carried = [
                batch_operands.spread(x, count) if d else x.value
                for x, d in zip(self.carried, self.differ, strict=True)
            ]
            rows = [batch_operands.swapped(x.value) if x.mapped else x.value for x in self.rows]
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
                results, stacked, summed = _untied(constants[-1], *ran)
            stacked = [batch_operands.swapped(x) for x in stacked]
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
