"""A compiled function called on tensors that need gradients: one node on the caller's tape, both directions compiled.

The call is traced together with its gradients, then cut in two (`static.partition`). Contributions to each argument and
each captured tensor are totalled inside, as in the eager `function` (docs/numerics.md, point 5), so bits are the same.
The backward half is compiled when a gradient is first asked for. A backward pass that is itself to be differentiated
runs the graph op by op on the caller's tape instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common import mode
from common.apply import apply
from common.autograd.derivatives import view_of
from common.autograd.exposed import exposed, seal
from common.autograd.region import captured_edges
from common.autograd.tape import Edge, Node, backward_pass, collect
from common.dim import resolve
from common.errors import GradientError
from common.frames import user_frame
from common.number import Number
from common.tensor import TensorBase, saved_tensors, with_edge, wrap
from static.graph import Graph, Value
from static.partition import Halves, copied, split
from static.running.interpreter import Interpreted

if TYPE_CHECKING:
    from static.tracing.trace import Trace

KEPT_PLANS = 128
"""Plans of the backward half that are kept."""


class Recorded(NamedTuple):
    """The gradients that a trace has recorded.

    Attributes
    ----------
    results : positions of the returned values that have a gradient.
    cotangents : the inputs that stand for theirs.
    captured : the tensors that are differentiated besides arguments.
    inputs : what stands for the arguments to differentiate, then for the captured tensors.
    gradients : per input a value, or None.
    """

    results: list[int]
    cotangents: list[Value]
    captured: list[TensorBase]
    inputs: list[Value]
    gradients: list[Value | None]


def record_gradients(
    trace: Trace, returned: Sequence[Any], arguments: Sequence[TensorBase], start: int
) -> Recorded | None:
    """Append a backward pass to an open trace; None if no result has a gradient.

    Parameters
    ----------
    returned : the tensors that the program returns.
    arguments : the traced arguments to differentiate.
    start : number of the tape before the program ran.
    """
    places = [i for i, x in enumerate(returned) if x.requires_grad and _has_history(x, start)]
    roots = {id(returned[i]): i for i in reversed(places)}  # one output of the node each, however often it is returned
    places = sorted(roots.values())
    if not places:
        return None
    edges = [returned[i].edge for i in places]
    order = collect(edges, start)
    outer = captured_edges(order, edges, start, set(map(id, arguments)))
    owners = {s.owner.edge: s.owner for s in trace.captured if s.kind == "tensor" and s.owner.requires_grad}
    captured = [owners[edge] for edge in outer]
    inputs = [trace.original(x) for x in (*arguments, *captured)]
    cotangents = [trace.cotangent(returned[i]) for i in places]
    with mode.no_grad():
        totals = backward_pass(list(zip(edges, cotangents, strict=True)), None, retain=True, first=start)
    gradients = [totals.get(edge) for edge in (*arguments, *outer)]
    return Recorded(places, cotangents, captured, inputs, gradients)


def _has_history(x: TensorBase, start: int) -> bool:
    """Whether `backward` inside the program has left the graph of a result as it was."""
    return all(node.saved is not None for node in collect([x.edge], start))


class Call(NamedTuple):
    """What a node remembers of its call: the inputs of the forward half, the sizes, and the node's edges."""

    inputs: tuple[Any, ...]
    env: Mapping[Any, int]
    edges: tuple[Edge, ...] = ()


class CompiledOp:
    """The op of the nodes that calls of one trace make.

    Parameters
    ----------
    name : of the function.
    joint : the program with its gradients, after passes.
    results : how many of its outputs are results of the program; the others are gradients.
    recorded : what they are gradients of.
    compiler : makes a program of a graph; None interprets it.
    budget : see `static.partition.split`.
    """

    kind = "compiled"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True
    node_name = "CompiledBackward"

    def __init__(
        self,
        name: str,
        joint: Graph,
        results: int,
        recorded: Recorded,
        compiler: Callable[..., Any] | None,
        budget: int | None = None,
    ) -> None:
        self.name, self.recorded, self._compiler = name, recorded, compiler
        self.nout, self.results = len(recorded.results), results
        given = {value.key for value in recorded.cotangents}
        self.halves: Halves = split(joint, results, [v for v in joint.inputs if v.key in given], budget)
        positions = {value.key: i for i, value in enumerate(self.halves.forward.inputs)}
        self._positions = [positions[value.key] for value in recorded.inputs]
        outputs = {value.key: i for i, value in reversed(list(enumerate(self.halves.forward.outputs)))}
        #: Per kept value its position among the outputs, or, as -1 - position, among the inputs of the forward half.
        self._kept = [outputs[v.key] if v.key in outputs else -1 - positions[v.key] for v in self.halves.kept]
        self._plans: dict[Any, Any] = {}

    # ------------------------------------------------------------------ the call

    def connect(
        self, tensors: Sequence[TensorBase], arguments: Sequence[TensorBase], call: Call, outputs: Sequence[Any]
    ) -> None:
        """Give results their place on the tape.

        Parameters
        ----------
        tensors : all that the program has returned.
        arguments : the differentiated arguments of the call.
        outputs : of the forward half.
        """
        sources = (*arguments, *self.recorded.captured)
        edges = tuple(x.edge for x in sources)
        kept = tuple(outputs[i] if i >= 0 else call.inputs[-1 - i] for i in self._kept)
        op: Any = self
        node = Node(op, call._replace(edges=edges), edges, kept, None, *user_frame(4))
        if exposed:
            seal(node)
        for i, position in enumerate(self.recorded.results):
            x = tensors[position]
            x.grad_fn, x.output_nr, x._requires_grad = node, i, True

    # ------------------------------------------------------------------ the rule

    def backward(self, saved: tuple[Any, ...], attrs: Call, g: Any, needs: Sequence[Edge]) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        cotangents = (g,) if self.nout == 1 else g
        if mode.is_grad_enabled():
            return self._record(attrs, cotangents, needs)
        inputs = self.halves.backward.inputs[len(saved) :]
        arrays = [
            np.zeros(resolve(tuple(v.shape), attrs.env), v.dtype) if c is None else np.asarray(_data(c))
            for v, c in zip(inputs, cotangents, strict=True)
        ]
        totals = iter(self._plan(attrs.env)(*saved, *arrays))
        return tuple(None if x is None else next(totals) for x in self.recorded.gradients)

    def _plan(self, env: Mapping[Any, int]) -> Callable[..., Any]:
        key = tuple(env.items())
        if key not in self._plans:
            while len(self._plans) >= KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            program = self.program
            self._plans[key] = Interpreted(self.halves.backward, env) if program is None else program.plan(env)
        return self._plans[key]

    def describe_kept(self, env: Mapping[Any, int]) -> list[tuple[str, int]]:
        """The values that a call hands to the backward half, and their bytes."""
        values = ((v, math.prod(resolve(tuple(v.shape), env)) * v.dtype.itemsize) for v in self.halves.kept)
        return [(f"{v.node.name} at {v.node.source[0]}:{v.node.source[1]}", nbytes) for v, nbytes in values]

    @cached_property
    def program(self) -> Any:
        """The compiled backward half, made when it is first asked for; None when interpreted."""
        return None if self._compiler is None else self._compiler(self.halves.backward)

    @cached_property
    def _again(self) -> Graph:
        return copied(self.halves.forward, self.halves.forward.outputs[: self.results])

    def _record(self, call: Call, cotangents: Sequence[Any], needs: Sequence[Edge]) -> tuple[Any, ...]:
        """The contributions as tensors with history: the program runs again op by op, and is differentiated so."""
        recorded, inputs = self.recorded, list(call.inputs)
        slots: list[Edge] = []
        for position, edge, need in zip(self._positions, call.edges, needs, strict=True):
            if edge is not None:  # also where no gradient is asked for now: the result is to be differentiated
                inputs[position] = view_of(with_edge(inputs[position], edge))
            slots.append(None if need is None else inputs[position].edge)
        results = replay(self._again, inputs, call.env)
        roots = [results[i] for i in recorded.results]
        seeds = [(x.edge, c) for x, c in zip(roots, cotangents, strict=True) if c is not None and x.edge is not None]
        totals = backward_pass(seeds, saved_tensors, retain=True, wanted={slot for slot in slots if slot is not None})
        return tuple(None if slot is None else totals.get(slot) for slot in slots)


def replay(graph: Graph, inputs: Sequence[Any], env: Mapping[Any, int]) -> list[TensorBase]:
    """Run a graph op by op on tensors, so that it is recorded by their engine.

    Parameters
    ----------
    inputs : tensors, arrays or numbers.
    env : values of the dimension atoms.
    """
    values: dict[tuple[int, int], Any] = {}
    for value, x in zip(graph.inputs, inputs, strict=True):
        values[value.key] = wrap(x) if isinstance(x, np.ndarray) else Number(x) if type(x) is float else x
    for node in graph.nodes:
        if node.op is None or node.op.kind == "act":
            continue
        if node.regions:
            raise GradientError(
                f"second derivatives of a compiled call through its {node.name} (control flow) cannot be taken from "
                "outside: take them inside the compiled function, or use dynamic.function"
            )
        attrs = {name: resolve(x, env) for name, x in node.attrs.items()}
        if node.op.name == "constant":
            values[node.outputs[0].key] = attrs["value"]
            continue
        operands = [values[x.key] if type(x) is Value else x for x in node.operands]
        if node.op.attrs and node.op.kind == "elementwise":  # a conversion takes no number as it is
            operands = [np.asarray(x) if isinstance(x, (int, float)) else x for x in operands]
        results = apply(node.op, operands, attrs)
        for value, x in zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True):
            values[value.key] = _number(x) if value.spec.weak else x
    return [values[value.key] for value in graph.outputs]


def _number(x: Any) -> Any:
    """A weak value as the Python number that it stands for."""
    number = x.item()
    return Number(number) if type(number) is float else number


def _data(c: Any) -> Any:
    return c.payload if isinstance(c, TensorBase) else c
