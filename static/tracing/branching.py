"""Which trace, and which plan of it, serves a call that is not on the path that was tried first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from static.acts import Mismatch
from static.graph.regions import NeedsRoom
from static.running.plan import Plan
from static.tracing.forks import Fork, Rest, fork_of
from static.tracing.paths import same_until, told
from static.tracing.signature import kind

if TYPE_CHECKING:
    from static.lowering.options import Options
    from static.tracing.traced import Traced

KEPT_PLANS = 128
"""Plans per function that are kept; each owns the memory of its temporaries."""

SECOND = 2
"""Change of path from which on a common beginning is a program of its own, where that pays."""


class Forked:
    """What is known of the changes of path of calls with equal sizes: how many there were, and the fork, if it pays."""

    __slots__ = ("changes", "traces", "fork")

    def __init__(self) -> None:
        self.changes, self.traces = 0, 0
        self.fork: Fork | None = None


class Branching:
    """The part of a function that finds the way when Python's decisions come out otherwise than before."""

    options: Options
    interpret: bool
    compile: str
    passes: Any
    _by_signature: dict[Any, list[Traced]]
    _by_call: dict[Any, tuple[Traced, Any]]
    _last: tuple[Traced, Any] | None
    _after: dict[Any, tuple[Traced, Any]]
    _forks: dict[Any, Forked]
    _made: dict[tuple[Traced, ...], Fork | None]
    _fixed: list[int]

    if TYPE_CHECKING:

        def _trace(self, signature: Any, leaves: list[Any], call: tuple[Any, Any], reason: str) -> Traced: ...

        def _plan(self, traced: Traced, env: Mapping[Any, int]) -> Any: ...

    def _keep(self, key: Any, hit: tuple[Traced, Any]) -> None:
        while len(self._by_call) >= KEPT_PLANS and key not in self._by_call:
            self._by_call.pop(next(iter(self._by_call)), None)
        self._by_call[key] = hit

    def _other_path(
        self, tried: tuple[Traced, Any], miss: Mismatch, key: Any, leaves: list[Any], call: tuple[Any, Any]
    ) -> tuple[Traced, Any]:
        """A trace, and its plan, for a call in which a decision comes out otherwise than in the one that was tried."""
        traced, plan = tried
        if type(plan) is not Rest:
            self._keep((key, traced), tried)
        signature = (*call, *map(kind, leaves))
        known = self._by_signature[signature]
        branch = [x for x in known if same_until(x, traced, miss) and x.objection(leaves, x.env(leaves)) is None]
        # in a chain of paths, of a loop that runs once, twice, ..., the longest is at most one step from the right one
        path = max(branch, key=lambda x: len(x.decisions), default=None)
        if path is None:
            path = self._trace(signature, leaves, call, told(traced, miss))
            if any(i not in self._fixed for i in path.trace.fixed):  # the key does not say enough
                return path, self._plan(path, path.env(leaves))
        hit = self._by_call.get((key, path))
        if hit is None or hit[1].outdated:
            hit = path, self._plan(path, path.env(leaves))
            self._keep((key, path), hit)
        self._by_call[key] = hit
        if type(plan) is Rest:
            return path, plan.other(path) or hit[1]
        if self._fork(key, path, leaves, known):
            self._last = None
            return hit
        if type(hit[1]) is Plan:  # not what interprets while kernels compile
            if len(self._after) >= KEPT_PLANS:
                self._after.clear()
            self._after[traced, miss.decision, miss.bits] = hit
        return hit

    def _fork(self, key: Any, path: Traced, leaves: list[Any], known: list[Traced]) -> bool:
        """Whether the next calls begin with the common beginning of the paths, after a change to `path`."""
        if len(self._forks) >= KEPT_PLANS:
            self._forks.clear()
            self._made.clear()
        found = self._forks.setdefault(key, Forked())
        found.changes += 1
        if found.changes < SECOND:
            return True  # not decided: the next change is to be seen, too
        if found.traces != len(known):
            found.traces = len(known)
            serving = tuple(x for x in known if x.objection(leaves, x.env(leaves)) is None)
            if serving not in self._made:
                self._made[serving] = (
                    fork_of(serving, self.options) if self.compile == "now" and self.passes is None else None
                )
            found.fork = self._made[serving]
        if found.fork is None:
            return False
        found.fork.begins(path)
        return True

    def _settled(self, key: Any) -> bool:
        """Whether the path of a call may be tried first at the next one."""
        found = self._forks.get(key)
        return found is None or found.fork is None or not found.fork.active

    def _forked(self, key: Any, leaves: list[Any]) -> tuple[Traced, Any] | None:
        """The path of a call, and the rest of it as a plan, after the common beginning has run; None if it does not."""
        fork = self._forks[key].fork if key in self._forks else None
        return fork.run(leaves) if fork is not None and fork.active else None

    def _with_more_room(self, traced: Traced, need: NeedsRoom, key: Any, leaves: list[Any]) -> tuple[Traced, Any]:
        """A plan in which a loop may run more often; plans with less room are forgotten."""
        traced.make_room(need)
        self._after.clear()
        self._by_call = {k: hit for k, hit in self._by_call.items() if hit[0] is not traced}
        plan = traced.plan(traced.env(leaves))
        self._by_call[key] = traced, plan
        if self._last is not None and self._last[0] is traced:
            self._last = traced, plan
        return traced, plan
