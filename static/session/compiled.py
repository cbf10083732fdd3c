"""A cut of a graph, compiled: once for its fetches and feeds, planned once per size."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from common import mode
from common.diagnose import allocation_error, too_large
from static.passes import run_passes
from static.regions import FIRST_ROOM, NeedsRoom, rooms
from static.running.interpreter import Interpreted
from static.session.cut import Cut
from static.tools.anomaly import Watched

KEPT_PLANS = 128


class Variant:
    """The program for feeds in which the same sizes are 1.

    Attributes
    ----------
    raw, graph : before and after the passes.
    program : what the compiler makes of it; None where it is interpreted.
    seconds : what passes and lowering took.
    rooms : iterations for which there is room, per loop whose number of iterations depends on data.
    """

    def __init__(self, cut: Cut, env: dict[Any, int], fuse: bool, interpret: bool) -> None:
        from static.program import compile_graph

        with mode.activate_trace(None):
            self.raw = cut.program(env)
            self.rooms = dict.fromkeys(rooms(self.raw), FIRST_ROOM)
            start = perf_counter()
            self.graph, self.passes = run_passes(self.raw)
            middle = perf_counter()
            self.program = None if interpret else compile_graph(self.graph, fuse=fuse)
            self.seconds = {"passes": middle - start, "lower": perf_counter() - middle}

    def plan(self, env: dict[Any, int]) -> Any:
        """The program for concrete sizes."""
        sizes = {**env, **self.rooms}
        return Interpreted(self.graph, sizes) if self.program is None else self.program.plan(sizes)


class Compiled:
    """A cut and its programs.

    Attributes
    ----------
    cut : what is run.
    variants : one per set of sizes that are 1.
    plans_made : how many sizes have been planned.
    """

    def __init__(self, cut: Cut, fuse: bool, interpret: bool) -> None:
        self.cut, self._fuse, self._interpret = cut, fuse, interpret
        self.variants: dict[Any, Variant] = {}
        self.plans_made = 0
        self._plans: dict[Any, tuple[Variant, Any, dict[Any, int]]] = {}

    def plan(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """The plan for feeds of these shapes; compiles nothing if only sizes are new."""
        return self.planned(shapes)[1]

    def planned(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[Variant, Any, dict[Any, int]]:
        """The program for feeds of these shapes, the plan, and the sizes."""
        hit = self._plans.get(shapes)
        if hit is None:
            env = self.cut.sizes(shapes)
            ones = frozenset(atom for atom, n in env.items() if n == 1)
            variant = self.variants.get(ones)
            if variant is None:
                variant = self.variants[ones] = Variant(self.cut, env, self._fuse, self._interpret)
            while len(self._plans) >= KEPT_PLANS:
                self._plans.pop(next(iter(self._plans)), None)
            hit = self._plans[shapes] = variant, self._new_plan(variant, env), env
        return hit

    def _new_plan(self, variant: Variant, env: dict[Any, int]) -> Any:
        self.plans_made += 1
        try:
            return variant.plan(env)
        except (MemoryError, OverflowError, ValueError) as error:
            if isinstance(error, OverflowError) or too_large(error):
                raise allocation_error("Session.run", error) from error
            raise

    def run(
        self, feeds: Sequence[np.ndarray], others: Sequence[np.ndarray], watched: bool = False
    ) -> tuple[Any, list[np.ndarray]]:
        """Run the plan for these feeds.

        Parameters
        ----------
        others : the arrays of the states, and the constants.
        watched : run it op by op, and look for what is not finite, see `static.tools.anomaly`.

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
            except (MemoryError, ValueError) as error:
                if too_large(error):
                    raise allocation_error("Session.run", error) from error
                raise
