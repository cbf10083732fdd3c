"""The rungs from define-by-run to define-then-run: one program, run in ever more compiled ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import bits
from benchmarks.draws import Draws
from benchmarks.lab.arguments import floating
from benchmarks.lab.ways import Way
from benchmarks.workload import Inputs, Program, Workload

RECORDING, NO_GRAD, RAW, PASSES, SINGLE, FUSED, PLANNED = (
    "eager", "eager, no_grad", "graph, node by node", "graph after passes", "a kernel per node", "fused",
    "memory planned",
)  # fmt: skip
STATIC: dict[str, dict[str, Any]] = {
    RAW: {"interpret": True, "passes": ()},
    PASSES: {"interpret": True},
    SINGLE: {"fuse": False, "share_memory": False},
    FUSED: {"share_memory": False},
    PLANNED: {},
}
"""The options of `static.function` that make each rung."""
MEANING = {
    RECORDING: "the program as written, each op at once, a tape beside it",
    NO_GRAD: "the same without a tape",
    RAW: "the traced graph, each node by its eager kernel, without your Python",
    PASSES: "the same after the passes",
    SINGLE: "compiled, a loop per node, each value in memory of its own",
    FUSED: "compiled, neighbours share loops",
    PLANNED: "compiled, values share memory: what static.function does",
}


@dataclass
class Rung:
    """One way of running the program.

    Attributes
    ----------
    name : a key of `MEANING`, or of the rung with threads.
    call, inputs : what is timed.
    program : whose state it changes.
    way : of a compiled or interpreted rung, what made its functions.
    draws : the random states in which it begins.
    """

    name: str
    call: Callable[..., Any]
    inputs: Sequence[tuple[Any, ...]]
    program: Program
    way: Way | None = None
    draws: Draws = field(default_factory=Draws)

    @property
    def function(self) -> Any:
        """The function that has been traced; None if there is not exactly one."""
        traced = [] if self.way is None else [f for f in self.way.made if getattr(f, "traces", None)]
        return traced[0] if len(traced) == 1 else None


def climb(workload: Workload, dynamic: ModuleType, static: ModuleType) -> Iterator[Rung]:
    """Yield the rungs that a program has, fresh and warmed by one call.

    A program that differentiates cannot run without a tape; that rung is left out.
    """
    inputs = workload.inputs()
    itself = differentiates(workload, dynamic)
    eager = workload.make(dynamic)
    # without a gradient of its own there is a tape only if something requires one
    recorded = inputs if itself or eager.named_parameters else [_requiring(dynamic, x) for x in inputs]
    yield Rung(RECORDING, eager.call, recorded, eager)
    if not itself:
        plain = workload.make(dynamic)
        yield Rung(NO_GRAD, dynamic.no_grad()(plain.call), inputs, plain)
    for name, options in STATIC.items():
        way = Way(static, **options)
        program = workload.make(way)
        call = program.call if itself else static.no_grad()(program.call)
        if not itself and not eager.named_parameters:
            call = program.call  # nothing requires grad: the context manager would only cost
        yield Rung(name, call, inputs, program, way)


def differentiates(workload: Workload, dynamic: ModuleType) -> bool:
    """Whether a program makes a backward pass: then it cannot run under no_grad."""
    program = workload.make(dynamic)
    found = []
    with dynamic.profiler.profile() as profile:
        program.call(*workload.inputs()[0])
    found = [event for event in profile.events() if event.kind in ("backward", "rule")]
    return bool(found)


def differences(workload: Workload, first: Rung, rung: Rung) -> list[str]:
    """Return how the results and the state of a rung differ from the first one's, of the first step that does.

    Both must be fresh. Gradients that eager recording leaves in arguments are no results.
    """
    for number, (mine, theirs) in enumerate(islice(cycle(zip(first.inputs, rung.inputs)), bits.STEPS), start=1):
        found = [
            {**workload.results(r.draws(r.call, *x)), **r.program.gradients()}
            for r, x in ((first, mine), (rung, theirs))
        ]
        lines = list(bits.unequal(f"step {number}", *found))
        if lines:
            return [f"{lines[0]}; {why}" for why in first.draws.warning()] or lines
    return list(bits.unequal(f"after step {bits.STEPS}", first.program.state(), rung.program.state()))


def _requiring(tw: ModuleType, inputs: Inputs) -> tuple[Any, ...]:
    """The arguments as tensors that require grad, where they can."""
    positions = floating(inputs)
    return tuple(
        tw.tensor(x, requires_grad=i in positions) if isinstance(x, np.ndarray) else x for i, x in enumerate(inputs)
    )
