"""A compiled function called on tensors that need gradients: one node on the caller's tape, both directions compiled.

The call is traced together with its gradients, then cut in two (`static.passes.partition`). Contributions to each
argument and each captured tensor are totalled inside, as in the eager `function` (docs/numerics.md, point 5), so bits
are the same. The backward half is compiled when a gradient is first asked for. A backward pass that is itself to be
differentiated runs a program of its own, traced behind the first one (`static.tracing.gradient_stages`), whose results
are one node again. All of these are found on the disk by the graph as it was traced; then nothing is cut, unless
somebody asks for halves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from common.core import mode
from common.core.lazy import cached_property
from common.core.sizes import resolve
from common.core.source_lines import user_frame
from common.tensor import external_writes, write_log
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node
from static.graph import Graph, Value
from static.graph.regions import rooms
from static.jit.inlined_gradients import SavedCall, inlined, require_sizes
from static.jit.joint_graph import JointGraph, Making, Runner
from static.passes.partition import Halves, continued
from static.running import program_store
from static.running.program_store import Key
from static.tracing.gradient_stages import Further, StageGradients, differentiate, going_on
from static.tracing.optimised import Optimised

KEPT_GRADIENTS = 128
"""Programs for other gradients of a program that are kept."""


class CompiledOp:
    """The op of the nodes that calls of one program make.

    A node saves what the backward half needs, then all inputs of the forward half: other gradients begin with these.

    Parameters
    ----------
    name : of the function.
    cut : the program with its gradients.
    places : positions of the results that have a gradient.
    gradients : the recorded backward pass.
    begun : the part of it that is computed already; then its last inputs are values of the stage.
    key : under which the forward half is stored.
    """

    kind = "compiled"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(
        self,
        name: str,
        cut: JointGraph,
        places: Sequence[int],
        gradients: StageGradients,
        making: Making,
        begun: Begun | None = None,
        node_name: str = "CompiledBackward",
        key: Key | None = None,
    ) -> None:
        self.name, self.node_name, self.places, self.gradients = name, node_name, places, gradients
        self.nout, self.results, self._making, self._begun, self.key = len(places), cut.results, making, begun, key
        self.cut, (self._saved, self._kept) = cut, cut.saves
        half = None if key is None else key.part("backward half")
        self.backward_half = Runner(cut.backward, cut.rooms, making.compiler, half)
        self._further: dict[Any, list[Gradient]] = {}

    @property
    def halves(self) -> Halves:
        """The two halves: one for a call, one for its gradients."""
        return self.cut.halves

    @cached_property
    def known(self) -> list[tuple[Value, int]]:
        """Values of the stage that a node saves besides inputs, and where."""
        own, first = self.gradients.stage.nodes, self.stage_inputs.stop
        kept = zip(self.halves.kept, self._kept, strict=True)
        known = [(v, at) for v, at in kept if v.node.op is not None and v.node.id in own]
        return known + [(v, first + i) for i, v in enumerate(self._begun.values if self._begun else ())]

    # ------------------------------------------------------------------ the call

    def connect(
        self,
        tensors: Sequence[TensorBase],
        env: Mapping[Any, int],
        edges: tuple[Edge, ...],
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
    ) -> None:
        """Give results their place on the tape.

        Parameters
        ----------
        tensors : the program's results.
        env : the sizes.
        edges : of what is differentiated.
        inputs, outputs : of the forward half.
        """
        op: Any = self
        call = SavedCall(env, edges)
        node = Node(op, call, edges, (*(outputs[i] for i in self._saved), *inputs), None, *user_frame(4))
        call.node = ref(node)
        if external_writes.exposed:
            external_writes.seal(node)
        for i, position in enumerate(self.places):
            x = tensors[position]
            x.grad_fn, x.output_nr, x._requires_grad = node, i, True

    def reads(self, saved: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Saved values that the backward half reads, with positions."""
        return ((i, saved[i]) for i in self._kept if isinstance(saved[i], np.ndarray))

    # ------------------------------------------------------------------ the rule

    def backward(self, saved: tuple[Any, ...], attrs: SavedCall, g: Any, needs: Sequence[Edge]) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        cotangents = (g,) if self.nout == 1 else g
        if mode.current_trace() is not None:
            return inlined(self, [saved[i] for i in self.stage_inputs], attrs, cotangents, needs)
        if (level := mode.tangents_around()) is not None:
            level.refuse(self.node_name, cotangents, "; a function that is compiled does")
        recording = mode.is_grad_enabled()
        if not recording and all(c is not None for c in cotangents):
            arrays = [*(saved[i] for i in self._kept), *(np.asarray(_data(c)) for c in cotangents)]
            totals = iter(self.backward_half(attrs.env, arrays))
            return tuple(None if x is None else next(totals) for x in self.gradients.values)
        states = tuple(None if c is None else recording and c.requires_grad for c in cotangents)
        wanted = tuple(need is not None for need in needs)
        inputs = [saved[i] for i in self.stage_inputs]
        with going_on:
            known = self._further.setdefault((recording, states, wanted), [])
            found = next((x for x in known if x.serves(inputs)), None)
            if found is None:
                needed = [need or None for need in wanted]
                further = differentiate(self.gradients.stage, inputs, states, needed, recording)
                found = Gradient(self, further, self._making)
                known.append(found)
                del known[:-KEPT_GRADIENTS]
        return found(saved, attrs, cotangents)

    @property
    def stage_inputs(self) -> range:
        """Where among the saved values the inputs of the stage are."""
        return range(len(self._saved), len(self._saved) + len(self.gradients.stage.inputs))

    def describe_kept(self, env: Mapping[Any, int]) -> list[tuple[str, int]]:
        """The values that a call hands to the backward half, and their bytes."""
        values = ((v, math.prod(resolve(tuple(v.shape), env)) * v.dtype.itemsize) for v in self.halves.kept)
        return [(f"{v.node.name} at {v.node.source[0]}:{v.node.source[1]}", nbytes) for v, nbytes in values]


class Begun:
    """A graph of gradients that begins with what a node saves: with some values that need not be computed again.

    Parameters
    ----------
    of : the op of the nodes.
    optimised : the graph.
    """

    def __init__(self, of: CompiledOp, optimised: Optimised) -> None:
        self._of, self._optimised = of, optimised

    def graph(self) -> Graph:
        """The graph; its last inputs are such values."""
        return self._made[0]

    @cached_property
    def _made(self) -> tuple[Graph, list[int]]:
        return continued(self._optimised.graph(), [value for value, _ in self._of.known])

    @cached_property
    def values(self) -> list[Value]:
        """The values."""
        return [self._of.known[i][0] for i in self._made[1]]

    @cached_property
    def places(self) -> list[int]:
        """Where they are among all that is saved."""
        return [self._of.known[i][1] for i in self._made[1]]

    @cached_property
    def reads(self) -> list[int]:
        """Indices of the saved values that the graph reads."""
        graph = self.graph()
        read = {value.key for node in graph.nodes for value in node.values}
        return [i for i, v in zip(self._of.stage_inputs, graph.inputs, strict=False) if v.key in read] + self.places


class Gradient:
    """Some gradients of a compiled program, as a program of their own.

    Parameters
    ----------
    of : the op of the nodes that it is the rule of.
    further : what has been traced.
    """

    def __init__(self, of: CompiledOp, further: Further, making: Making) -> None:
        self.of, self.further = of, further
        self._known = known = partial(of.gradients.stage.trace.dims.knowing, further.renamed)
        compiler = None if making.compiler is None else partial(making.compiler, known=known)
        self._making = making._replace(compiler=compiler)
        self._optimised = Optimised(further.graph, making.passes, known=known)
        self._begun, self._cut = Begun(of, self._optimised), None
        if further.gradients is not None:
            cotangents = further.gradients.cotangents
            self._cut = JointGraph(further.graph, self._begun.graph, self._results, cotangents, making.budget)
        self._made: tuple[Runner, CompiledOp | None] | None = None

    @property
    def _results(self) -> int:
        return len({i for i in self.further.places if i is not None})

    @property
    def notes(self) -> tuple[Any, ...]:
        """The results of passes and cuts, as plain data."""
        return self._begun.places, self._begun.reads, None if self._cut is None else self._cut.notes

    def know(self, notes: Any) -> None:
        """Take over what `notes` was in another process."""
        self._begun.places, self._begun.reads, saves = notes
        if self._cut is not None:
            self._cut.know(saves)

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether numbers that were fixed when it was traced are those of a call."""
        return all(repr(inputs[i]) == repr(x) for i, x in self.further.fixed.items())  # tells -0.0 from 0.0

    def __call__(self, saved: tuple[Any, ...], call: SavedCall, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """The contributions; if gradients are recorded they are tensors, and results of one node."""
        further = self.further
        arrays = [saved[i] for i in self.of.stage_inputs]
        arrays += [np.asarray(_data(cotangents[x])) if isinstance(x, int) else x.payload for x in further.feeds]
        with going_on:
            if self._made is None:
                self._made = self._make(call, arrays)
        self._check(call)
        runner, op = self._made
        inputs = [*arrays, *(saved[i] for i in self._begun.places)]
        outputs = runner(call.env, inputs)
        if not mode.is_grad_enabled():
            return tuple(None if i is None else outputs[i] for i in further.places)
        tensors = [wrap(x) for x in outputs[: self._results]]
        if op is not None:
            sources = (cotangents[x].edge if isinstance(x, int) else x.edge for x in further.edges)
            op.connect(tensors, call.env, (*call.edges, *sources), inputs, outputs)
        return tuple(None if i is None else tensors[i] for i in further.places)

    def _make(self, call: SavedCall, arrays: list[np.ndarray]) -> tuple[Runner, CompiledOp | None]:
        """The program, and the op of its nodes if its results are to be differentiated."""
        graph, making, cut, gradients = self.further.graph, self._making, self._cut, self.further.gradients
        late = [] if gradients is None else [v.key for v in gradients.cotangents]
        key, stage = None, self.of.gradients.stage
        if self.of.key is not None:
            options = "gradients", self.of.key.text, max(stage.nodes), self._results, *late
            with self._known():
                key = program_store.key_of(graph, stage.trace.dims, options)
        if key is None:
            self._optimised.optimise(arrays, late, call.env)
        make, atoms = (self._begun.graph, rooms(graph)) if cut is None else (cut.forward, cut.rooms)
        runner = Runner(make, atoms, making.compiler, key, self)
        runner.load()
        if cut is None or gradients is None:
            return runner, None
        op_name = self.of.node_name + "Backward"
        op = CompiledOp(self.of.name, cut, self.further.results, gradients, making, self._begun, op_name, key)
        return runner, op

    def _check(self, call: SavedCall) -> None:
        """Check that this program is one for a call.

        Raises
        ------
        GradientError : what it reads has been overwritten since, or it relies on other sizes.
        """
        require_sizes(self.of.name, self.of.gradients, call)
        node = call.node()
        if node is not None:
            for check in (write_log.check, external_writes.check):
                check([node], self._reads)

    def _reads(self, node: Node) -> Iterator[tuple[int, np.ndarray]]:
        """A node's saved values that the program reads, with positions."""
        return ((i, node.saved[i]) for i in self._begun.reads if isinstance(node.saved[i], np.ndarray))


def _data(c: Any) -> Any:
    return c.payload if isinstance(c, TensorBase) else c
