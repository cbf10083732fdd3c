"""A compiled function called on tensors that need gradients: one node on the caller's tape, both directions compiled.

The call is traced together with its gradients, then cut in two (`static.partition`). Contributions to each argument and
each captured tensor are totalled inside, as in the eager `function` (docs/numerics.md, point 5), so bits are the same.
The backward half is compiled when a gradient is first asked for. A backward pass that is itself to be differentiated
runs a program of its own, traced behind the first one (`static.tracing.stages`), whose results are one node again.
Both halves are found on the disk by the graph as it was traced; then nothing is cut, unless somebody asks for halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from common import mode
from common.autograd import exposed, mutation
from common.autograd.tape import Edge, Node
from common.dim import resolve
from common.errors import GradientError
from common.frames import user_frame
from common.tensor import TensorBase, wrap
from static.graph import Graph, Value
from static.partition import Halves, continued, split
from static.regions import FIRST_ROOM, NeedsRoom, rooms
from static.running.interpreter import Interpreted
from static.tracing.stages import Further, Gradients, differentiate
from static.verify import verify

KEPT_PLANS = 128
"""Plans of a program that are kept."""

#: Held while a trace is open again.
_going_on = RLock()


class Making(NamedTuple):
    """How the programs of a function are made.

    Attributes
    ----------
    rewrite : what passes make of a graph; also takes arrays for its inputs, and sizes.
    compiler : gives the program of a graph that is made when needed, and is stored under a key if it has one, see
        `static.running.store.program`; None interprets it.
    budget : see `static.partition.split`.
    """

    rewrite: Callable[[Graph, list[np.ndarray], Mapping[Any, int]], Graph]
    compiler: Callable[[Callable[[], Graph], str | None], Any] | None
    budget: int | None


class Saves(NamedTuple):
    """What a node saves, behind which come the inputs of the forward half.

    Attributes
    ----------
    outputs : those of the forward half that are kept.
    reads : which of all that is saved the backward half takes.
    """

    outputs: list[int]
    reads: list[int]


class Cut:
    """A program with its gradients, cut in two when somebody asks for the halves.

    Parameters
    ----------
    raw : as it was traced.
    joint : gives it after passes.
    results : how many of its outputs are results of the program; the others are gradients.
    cotangents : inputs, see `static.partition.split`; `budget` too.
    """

    def __init__(
        self,
        raw: Graph,
        joint: Callable[[], Graph],
        results: int,
        cotangents: Sequence[Value],
        budget: int | None,
    ) -> None:
        self._joint, self._budget = joint, budget
        self._known: Saves | None = None
        self.results, self._late = results, {value.key for value in cotangents}
        self.rooms, self.inputs = rooms(raw), len(raw.inputs) - len(self._late)

    def know(self, notes: Any) -> None:
        """Take over what `notes` was in another process."""
        self._known = Saves(*notes)

    @property
    def notes(self) -> tuple[Any, ...]:
        """What a node saves, as plain data."""
        return tuple(self.saves)

    @cached_property
    def halves(self) -> Halves:
        """The two programs."""
        joint = self._joint()
        halves = split(joint, self.results, [v for v in joint.inputs if v.key in self._late], self._budget)
        assert self._known in (None, _saves(halves)), "a cut is another one in another process"
        return halves

    @cached_property
    def saves(self) -> Saves:
        """What a node saves."""
        return _saves(self.halves) if self._known is None else self._known

    def forward(self) -> Graph:
        """The half that a call runs."""
        return self.halves.forward

    def backward(self) -> Graph:
        """The half for gradients."""
        return self.halves.backward


def _saves(halves: Halves) -> Saves:
    inputs, outputs = halves.forward.inputs, halves.forward.outputs
    shown = {value.key: i for i, value in reversed(list(enumerate(outputs)))}
    saved = [shown[v.key] for v in halves.kept if v.key in shown]
    at = {outputs[i].key: n for n, i in enumerate(saved)}
    at.update((value.key, len(saved) + i) for i, value in enumerate(inputs) if value.key not in at)
    return Saves(saved, [at[v.key] for v in halves.kept])


class Runner:
    """A graph as a program that is planned for the sizes of each call.

    Parameters
    ----------
    make : gives the graph.
    atoms : of sizes that no argument has.
    compiler : see `Making`.
    key : under which the program is stored.
    """

    def __init__(
        self, make: Callable[[], Graph], atoms: Sequence[Any], compiler: Callable[..., Any] | None, key: str | None
    ) -> None:
        self._make, self._compiler, self._key = make, compiler, key
        self._rooms = dict.fromkeys(atoms, FIRST_ROOM)
        self._plans: dict[Any, Any] = {}

    @cached_property
    def program(self) -> Any:
        """The compiled program, made when it is first asked for; None when interpreted."""
        return None if self._compiler is None else self._compiler(self._make, self._key)

    def __call__(self, env: Mapping[Any, int], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs for arrays; `env` has the sizes of the call, and how often its loops may run."""
        while True:
            try:
                sizes = {**env, **{atom: max(n, env.get(atom, 0)) for atom, n in self._rooms.items()}}
                results: list[np.ndarray] = self._plan(sizes)(*arrays)
                return results
            except NeedsRoom as need:  # of a loop that only gradients run
                self._rooms[need.atom] = 4 * sizes[need.atom]

    def _plan(self, env: dict[Any, int]) -> Callable[..., Any]:
        key = tuple(env.items())
        if key not in self._plans:
            while len(self._plans) >= KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[key] = Interpreted(self._make(), env) if self.program is None else self.program.plan(env)
        return self._plans[key]


class Call:
    """What a node remembers of its call, besides arrays.

    Attributes
    ----------
    env : the sizes.
    edges : of what is differentiated.
    node : the node.
    """

    __slots__ = ("env", "edges", "node")

    def __init__(self, env: Mapping[Any, int], edges: tuple[Edge, ...]) -> None:
        self.env, self.edges = env, edges
        self.node: Callable[[], Node | None] = lambda: None


class CompiledOp:
    """The op of the nodes that calls of one program make.

    A node saves what the backward half needs, then all inputs of the forward half: other gradients begin with these.

    Parameters
    ----------
    name : of the function.
    cut : the program with its gradients.
    places : those of the results that have a gradient.
    gradients : what has been recorded.
    known : values of the stage that the last inputs of the program are.
    key : under which the backward half is stored.
    """

    kind = "compiled"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(
        self,
        name: str,
        cut: Cut,
        places: Sequence[int],
        gradients: Gradients,
        making: Making,
        known: Sequence[Value] = (),
        node_name: str = "CompiledBackward",
        key: str | None = None,
    ) -> None:
        self.name, self.node_name, self.places, self.gradients = name, node_name, places, gradients
        self.nout, self.results, self._making, self._inputs = len(places), cut.results, making, known
        self.cut, (self._saved, self._kept) = cut, cut.saves
        self.backward_half = Runner(cut.backward, cut.rooms, making.compiler, key)
        self._further: dict[Any, list[Gradient]] = {}

    @property
    def halves(self) -> Halves:
        """What a call runs, and what gradients run."""
        return self.cut.halves

    @cached_property
    def known(self) -> list[tuple[Value, int]]:
        """Values of the stage that a node saves besides inputs, and where."""
        own, first = self.gradients.stage.nodes, len(self._saved) + self.cut.inputs - len(self._inputs)
        kept = zip(self.halves.kept, self._kept, strict=True)
        known = [(v, at) for v, at in kept if v.node.op is not None and v.node.id in own]
        return known + [(v, first + i) for i, v in enumerate(self._inputs)]

    # ------------------------------------------------------------------ the call

    def connect(
        self, tensors: Sequence[TensorBase], call: Call, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> None:
        """Give results their place on the tape.

        Parameters
        ----------
        tensors : the program's results.
        inputs, outputs : of the forward half.
        """
        op: Any = self
        node = Node(op, call, call.edges, (*(outputs[i] for i in self._saved), *inputs), None, *user_frame(4))
        call.node = ref(node)
        if exposed.exposed:
            exposed.seal(node)
        for i, position in enumerate(self.places):
            x = tensors[position]
            x.grad_fn, x.output_nr, x._requires_grad = node, i, True

    def reads(self, saved: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """What the backward half reads of what is saved, with positions."""
        return ((i, saved[i]) for i in self._kept if isinstance(saved[i], np.ndarray))

    # ------------------------------------------------------------------ the rule

    def backward(self, saved: tuple[Any, ...], attrs: Call, g: Any, needs: Sequence[Edge]) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        cotangents = (g,) if self.nout == 1 else g
        recording = mode.is_grad_enabled()
        if not recording and all(c is not None for c in cotangents):
            arrays = [*(saved[i] for i in self._kept), *(np.asarray(_data(c)) for c in cotangents)]
            totals = iter(self.backward_half(attrs.env, arrays))
            return tuple(None if x is None else next(totals) for x in self.gradients.values)
        states = tuple(None if c is None else recording and c.requires_grad for c in cotangents)
        wanted = tuple(need is not None for need in needs)
        inputs = [saved[i] for i in self.stage_inputs]
        with _going_on:
            known = self._further.setdefault((recording, states, wanted), [])
            found = next((x for x in known if x.serves(inputs)), None)
            if found is None:
                needed = [need or None for need in wanted]
                further = differentiate(self.gradients.stage, inputs, states, needed, recording)
                found = Gradient(self, further, self._making)
                known.append(found)
                del known[:-KEPT_PLANS]
        return found(saved, attrs, cotangents)

    @property
    def stage_inputs(self) -> range:
        """Where among the saved values the inputs of the stage are."""
        return range(len(self._saved), len(self._saved) + len(self.gradients.stage.inputs))

    def describe_kept(self, env: Mapping[Any, int]) -> list[tuple[str, int]]:
        """The values that a call hands to the backward half, and their bytes."""
        values = ((v, math.prod(resolve(tuple(v.shape), env)) * v.dtype.itemsize) for v in self.halves.kept)
        return [(f"{v.node.name} at {v.node.source[0]}:{v.node.source[1]}", nbytes) for v, nbytes in values]


class Gradient:
    """Some gradients of a compiled program, as a program of their own.

    Parameters
    ----------
    of : the op of the nodes that it is the rule of.
    further : what has been traced.
    """

    def __init__(self, of: CompiledOp, further: Further, making: Making) -> None:
        self.of, self.further, self._making = of, further, making
        self._made: tuple[Runner, CompiledOp | None] | None = None
        self._places: list[int] = []
        self._read: list[int] = []

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether numbers that were fixed when it was traced are those of a call."""
        return all(repr(inputs[i]) == repr(x) for i, x in self.further.fixed.items())  # tells -0.0 from 0.0

    def __call__(self, saved: tuple[Any, ...], call: Call, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The contributions; tensors, and those that have a history results of one node, if gradients are recorded."""
        further = self.further
        arrays = [saved[i] for i in self.of.stage_inputs]
        arrays += [np.asarray(_data(cotangents[x])) if isinstance(x, int) else x.payload for x in further.feeds]
        with _going_on:
            if self._made is None:
                self._made = self._make(call, arrays)
        self._check(call)
        runner, op = self._made
        inputs = [*arrays, *(saved[i] for i in self._places)]
        outputs = runner(call.env, inputs)
        count = len({i for i in further.places if i is not None})
        if not mode.is_grad_enabled():
            return tuple(None if i is None else outputs[i] for i in further.places)
        tensors = [wrap(x) for x in outputs[:count]]
        if op is not None:
            sources = (cotangents[x].edge if isinstance(x, int) else x.edge for x in further.edges)
            op.connect(tensors, Call(call.env, (*call.edges, *sources)), inputs, outputs)
        return tuple(None if i is None else tensors[i] for i in further.places)

    def _make(self, call: Call, arrays: list[np.ndarray]) -> tuple[Runner, CompiledOp | None]:
        """The program, and the op of its nodes if its results are to be differentiated."""
        further, making = self.further, self._making
        gradients = further.gradients
        verify(further.graph, "tracing")
        given = iter(arrays)
        late = set() if gradients is None else {v.key for v in gradients.cotangents}
        ones = [
            np.ones(resolve(tuple(v.shape), call.env), v.dtype) if v.key in late else next(given)
            for v in further.graph.inputs
        ]
        graph = making.rewrite(further.graph, ones, call.env)
        graph, used = continued(graph, [value for value, _ in self.of.known])
        self._places = [self.of.known[i][1] for i in used]
        read = {value.key for node in graph.nodes for value in node.values}
        self._read = [i for i, v in zip(self.of.stage_inputs, graph.inputs, strict=False) if v.key in read]
        self._read += self._places
        if gradients is None:
            return Runner(lambda: graph, rooms(graph), making.compiler, None), None
        results = len({i for i in further.places if i is not None})
        known = [self.of.known[i][0] for i in used]
        name = self.of.node_name + "Backward"
        cut = Cut(graph, lambda: graph, results, gradients.cotangents, making.budget)
        op = CompiledOp(self.of.name, cut, further.results, gradients, making, known, name)
        return Runner(cut.forward, rooms(op.halves.forward), making.compiler, None), op

    def _check(self, call: Call) -> None:
        """Check that this program is one for a call.

        Raises
        ------
        GradientError : what it reads has been overwritten since, or it relies on other sizes.
        """
        for guard in self.of.gradients.stage.trace.guards:
            if not guard.check(call.env):
                raise GradientError(
                    f"a gradient of a gradient of {self.of.name} decides on sizes, and holds for others than those of "
                    f"this call ({guard}): call the function again, which is then traced for these"
                )
        node = call.node()
        if node is not None:
            for check in (mutation.check, exposed.check):
                check([node], self._reads)

    def _reads(self, node: Node) -> Iterator[tuple[int, np.ndarray]]:
        """What the program reads of what a node saves, with positions."""
        return ((i, node.saved[i]) for i in self._read if isinstance(node.saved[i], np.ndarray))


def _data(c: Any) -> Any:
    return c.payload if isinstance(c, TensorBase) else c
