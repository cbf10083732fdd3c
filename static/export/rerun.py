"""A recorded program as a function: run op by op on the tape, in a trace, it is compiled and differentiated as any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GradientError, StateError
from common.core.polynomials import evaluate, render
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase
from static.export.recorded import RecordedCall
from static.graph.regions import room, rooms
from static.tracing.captured import Captured
from static.tracing.tape_run import TapeRun


class Rerun:
    """A function that does in a trace what a program says.

    Parameters
    ----------
    programs : recorded calls; the first that fits the arguments runs.
    """

    def __init__(self, programs: Sequence[RecordedCall]) -> None:
        self.programs = tuple(programs)
        self.__name__ = self.__qualname__ = self.programs[0].name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The program's results for traced arguments.

        Raises
        ------
        ArgumentError : it was recorded for other arguments, or for other sizes.
        StateError : it was recorded while a `.grad` was None, or was not.
        """
        leaves, structure = flatten((args, kwargs))
        trace: Any = mode.current_trace()
        leaves = [_taken(x, trace) for x in leaves]
        reasons = []
        for program in self.programs:
            reason = _objection(program, structure, leaves, trace)
            if reason is None:
                return run_program(program, leaves, TapeRun(trace, program.quiet))
            reasons.append(reason)
        raise ArgumentError(f"{self.__name__}: {reasons[0]}" + (f" ({len(reasons)} programs)" if reasons[1:] else ""))


def _taken(x: Any, trace: Any) -> Any:
    """Data among the arguments of a call inside another function as tensors."""
    if isinstance(x, np.ndarray):
        return trace.wrap(trace.payload(x))
    return trace.wrap(trace.constant(x)) if type(x) in (int, float) else x


def _objection(program: RecordedCall, structure: Any, leaves: Sequence[Any], trace: Any) -> str | None:
    """Why a program does not serve a call; what it finds out of sizes are guards of the trace."""
    if structure != program.structure:
        return f"the arguments are nested as {structure}, the program was made for {program.structure}"
    sizes: dict[Any, Any] = {}
    for p, (i, value) in enumerate(zip(program.positions, program.graph.inputs, strict=False)):
        x, spec = leaves[i], value.spec
        if not isinstance(x, TensorBase):
            return f"argument {i} is {x!r}, the program was made for {spec}"
        if x.dtype != spec.dtype or x.ndim != spec.ndim or x.payload.spec.weak != spec.weak:
            return f"argument {i} is {x.payload.spec}, the program was made for {spec}"
        for axis, (n, wanted) in enumerate(zip(x.shape, spec.shape, strict=True)):
            if type(wanted) is int and n != wanted:
                return f"size {axis} of argument {i} is {n}, the program was made for {wanted}"
            sizes["in", p, axis] = n
    data = set(program.positions)
    for i, wanted in enumerate(program.leaves):
        if i not in data and (type(leaves[i]) is not type(wanted) or leaves[i] != wanted):
            return f"argument {i} is {leaves[i]!r}, the program was made for {wanted!r}"
    for i, number in program.fixed.items():
        if repr(trace.known_number(leaves[i].payload)) != repr(number):
            return f"argument {i} is another number than {number!r}, which the program was made for"
    for guard in program.guards:
        a, b = evaluate(guard.left, sizes), evaluate(guard.right, sizes)
        if (a == b if guard.relation == "==" else a < b) is not guard.holds:
            relation = "equal" if guard.relation == "==" else "less than"
            told = f"{render(guard.left)} is {relation if guard.holds else 'not ' + relation} {render(guard.right)}"
            if guard.relation == "==" and not guard.holds:
                told = f"{render(guard.left)} is not {render(guard.right)}"
            return f"the program was made for sizes of which {told}"
    return None


def run_program(program: RecordedCall, leaves: Sequence[Any], run: TapeRun) -> Any:
    """TapeRun a program on traced arguments; what it returns.

    Raises
    ------
    StateError : it was recorded while a `.grad` was None, or was not.
    """
    graph, trace = program.graph, run.trace
    if program.custom and mode.is_grad_enabled():
        known = [leaves[i] for i in program.positions] + [source.owner for source in program.captured]
        if any(isinstance(x, TensorBase) and x.edge is not None for x in known):
            raise GradientError(
                f"{program.name} has gradients that are Python functions of its own ({', '.join(program.custom)}), "
                "which are no part of its graph: call it under no_grad()"
            )
    for x, was_none in program.without_grad:
        if (x.grad is None) is not was_none:
            state = "None" if was_none else "set"
            raise StateError(
                f"{program.name} was recorded while the gradient of a tensor of shape {tuple(x.shape)} was {state}, "
                "and it is not now: " + ("call zero_grad() before" if was_none else "record it again")
            )
    given = [leaves[i] for i in program.positions]
    given += [_held(source) for source in program.captured]
    for p, x in enumerate(given[: len(program.positions)]):
        run.env.update({("in", p, axis): n for axis, n in enumerate(x.shape)})
    run.env.update({atom: room(trace.dims, trace.next_id()) for atom in rooms(graph)})
    run.nodes(graph, given)
    for effect in graph.effects:
        target = given[graph.inputs.index(effect.state)]
        trace.set_elements(target, run.values[effect.value.key])
    outputs = [run.tensor(value) for value in graph.outputs]
    first = len(outputs) - len(program.targets)
    for x, grad in zip(program.targets, outputs[first:], strict=True):
        trace.set_grad(x, grad)
    for x in program.cleared:
        trace.set_grad(x, None)
    results, places = list(program.results), iter(program.places)
    for i, x in enumerate(results):
        if x is None:
            results[i] = outputs[next(places)]
    return unflatten(program.out_structure, results)


def _held(source: Captured) -> Any:
    """The owner of a captured input: a tensor, its gradient as the trace sees it, or an array."""
    return source.owner.grad if source.kind == "grad" else source.owner
