"""One trace of a function, compiled, with everything that decides whether it serves a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from common.core import mode
from common.core.lazy import cached_property
from common.core.source_lines import user_frame
from common.core.tree import LEAF, count_leaves, nester, taker
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, ArgumentPlace
from common.runtime.run_text import BAD_ARGUMENT
from common.tensor import write_log
from common.tensor.base import Tensor, TensorBase, wrap
from static.graph.regions import FIRST_ROOM, NeedsRoom, rooms
from static.jit.traced_function import CallOutputs, TracedFunction
from static.passes import PassReport
from static.running import program_store
from static.running.donate import donate
from static.running.executable import Executable, executable_of
from static.running.overlaps import overlaps
from static.running.plan import Objects
from static.tracing.described import Described
from static.tracing.gradient_stages import going_on
from static.tracing.optimised import Optimised, budgeted

if TYPE_CHECKING:
    from static.graph import Graph, Value
    from static.jit.compiled_node import CompiledOp
    from static.lowering.lowered_program import LoweredProgram
    from static.running.interpreter import Interpreted


class CompiledTrace(TracedFunction):
    """One trace, compiled.

    Attributes
    ----------
    raw, graph : before and after the passes.
    compiled : whether it is compiled; else it is interpreted.
    op : of the nodes that its calls make on the caller's tape; None if they make none.
    recording : whether gradients were recorded when it was traced; None if nothing in it requires grad, so that it
        serves calls under `no_grad` and others alike.
    watches : whether there are facts whose changes are not counted.
    within : the pass that keeps to a budget of memory, if there is one.
    donated : position of a result -> of the input in whose memory it lies.
    donations : what has become of each donated array, in words.
    plain : whether `deliver` has nothing to do.
    checked : the value of `mode.changes` at which all facts were last found to hold.
    seconds : phase -> seconds that it took.
    start : `time.perf_counter` when it began.
    runs : how many calls it has served, if it has decisions.
    """

    def __init__(
        self, owner: Described, leaves: Sequence[Any], structure: Any, history: tuple[int, ...] | None
    ) -> None:
        self.start = perf_counter()
        super().__init__(owner, leaves, structure)
        trace, outputs = self.trace, self.record(owner, leaves, history)
        recorded, count = outputs.gradients, len(outputs.values)
        self._differentiated = outputs.differentiated
        self.shape_of_result = _common_case(self.out_structure, count)
        self.raw, self.grad_targets, self.cleared = trace.finish(outputs.values)
        self._overlaps = overlaps(self.raw, trace.first_writes(), owner.__name__, recorded is not None)
        self.donations, self.donated = donate(self.raw, self._given(owner.donate_argnums), count, recorded is None)
        self.same.leave({self.positions[p] for p in self.donated.values()})
        self.returned = count - len(self.donated)
        results = len(self.raw.outputs)
        if recorded is not None:
            self.raw.outputs = [*self.raw.outputs, *(g for g in recorded.values if g is not None)]
        trace.facts.finish(trace.differentiates)
        self.checked = mode.changes
        self.watches = bool(trace.assumed or trace.facts.uncounted)
        self.seconds = {"trace": perf_counter() - self.start}
        self.rooms = dict.fromkeys(rooms(self.raw), FIRST_ROOM)
        matters = history or self.decisions or trace.facts.has_gradients
        self.recording = history is not None if matters else None
        self.name, self.written_at, self.runs, self._guards = owner.__name__, -1, 0, len(trace.guards)
        late = set() if recorded is None else {value.key for value in recorded.cotangents}
        self._compile(owner, leaves, outputs, results, late)
        self._prepare_calls([value for value in self.raw.inputs if value.key not in late])

    def _compile(
        self, owner: Described, leaves: Sequence[Any], outputs: CallOutputs, results: int, late: set[Any]
    ) -> None:
        """Make the program, or load it; with gradients the node that calls put on the caller's tape, too.

        Parameters
        ----------
        results : how many outputs of the graph are no gradients.
        late : keys of inputs that are cotangents.
        """
        start, recorded = perf_counter(), outputs.gradients
        self.op: CompiledOp | None = None
        self.compiled, self._options, self._key = not owner.interpret, owner.options, None
        env = self.env(leaves)
        self.within = None if recorded is not None else budgeted(owner, env)
        self.optimised = Optimised(self.raw, owner.passes, self.within)
        graph, cut = self.optimised.graph, None
        options: tuple[Any, ...] = owner.options.fuse, owner.options.share_memory, owner.memory_budget
        if recorded is not None:
            from static.jit.joint_graph import JointGraph, Making

            options += results, *(value.key for value in recorded.cotangents)
            cut = JointGraph(self.raw, graph, results, recorded.cotangents, owner.memory_budget)
            graph = cut.forward
        if self.compiled and owner.passes is None:
            self._key = program_store.key_of(self.raw, self.trace.dims, options, self.trace.copies)
        stored = None if self._key is None else program_store.load(self._key, owner.options, graph)
        self.executable: Executable | None = stored
        if stored is None:
            given = [*(leaves[i] for i in self.positions), *(source.payload for source in self.trace.captured)]
            self.optimised.optimise(given, late, env)
            self.seconds["passes"] = perf_counter() - start
            start = perf_counter()
        if cut is not None and recorded is not None:
            from static.jit.compiled_node import CompiledOp

            if stored is not None:
                cut.know(stored.notes)
            compiler = partial(program_store.program, options=owner.options) if self.compiled else None
            making = Making(owner.passes, compiler, owner.memory_budget)
            self.op = CompiledOp(owner.__name__, cut, outputs.places, recorded, making, key=self._key)
        if stored is None and self.compiled:
            self.executable = self._lowered()
        if self.executable is not None:
            self.executable.overlaps = self._overlaps
        self.seconds["lower" if stored is None else "disk"] = perf_counter() - start

    def _prepare_calls(self, forward: list[Value]) -> None:
        """Note what each call reads and writes; `forward` are the graph's inputs in a call, without cotangents."""
        written = {effect.state.key for effect in self.raw.effects}
        self.captured = list(zip(forward[len(self.positions) :], self.trace.captured, strict=True))
        # a captured tensor is asked for its data itself: one step less at each call
        self.state = [source.owner if source.kind == "tensor" else source for source in self.trace.captured]
        self._forms = [(source, value.shape, value.dtype) for source, (value, _) in zip(self.state, self.captured)]
        self.writes = [source for value, source in self.captured if value.key in written]
        given_back = set(self.donated.values())
        self.written_leaves = [
            i
            for p, (value, i) in enumerate(zip(self.raw.inputs, self.positions))
            if value.key in written and p not in given_back
        ]
        self._written_inputs = [i for i, value in enumerate(forward) if value.key in written]
        self._objects: Objects | None = None
        self._nest = None if self.shape_of_result else nester(self.out_structure, self.results, self.places)
        self.plain = bool(self.shape_of_result and not (self.writes or self.decisions or self.donated or self.same))
        if self.writes:
            write_log.programs.add(self)

    def _lowered(self) -> Executable:
        """The compiled program, stored for other processes."""
        with going_on:  # another thread may be here
            assert self.program is not None
            program = executable_of(self.program)
        if self._key is not None:
            program_store.save(self._key, program, None if self.op is None else self.op.cut.notes)
        return program

    @property
    def graph(self) -> Graph:
        """The program after the passes; of calls with gradients the forward half."""
        return self.optimised.graph() if self.op is None else self.op.halves.forward

    @property
    def passes(self) -> list[PassReport]:
        """Reports of the passes."""
        return self.optimised.rewritten[1]

    @cached_property
    def program(self) -> LoweredProgram | None:
        """The compiled program with all that explains it; None when interpreted."""
        from static.lowering.lowered_program import LoweredProgram

        return LoweredProgram(self.graph, self._options) if self.compiled else None

    def written_arrays(self) -> list[np.ndarray]:
        """The memory of the state that the program writes; for `common.tensor.write_log`."""
        return [source.payload for source in self.writes]

    def _given(self, argnums: Sequence[int]) -> list[int]:
        """The inputs that are arrays of the arguments with the given numbers."""
        parts, at, found = self.structure[1][0][1], 0, []
        for n, part in enumerate(parts):
            leaves = range(at, at := at + count_leaves(part))
            found += [p for p, i in self.arrays if i in leaves and n in argnums]
        return found

    def env(self, leaves: Sequence[Any]) -> dict[Any, int]:
        """Values of the dimension atoms for the arrays of a call."""
        return {**{("in", p, axis): n for p, i in self.arrays for axis, n in enumerate(leaves[i].shape)}, **self.rooms}

    def make_room(self, need: NeedsRoom) -> None:
        """Let later plans have room for more iterations of a loop."""
        self.rooms[need.atom] *= 4

    def objection(self, leaves: Sequence[Any], env: Mapping[Any, int]) -> str | None:
        """Why this trace does not serve a call; None if it does."""
        for i, value in self.trace.fixed.items():
            if repr(leaves[i]) != repr(value):  # tells -0.0 from 0.0
                return f"argument {i} is {leaves[i]}, the trace used it as the Python number {value}"
        for guard in self.trace.guards:
            if not guard.check(env):
                return f"sizes do not fulfil {guard}"
        return self.state_objection()

    def outgrown(self, env: Mapping[Any, int]) -> bool:
        """Whether gradients traced since then have decided on sizes, otherwise than holds for these."""
        guards = self.trace.guards
        return len(guards) != self._guards and not all(guard.check(env) for guard in guards)

    def facts_objection(self) -> str | None:
        """The first fact of the trace that is different now; None if all hold."""
        if self.checked == mode.changes and not self.trace.facts.uncounted:
            return None
        reason = self.trace.facts.objection()
        if reason is None:
            self.checked = mode.changes
        return reason

    def state_objection(self) -> str | None:
        """Why captured state does not fit the trace any more; None if it does."""
        reason = self.assumption_objection()
        if reason is not None:
            return reason
        for source, shape, dtype in self._forms:
            array = source.payload
            if array.shape != shape or array.dtype != dtype:
                return f"captured state has become {array.dtype}{list(array.shape)}, it was {dtype}{list(shape)}"
        return None

    def assumption_objection(self) -> str | None:
        """The first assumption of the trace that is different now, the forms of arrays aside; None if all hold."""
        reason = self.facts_objection()
        if reason is not None:
            return reason
        for x, was_none in self.trace.assumed.values():
            if (x._grad is None) is not was_none:
                return f"the gradient of a tensor of shape {tuple(x.shape)} {'is set' if was_none else 'is None'} now"
        return self.same.objection()

    def plan(self, env: Mapping[Any, int]) -> Callable[..., Any]:
        """The program for concrete sizes."""
        if self.executable is not None:
            return self.executable.plan(env)
        from static.running.interpreter import Interpreted

        return Interpreted(self.graph, env, self._overlaps)

    def watched(self, leaves: Sequence[Any]) -> Interpreted:
        """The program as it was traced, for the sizes of a call, which looks for results that are not finite."""
        from static.reports.anomaly import Watched

        return Watched(self.raw if self.op is None else self.graph, self.env(leaves), self.name)

    def run(self, plan: Any, arrays: Sequence[Any], keeps: bool, arguments: Sequence[TensorBase], call: Any) -> Any:
        """Run a plan on the arguments' arrays.

        Parameters
        ----------
        keeps : whether none of them may be written over.
        arguments : the tensors among them to differentiate.
        call : positional and named arguments as the caller gave them.
        """
        arrays = list(arrays)
        for p in self.donated.values():
            if keeps or not arrays[p].flags.writeable:
                arrays[p] = arrays[p].copy()
        inputs = [*arrays, *[x.payload for x in self.state]]
        if self.op is None:
            return self.finish(plan(*inputs), arrays, call)
        before = inputs.copy()
        for i in self._written_inputs:
            before[i] = np.array(inputs[i])
        outputs = plan(*inputs)
        tensors = [wrap(x) for x in outputs[: self.returned]]
        result = self.finish(outputs, (), call, tensors)
        edges = tuple(x.edge for x in (*arguments, *self._differentiated))
        self.op.connect(tensors, plan.env, edges, before, outputs)
        return result

    def bind(self, plan: Any, outs: Sequence[np.ndarray] | None = None) -> Callable[..., Any]:
        """A plan as one native call on the arguments alone; results are written to `outs`, if those are given."""
        if self._objects is None:
            self._objects = self._made_objects()
        step: Callable[..., Any] = plan.bind(self._objects, outs)
        take = taker(self.structure[1][0])
        return step if take is None else partial(_taking, take, step)

    def _made_objects(self) -> Objects:
        results = {p: k for k, p in self.donated.items()}
        inputs = [ArgumentPlace(GIVEN, None, results.get(p, -1)) for p in range(len(self.positions))]
        sources = {"tensor": HELD, "grad": HELD_GRAD, "array": HELD}
        inputs += [ArgumentPlace(sources[source.kind], source.owner) for _, source in self.captured]
        one = self.shape_of_result == "one"
        template = Tensor(np.zeros(0))
        return Objects(inputs, self.grad_targets, self.cleared, template, one, True)

    def finish(
        self, outputs: list[np.ndarray], arrays: Sequence[Any], call: Any, tensors: Sequence[Any] | None = None
    ) -> Any:
        """Carry out what concerns Python objects after the program has run, and give its result its structure.

        Parameters
        ----------
        arrays : the arguments' arrays.
        call : the arguments, see `run`.
        tensors : of the returned arrays, where they are made already.
        """
        for x in self.cleared:
            x._grad = None
        returned = self.returned
        for x, array in zip(self.grad_targets, outputs[returned:]):
            x._grad = wrap(array)
        results = outputs[:returned]
        for k, p in sorted(self.donated.items()):
            results.insert(k, arrays[p])
        values = tuple(tensors or map(wrap, results))
        return self.deliver(values[0] if self.shape_of_result == "one" else values, call)

    def deliver(self, values: Any, call: Any) -> Any:
        """Note that the program has run; what the function returns, of its only tensor, or a tuple of them."""
        if self.decisions:
            self.runs += 1
        if self.writes:
            self.written_at = write_log.number_write()
        if self.donated:
            for k in self.donated:
                write_log.log_write((values if self.shape_of_result == "one" else values[k]).payload, *user_frame(3))
        if self.same:
            found = [values] if self.shape_of_result == "one" else list(values)
            self.same.put(found, call, self.env)
            values = found[0] if self.shape_of_result == "one" else tuple(found)
        return values if self._nest is None else self._nest(values)


def _common_case(structure: Any, count: int) -> str:
    """The form of the result: "one" tensor, a flat "tuple" of tensors, or "" for any other."""
    if structure == LEAF and count == 1:
        return "one"
    return "tuple" if structure == (tuple, (LEAF,) * count) else ""


def _taking(take: Callable[..., Any], step: Callable[..., Any], *args: Any) -> Any:
    """Run a step on the leaves of nested arguments, if they are nested as before."""
    leaves = take(args)
    return BAD_ARGUMENT if leaves is None else step(*leaves)
