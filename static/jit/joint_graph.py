"""A program and its gradients as two halves that run at different times: their graphs, residuals and plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.bounded import put_within
from common.core.garbage import collecting_later
from common.core.lazy import cached_property
from static.graph import Graph, Value
from static.graph.regions import FIRST_ROOM, NeedsRoom, rooms
from static.passes import Pass
from static.passes.partition import Halves, split
from static.running.interpreter import Interpreted
from static.running.program_store import Key, Notes

KEPT_PLANS = 128
"""Plans of a program that are kept."""


class Making(NamedTuple):
    """How the programs of a function are made.

    Attributes
    ----------
    passes : the user's own, if there are some.
    compiler : gives the program of a graph that is made when needed, and is stored under a key if it has one, see
        `static.running.program_store.program`; None interprets it.
    budget : see `static.passes.partition.split`.
    """

    passes: Sequence[Pass] | None
    compiler: Callable[..., Any] | None
    budget: int | None


class Saves(NamedTuple):
    """The saved values of a node, behind which come the inputs of the forward half.

    Attributes
    ----------
    outputs : those of the forward half that are kept.
    reads : which of all that is saved the backward half takes.
    """

    outputs: list[int]
    reads: list[int]


class JointGraph:
    """A program with its gradients, cut in two when somebody asks for the halves.

    Parameters
    ----------
    raw : as it was traced.
    joint : gives it after passes.
    results : how many of its outputs are results of the program; the others are gradients.
    cotangents : inputs, see `static.passes.partition.split`; `budget` too.

    Attributes
    ----------
    rooms : atoms of sizes that no argument has.
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
        self.results, self._late, self.rooms = results, {value.key for value in cotangents}, rooms(raw)

    def know(self, notes: Any) -> None:
        """Take over what `notes` was in another process."""
        self._known = Saves(*notes)

    @property
    def notes(self) -> tuple[Any, ...]:
        """The saved values of a node, as plain data."""
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
        """The saved values of a node."""
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
    key, notes : under which the program is stored, and with what.
    """

    def __init__(
        self,
        make: Callable[[], Graph],
        atoms: Sequence[Any],
        compiler: Callable[..., Any] | None,
        key: Key | None,
        notes: Notes | None = None,
    ) -> None:
        self._make, self._compiler, self._stored = make, compiler, (key, notes)
        self._rooms = dict.fromkeys(atoms, FIRST_ROOM)
        self._plans: dict[Any, Any] = {}

    def load(self) -> None:
        """Have the program now, and with it what is noted."""
        assert (self.program is None) is (self._compiler is None)

    @cached_property
    def program(self) -> Any:
        """The compiled program, made when it is first asked for; None when interpreted."""
        with collecting_later():
            return None if self._compiler is None else self._compiler(self._make, *self._stored)

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
        known = self._plans.get(key)
        if known is None:
            made = Interpreted(self._make(), env) if self.program is None else self.program.plan(env)
            return put_within(self._plans, key, made, KEPT_PLANS)
        return known
