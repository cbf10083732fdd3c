"""Traces that go on: with the gradients of the recorded ops, the gradients of these, and so on.

The tape of a traced program is kept. Where a call of the compiled program is differentiated in a way that nobody knew
when it was traced (a gradient that is to be differentiated itself; results of which only some have a cotangent), the
trace is opened again behind the program, and the backward pass is recorded there, by the code that the eager engine
runs (`common.autograd.region`). What comes out is a program of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from common.autograd.backward_pass import backward_pass, collect
from common.autograd.region import Recorded, captured_edges, pull
from common.core import mode
from common.core.errors import GradientError
from common.core.locks import make_lock
from common.core.spec import Spec
from common.tensor.base import TensorBase
from common.tensor.node import Edge
from static.graph import Graph, Node, Value
from static.graph.region_edit import Made, replace_nodes
from static.graph.side_effects import acts, gives
from static.graph.verify import verify
from static.tracing.assumptions import Facts
from static.tracing.spec_cache import Derived
from static.tracing.tracer import Tracer

if TYPE_CHECKING:
    from static.tracing.captured import Captured
    from static.tracing.trace import Trace

#: Held while a trace is open again, and where that must not be: sizes may be equal there that are not elsewhere.
going_on = make_lock()


class Stage(NamedTuple):
    """A trace up to some point, to be differentiated.

    Attributes
    ----------
    state : what the trace was then, see `pause`.
    renamed : which sizes are known to be equal.
    region : what is on the tape.
    specs : of its results.
    inputs : of the program so far.
    nodes : their ids.
    captured : how many of the inputs the trace has captured.
    """

    trace: Trace
    state: dict[str, Any]
    renamed: dict[Any, Any]
    region: Recorded
    specs: list[Spec]
    inputs: list[Value]
    nodes: set[int]
    captured: int


class StageGradients(NamedTuple):
    """A trace behind a stage: the gradients of all its results together.

    Attributes
    ----------
    cotangents : the inputs that stand for those of the results.
    values : per input of the stage's region a value, or None.
    """

    stage: Stage
    cotangents: list[Value]
    values: list[Value | None]


class Further(NamedTuple):
    """A program that computes gradients of a stage's results.

    Attributes
    ----------
    graph : its outputs are gradients, then, if these have a history, their own gradients.
    places : per input of the stage's region the position of its gradient among the outputs, or None.
    feeds : for each input behind those of the stage, and before the cotangents of `gradients`, where its array comes
        from: the cotangent with a number, or what the trace has captured.
    edges : what follows the edges of the stage's inputs: numbers of cotangents, then captured tensors.
    results : the outputs that have a history.
    gradients : of these; None if there are none.
    renamed : sizes that are known to be equal.
    fixed : inputs of the stage that were used as Python numbers on the way, by position: it is one for these only.
    """

    graph: Graph
    places: list[int | None]
    feeds: list[int | Captured]
    edges: list[int | TensorBase]
    results: list[int]
    gradients: StageGradients | None
    renamed: dict[Any, Any]
    fixed: dict[int, Any]


def pause(trace: Trace) -> dict[str, Any]:
    """The state of a trace, for `resumed`."""
    return {name: x.copy() if type(x) in (list, dict, set) else x for name, x in vars(trace).items()}


@contextmanager
def resumed(stage: Stage, inputs: Sequence[Any]) -> Iterator[Trace]:
    """A context in which a trace is open again, and as it was at a stage, but for numbers: these are those of a call.

    What Python objects say now is not what calls of the traced program rely on. Sizes that are found to be equal are
    not for the program so far, parts of which are made later, and in other processes.

    Raises
    ------
    GradientError : a module that is called again, by a checkpoint, is not what it was.
    """
    trace, now = stage.trace, dict(vars(stage.trace))
    facts = trace.facts
    vars(trace).update((name, x.copy() if type(x) in (list, dict, set) else x) for name, x in stage.state.items())
    trace.nodes, trace.facts, trace.derived = trace.top, Facts(), Derived(trace)
    given = {v.node.id: x for v, x in zip(stage.inputs, inputs, strict=True)}
    trace.use_numbers(given)
    try:
        with mode.activate_trace(trace), trace.dims.knowing(dict(stage.renamed)):
            yield trace
        reason = facts.objection() if trace.facts.has_modules else None
        if reason is not None:
            raise GradientError(
                f"the backward pass of {trace.name} runs a part of it again, which has changed since: {reason}"
            )
    finally:
        trace.check_state()
        vars(trace).update(now)


def _stage(trace: Trace, region: Recorded, results: Iterable[TensorBase]) -> Stage:
    """The stage of an open trace."""
    specs = [Spec(tuple(x.shape), x.dtype) for x in results]
    nodes = {node.id for node in trace.top}
    return Stage(
        trace, pause(trace), dict(trace.dims.renamed), region, specs, list(trace.inputs), nodes, len(trace.captured)
    )


def first_stage(
    trace: Trace, returned: Sequence[Any], arguments: Sequence[TensorBase], start: int
) -> tuple[Stage, list[int], list[TensorBase]] | None:
    """The traced program, its results that have a gradient, and captured tensors; None if there are no such results.

    Parameters
    ----------
    returned : the tensors that the program returns, each once.
    arguments : the traced arguments to differentiate.
    start : number of the tape before the program ran.
    """
    places = [i for i, x in enumerate(returned) if x.requires_grad and _has_history(x, start)]
    if not places:
        return None
    edges = [returned[i].edge for i in places]
    outer = _outside(captured_edges(collect(edges, start), edges, start, set(map(id, arguments))))
    region = Recorded(edges, [*arguments, *outer], start)
    return _stage(trace, region, (returned[i] for i in places)), places, _owners(trace, outer)


def record_gradients(stage: Stage) -> StageGradients:
    """Append the gradients of all results to a trace that is at a stage."""
    trace, region = stage.trace, stage.region
    cotangents = [trace.cotangent(spec) for spec in stage.specs]
    with mode.no_grad():
        totals = backward_pass(
            list(zip(region.outputs, cotangents, strict=True)), None, retain=True, first=region.start
        )
    found = [totals.get(edge) for edge in region.inputs]
    return StageGradients(stage, cotangents, [None if x is None else trace.payload(x) for x in found])


def differentiate(
    stage: Stage, inputs: Sequence[Any], states: Sequence[bool | None], needs: Sequence[Any], recording: bool
) -> Further:
    """The gradients of a stage's results as a program.

    Parameters
    ----------
    inputs : those of the stage in a call, of which numbers count.
    states : per result whether its cotangent requires grad; None if there is none.
    needs : per input None if its gradient is not needed.
    recording : whether the gradients are to be differentiated.
    """
    region = stage.region
    with resumed(stage, inputs) as trace, mode.GradSwitch(recording):
        leaves: list[Any] = [None] * len(states)
        for i, (spec, state) in enumerate(zip(stage.specs, states, strict=True)):
            if state is not None:
                leaves[i] = trace.wrap(trace.cotangent(spec))
                leaves[i]._requires_grad = state
        if recording:
            pulled = pull(region, leaves, needs)
            found, results, extra = pulled.found, pulled.results, _outside(pulled.extra)
            own = pulled.region.inputs[: len(pulled.region.inputs) - len(pulled.extra)]
            region = pulled.region._replace(inputs=[*own, *extra])
        else:
            found, results, extra = _totals(region, leaves, needs), [], []
        outputs = {id(x): trace.payload(x) for x in found if x is not None}
        place = {key: i for i, key in enumerate(outputs)}
        gradients = None
        if results:
            gradients = record_gradients(_stage(trace, region, results))
        last = [] if gradients is None else [v for v in gradients.values if v is not None]
        late = set() if gradients is None else {v.key for v in gradients.cotangents}
        given = {x.payload.key: i for i, x in enumerate(leaves) if x is not None}
        more = iter(trace.captured[stage.captured :])
        new = [v.key for v in trace.inputs[len(stage.inputs) :] if v.key not in late]
        graph = Graph(trace.inputs, trace.top, [*outputs.values(), *last], [])
        return Further(
            _without_acts(graph, stage.nodes),
            [None if x is None else place[id(x)] for x in found],
            [given[key] if key in given else next(more) for key in new],
            [*(i for i, x in enumerate(leaves) if x is not None and x.requires_grad), *_owners(trace, extra)],
            [place[id(x)] for x in results],
            gradients,
            trace.dims.renamed,
            {i: inputs[i] for i, v in enumerate(stage.inputs) if trace.is_fixed(v)},
        )


def _totals(region: Recorded, leaves: Sequence[Any], needs: Sequence[Any]) -> list[Any]:
    """The gradients of a region, as values."""
    seeds = [(edge, x.payload) for edge, x in zip(region.outputs, leaves, strict=True) if x is not None]
    totals = backward_pass(seeds, None, retain=True, first=region.start)
    return [None if need is None else totals.get(edge) for edge, need in zip(region.inputs, needs, strict=True)]


def _without_acts(graph: Graph, done: set[int]) -> Graph:
    """A graph in which the nodes with the given ids, which have run already, do nothing but give results."""
    nodes = [node for node in graph.nodes if node.id not in done or not _is_act(node)]

    def quiet(node: Node) -> Made | None:
        if node.id not in done or not acts(node):
            return None
        attrs = {**node.attrs, **{name: _computing(region) for name, region in node.regions}}
        specs = [v.spec for v in node.outputs]
        made = Node(node.id, node.op, node.operands, attrs, specs, node.source, node.scope)
        return made, {i: i for i in range(len(specs))}

    return replace_nodes(Graph(graph.inputs, nodes, graph.outputs, graph.effects), quiet)


def _computing(region: Graph) -> Graph:
    return _without_acts(region, {node.id for node in region.nodes})


def _is_act(node: Node) -> bool:
    return node.op is not None and node.op.kind == "act" and not gives(node)


def _outside(edges: Sequence[Edge]) -> list[Edge]:
    """Edges that do not lead to leaves of the traced program's own, such as those of `grad` in it."""
    return [edge for edge in edges if not isinstance(edge, Tracer)]


def _owners(trace: Trace, edges: Sequence[Edge]) -> list[TensorBase]:
    """The captured tensors to which edges lead.

    Raises
    ------
    EscapedTracerError : one leads into the body of a loop or a branch.
    """
    owners = {x.owner.edge: x.owner for x in trace.captured if x.kind == "tensor" and x.owner.requires_grad}
    if any(edge not in owners for edge in edges):
        verify(Graph(trace.inputs, trace.top, [], []), "tracing")
    return [owners[edge] for edge in edges]


def _has_history(x: TensorBase, start: int) -> bool:
    """Whether `backward` inside the program has left the graph of a result as it was."""
    return all(node.saved is not None for node in collect([x.edge], start))
