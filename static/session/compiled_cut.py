"""A cut of a graph, compiled: once for its fetches and feeds, planned once per size."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from common.core import mode
from common.core.allocation import allocation_error, too_large
from common.core.bounded import put_within
from common.core.lazy import cached_property
from static.graph.regions import FIRST_ROOM, NeedsRoom, rooms
from static.lowering.ir.options import CompileOptions
from static.reports.anomaly import Watched
from static.running import program_store
from static.running.interpreter import Interpreted
from static.session.cut import Cut
from static.tracing.optimised import Optimised

if TYPE_CHECKING:
    from static.graph import Graph
    from static.lowering.lowered_program import LoweredProgram
    from static.passes import PassReport
    from static.running.executable import Executable

KEPT_PLANS = 128


class Variant:
    """The program for feeds in which the same sizes are 1, those that follow from others included.

    Attributes
    ----------
    ones : the sizes that are 1.
    raw : the graph before the passes.
    executable : what is run of the compiled program; None where it is interpreted.
    seconds : what passes and lowering took, or to find it on the disk.
    start : `time.perf_counter` before both.
    rooms : iterations for which there is room, per loop whose number of iterations depends on data.
    """

    def __init__(self, cut: Cut, env: dict[Any, int], options: CompileOptions, interpret: bool) -> None:
        with mode.activate_trace(None):
            self.ones = _ones(env)
            self.raw, sizes = cut.program(env)
            self._guards = sizes.guards
            self.rooms = dict.fromkeys(rooms(self.raw), FIRST_ROOM)
            self._optimised, self._options, self.start = Optimised(self.raw, None), options, perf_counter()
            self.executable: Executable | None = None
            if not interpret:
                key = program_store.key_of(self.raw, sizes, (options.fuse,))
                self.executable = program_store.program(self._optimised.graph, key, options=options)
            seconds = perf_counter() - self.start
            if self.executable is not None and self.executable.is_stored:
                self.seconds = {"disk": seconds}
            else:
                passes = sum(report.seconds for report in self.passes)
                self.seconds = {"passes": passes, "lower": max(0.0, seconds - passes)}

    def serves(self, env: dict[Any, int]) -> bool:
        """Whether it is the program for some sizes."""
        return self.ones == _ones(env) and all(guard.check(env) for guard in self._guards.values())

    @property
    def graph(self) -> Graph:
        """The program after the passes."""
        return self._optimised.graph()

    @property
    def passes(self) -> list[PassReport]:
        """Reports of the passes."""
        return self._optimised.rewritten[1]

    @cached_property
    def program(self) -> LoweredProgram | None:
        """The compiled program with all that explains it; None where it is interpreted."""
        return None if self.executable is None else self.executable.lowered

    def plan(self, env: dict[Any, int]) -> Any:
        """The program for concrete sizes."""
        sizes = {**env, **self.rooms}
        return Interpreted(self.graph, sizes) if self.executable is None else self.executable.plan(sizes)


def _ones(env: dict[Any, int]) -> frozenset[Any]:
    return frozenset([atom for atom, n in env.items() if n == 1])


class Compiled:
    """A cut and its programs.

    Attributes
    ----------
    cut : what is run.
    variants : one per set of sizes that are 1, be they given or derived.
    plans_made : how many sizes have been planned.
    """

    def __init__(self, cut: Cut, options: CompileOptions, interpret: bool) -> None:
        self.cut, self._options, self._interpret = cut, options, interpret
        self.variants: list[Variant] = []
        self.plans_made = 0
        self._plans: dict[Any, tuple[Variant, Any, dict[Any, int]]] = {}

    def plan(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """The plan for feeds of these shapes; compiles nothing if only sizes are new, and not far larger."""
        return self.planned(shapes)[1]

    def planned(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[Variant, Any, dict[Any, int]]:
        """The program for feeds of these shapes, the plan, and the sizes."""
        hit = self._plans.get(shapes)
        if hit is None:
            env = self.cut.sizes(shapes)
            variant = next((known for known in self.variants if known.serves(env)), None)
            if variant is None:
                variant = Variant(self.cut, env, self._options, self._interpret)
                self.variants.append(variant)
            hit = put_within(self._plans, shapes, (variant, self._new_plan(variant, env), env), KEPT_PLANS)
        return hit

    def _new_plan(self, variant: Variant, env: dict[Any, int]) -> Any:
        self.plans_made += 1
        try:
            return variant.plan(env)
        except (MemoryError, OverflowError, ValueError) as error:
            if too_large(error):
                raise allocation_error("Session.run", error) from error
            raise

    def run(
        self, feeds: Sequence[np.ndarray], others: Sequence[np.ndarray], watched: bool = False
    ) -> tuple[Any, list[np.ndarray]]:
        """Run the plan for these feeds.

        Parameters
        ----------
        others : the arrays of the states, and the constants.
        watched : run it op by op, and look for what is not finite, see `static.reports.anomaly`.

        Returns
        -------
        plan, outputs
        """
        shapes = tuple(x.shape for x in feeds)
        while True:
            variant, plan, env = self.planned(shapes)
            if watched:
                plan = Watched(variant.raw, {**env, **variant.rooms}, "Session.run")
            try:
                return plan, plan(*feeds, *others)
            except NeedsRoom as need:
                variant.rooms[need.atom] *= 4
                self._plans = {k: hit for k, hit in self._plans.items() if hit[0] is not variant}
                self._plans[shapes] = variant, self._new_plan(variant, env), env
            except (MemoryError, OverflowError, ValueError) as error:
                if too_large(error):
                    raise allocation_error("Session.run", error) from error
                raise
