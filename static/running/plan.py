"""A program for concrete sizes: memory, kernel arguments, and one native call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NoReturn

import numpy as np

from common.core.errors import ArgumentError, ShapeError, TraceError
from common.core.polynomials import Atom
from common.core.weak import Alive
from common.evaluate.native_results import raise_status
from common.runtime.argument_checks import ArgumentCheck
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, LEFT, LEFT_FRESH, MADE, ArgumentPlace, Binding
from common.runtime.builtins import make_run, make_step
from common.runtime.execute_text import INTERRUPTED
from common.runtime.program_plan import ProgramPlan, RunFailure, explain_failure
from common.runtime.thread_pool import get_num_threads, on_change
from common.runtime.unlocked import FreeProgram, make_free
from static.graph.regions import NeedsRoom
from static.graph.side_effects import Mismatch
from static.lowering.ir.control_steps import Act, LoopStep
from static.lowering.memory.arena import ALIGNMENT
from static.lowering.memory.call_table import ANY_INDEX, TableArgument
from static.lowering.memory.layout import lay_out, numbers
from static.running.native_form import Planned
from static.running.python_calls import FAILED, OTHER_PATH, ROOM

_plans: Alive[Plan] = Alive()


def _rebuild_all() -> None:
    for plan in list(_plans):
        plan.rebuild()


on_change(_rebuild_all)


class Objects:
    """Python objects that a bound program reads, changes or makes: see `common.runtime.bound_program.Binding`.

    Parameters
    ----------
    inputs : where the last inputs come from; the others are given. Those that results are written over are results.
    tensors : see `common.runtime.bound_program.Binding`.

    Attributes
    ----------
    bindings : those of plans, by what differs between them.
    """

    def __init__(
        self,
        inputs: Sequence[ArgumentPlace],
        grads: Sequence[Any],
        cleared: Sequence[Any],
        template: Any,
        one: bool,
        tensors: bool = False,
    ) -> None:
        self.inputs, self.grads, self.cleared, self.template, self.one = inputs, grads, cleared, template, one
        self.tensors = tensors
        self.bindings: dict[Any, Binding] = {}


class Plan:
    """A program with all sizes known; call it with arrays in the order of the graph's inputs.

    Attributes
    ----------
    whole, program : as one thread runs it, and as all that share its loops do.
    env : the sizes for which it was made.
    arena_bytes : size of the memory for temporaries and constants.
    layout, arena : where the temporaries lie, and in what memory.
    shares : whether threads share its loops.
    version : how often everything was laid out anew.
    call : the program as one call on the arguments alone, with new results, see `bind`; None before it is made.
    step : the same, if it may be called whenever no fact has changed.

    Parameters
    ----------
    keeps : whether calls find what an earlier one has made of sizes only: not for calls at the same time.
    """

    def __init__(self, program: Planned, env: Mapping[Atom, int], keeps: bool = True) -> None:
        self.whole, self.env, self.version, self._keeps = program, dict(env), 0, keeps
        self._build()
        _plans.add(self)

    def _build(self) -> None:
        """Lay everything out for the present number of threads."""
        threads, env = get_num_threads(), self.env
        self.shares = threads > 1
        self.program = program = self.whole.for_threads if self.shares else self.whole
        self.layout = layout = lay_out(program.frame, env, threads, program.memory.may_keep if self._keeps else 0)
        found, cuts = numbers(program.frame, layout)
        self._form = form = program.form(layout, len(found), tuple(cuts))
        self._allocate = [
            allocate or program.memory.allocator(i, tuple([layout.values[n] for n in x.shape]), x.dtype)
            for i, (allocate, x) in enumerate(zip(form.allocators, program.frame.outputs, strict=True))
        ]
        self.arena_bytes = layout.total
        self.arena = arena = program.memory.arena(layout.total + ALIGNMENT)
        address = arena.__array_interface__["data"][0]
        self._native, self._host = form.at(found, arena, address + -address % ALIGNMENT, program.memory.keep)
        self._run: Callable[..., int] = self._first_run
        self.step: Callable[..., Any] | None = None
        self.call: Callable[..., Any] | None = None
        self._stale = False

    def _first_run(self, *arrays: Any) -> int:
        """Run the program as a call on all its arrays, made when somebody needs it."""
        self._run = make_run(self._native)
        if self._host is not None:
            self._run = self._host.locked(self._run, self.program.memory.lock)
        return self._run(*arrays)

    def rebuild(self) -> None:
        """Lay everything out anew before the next call."""

        def run(*arrays: Any) -> int:
            self._build()
            return self._run(*arrays)

        self._run, self.step, self.call, self._stale = run, None, None, True
        self.version += 1

    # ---------------------------------------------------------------- running
    def __call__(self, *arrays: Any, outs: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """Run the program; state arrays are written if it succeeds.

        Parameters
        ----------
        arrays : the inputs.
        outs : the first outputs, where they are given.

        Returns
        -------
        list of ndarray
            The outputs; none of them shares memory with anything else.

        Raises
        ------
        ShapeError, ArgumentError : an array does not have the planned shape or dtype, or is not writeable.
        ArgumentError, IndexRangeError, DivisionByZeroError : as the ops raise them, with the user's line.
        """
        outputs = [*outs, *[allocate() for allocate in self._allocate[len(outs) :]]]
        code = self._code(*arrays, *outputs)
        if code:
            self._recover(list(arrays), outputs, explain_failure(code))
        return outputs

    def _code(self, *arrays: Any) -> int:
        """The code with which a run ends that nobody interrupts: after Ctrl-C its handler raises, or we begin again."""
        while True:
            code = self._run(*arrays)
            if code & 0xFFFFFFFF != INTERRUPTED:
                return code

    def bind(self, objects: Objects, outs: Sequence[np.ndarray] | None = None) -> Callable[..., Any]:
        """The program as one call on the arguments alone, which finds state and leaves gradients by itself.

        Parameters
        ----------
        outs : the arrays to which results are written; new ones by default.
        """
        if self._stale:
            self._build()
        results = self._allocate[: len(self._allocate) - len(objects.grads)]
        given = tuple([outs is None and not isinstance(allocate, partial) for allocate in results])
        pooled = [allocate for allocate, is_given in zip(results, given) if is_given]
        key = self.program.outlasts, given
        binding = objects.bindings.get(key) if outs is None else None
        if binding is None:
            binding = self._binding(objects, outs, *key)
            if outs is None:
                objects.bindings[key] = binding
        step = make_step(self._native, binding)
        if self._host is not None:
            step = self._host.locked(step, self.program.memory.lock)
        return (lambda *given: step(*given, *[allocate() for allocate in pooled])) if pooled else step

    def _binding(
        self, objects: Objects, outs: Sequence[np.ndarray] | None, safe: frozenset[int], given: Sequence[bool]
    ) -> Binding:
        """The objects of a call.

        Parameters
        ----------
        safe : the outputs whose memory may be that of old gradients.
        given : which results are arrays that the caller allocates.
        """
        inputs = objects.inputs
        places = [*[ArgumentPlace(GIVEN)] * (len(self.program.frame.inputs) - len(inputs)), *inputs]
        taken = {place.result for place in inputs}
        free = (i for i in count() if i not in taken)
        for i, is_given in enumerate(given):
            source = GIVEN if is_given else MADE if outs is None else HELD
            places.append(ArgumentPlace(source, None if outs is None else outs[i], next(free)))
        read = {id(place.owner) for place in inputs if place.source == HELD_GRAD}
        for i, owner in enumerate(objects.grads, len(given)):
            places.append(ArgumentPlace(LEFT if i in safe and id(owner) not in read else LEFT_FRESH, owner))
        template, one, tensors = objects.template, objects.one, objects.tensors
        return Binding(places, len(self._allocate), objects.cleared, template, one, tensors)

    def alone(self) -> Plan:
        """A plan like this one whose calls leave nothing for others: they may run at the same time."""
        return Plan(self.whole, self.env, keeps=False)

    def free(self, state: Sequence[Any]) -> FreeProgram:
        """The program for callers without Python's lock; `state` is where the inputs behind the arguments are found.

        Raises
        ------
        TraceError : it prints, asserts or has a callback, which is done by Python.
        """
        if self._stale:
            self._build()
        if self._host is not None:
            raise TraceError(
                "a program that prints, asserts, has a pure_callback or calls LAPACK cannot run without Python's lock"
            )
        given = len(self._native.arguments) - len(state) - len(self._allocate)
        sources = [*[None] * given, *state, *[None] * len(self._allocate)]
        return make_free(self._native, sources, self.arena_bytes)

    @property
    def native(self) -> ProgramPlan:
        """The instructions for its sizes."""
        if self._stale:
            self._build()
        return self._native

    @property
    def calls_python(self) -> bool:
        """Whether it prints, asserts or has callbacks."""
        return self._host is not None

    @property
    def arguments(self) -> list[ArgumentCheck]:
        """Checks of the inputs, then of the outputs."""
        return self._native.exact_arguments()

    def failures(self) -> Iterator[tuple[int, int, Exception]]:
        """First and last of the codes with which a run can end, and what they mean."""
        for position, call in enumerate(self._form.calls):
            statuses = [status for status in call.errors if status] if call.source else [ROOM, OTHER_PATH]
            whole = call.wrong_index is not None  # as many statuses as indices
            for status in [ANY_INDEX] if whole else statuses:
                try:
                    self._raise(RunFailure("status", position, status))
                except Exception as error:
                    first = (position + 1) << 32
                    yield first | (1 if whole else status), first | (0xFFFFFFFF if whole else status), error

    def explain(self, code: int, room: bool = False) -> None:
        """Raise what the code of a step says if an op has failed; its arguments may do for the general path if not.

        Parameters
        ----------
        room : whether to raise, too, that a loop needs more room; by default the general path does.

        Raises
        ------
        ArgumentError, IndexRangeError, DivisionByZeroError : as the ops raise them, with the user's line.
        Mismatch : the program is not the one for these arrays.
        """
        failure = explain_failure(code)
        if failure.kind == "status" and failure.status not in ((INTERRUPTED,) if room else (ROOM, INTERRUPTED)):
            self._raise(failure)

    def _recover(self, given: list[Any], outputs: list[np.ndarray], failure: RunFailure) -> None:
        """Copy arguments whose layout or overlap the native call refuses, and run again; or raise."""
        if failure.kind == "status":
            self._raise(failure)
        back, arrays, inputs, written = [], given.copy(), self.program.frame.inputs, self._form.written
        if len(arrays) != len(inputs):
            raise ArgumentError(f"the program takes {len(inputs)} arrays, got {len(arrays)}")
        arrays[:] = [self._accepted(i, x, inputs[i]) for i, x in enumerate(arrays)]
        read_where_written = {i for _, i in self.whole.overlaps.check(given, written)}
        every = frozenset(written)
        for i, x in enumerate(given):
            if i in every:
                if not x.flags.writeable:
                    raise ArgumentError(f"array {i} is written by the program, but it is read-only")
                if arrays[i] is not x:
                    back.append((x, arrays[i]))
            elif i in read_where_written and arrays[i] is x:
                arrays[i] = x.copy()
        code = self._code(*arrays, *outputs)
        if code:
            again = explain_failure(code)
            if again.kind == "overlap" and again.position >= len(arrays):
                raise ArgumentError(
                    f"array {again.position - len(arrays)} for results overlaps an argument, state or another one"
                )
            if again.kind != "status":
                raise ArgumentError(f"argument {again.position} of the program is not acceptable ({again.kind})")
            self._raise(again)
        for target, value in back:
            target[...] = value

    def _accepted(self, position: int, x: Any, wanted: TableArgument) -> np.ndarray:
        shape = tuple([self.layout.values[i] for i in wanted.shape])
        if np.shape(x) != shape:
            raise ShapeError(f"array {position} has shape {np.shape(x)}, the program was planned for {shape}")
        if wanted.number:
            return wanted.dtype.type(x).item()
        if not isinstance(x, (np.ndarray, np.generic)):
            raise ArgumentError(f"argument {position} is a {type(x).__name__}, the program takes arrays")
        if x.dtype != wanted.dtype:
            raise ArgumentError(f"array {position} has dtype {x.dtype}, the program takes {wanted.dtype}")
        if type(x) is np.ndarray and x.flags.c_contiguous and x.flags.aligned:
            return x
        return np.require(np.asarray(x), wanted.dtype.newbyteorder("="), ["C", "A"])

    def _raise(self, failure: RunFailure) -> NoReturn:
        call, status = self._form.calls[failure.position], failure.status
        if self._host is not None and status == FAILED:
            raise self._host.raised()
        if isinstance(call.construct, LoopStep) and status == ROOM:
            raise NeedsRoom(call.construct.room)
        if isinstance(call.construct, Act) and status == OTHER_PATH:
            bits = int(self._native.words[self._form.observed[failure.position]])
            raise Mismatch(call.construct.attrs["decision"], bits)
        text, number = call.message(status, self.env)
        node = self.program.node(number)
        assert node.op is not None
        file, line, _ = node.source
        try:
            raise_status(node.op, {status: text}, status)
        except Exception as error:
            error.args = (f"{error.args[0] if error.args else ''}\n  in {file}:{line}", *error.args[1:])
            raise
        raise AssertionError("a status always raises")
