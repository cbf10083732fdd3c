"""The trace, and its plan, that serve a call which is not on the path that was tried first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from common.core.bounded import put_within
from static.graph.regions import NeedsRoom
from static.graph.side_effects import Mismatch
from static.running.plan import Plan
from static.tracing.signature import kind

if TYPE_CHECKING:
    from static.jit.traced import CompiledTrace

KEPT_PLANS = 128
"""Plans per function that are kept; each owns the memory of its temporaries."""


class Branching:
    """The part of a function that finds the way when Python's decisions come out otherwise than before."""

    _by_signature: dict[Any, list[CompiledTrace]]
    _by_call: dict[Any, tuple[CompiledTrace, Any]]
    _last: tuple[CompiledTrace, Any] | None
    _after: dict[Any, tuple[CompiledTrace, Any]]
    _fixed: list[int]

    if TYPE_CHECKING:

        def _trace(self, signature: Any, leaves: list[Any], call: tuple[Any, Any], reason: str) -> CompiledTrace: ...

        def _plan(self, traced: CompiledTrace, env: Mapping[Any, int]) -> Any: ...

    @staticmethod
    def converted(target: Callable[..., Any]) -> Callable[..., Any]:
        """The function with its branches and loops as constructs; see `common.convert.runtime`."""
        from common.convert.runtime import convert

        return convert(target)

    def _keep(self, key: Any, hit: tuple[CompiledTrace, Any]) -> None:
        put_within(self._by_call, key, hit, KEPT_PLANS)

    def _other_path(
        self, tried: tuple[CompiledTrace, Any], miss: Mismatch, key: Any, leaves: list[Any], call: tuple[Any, Any]
    ) -> tuple[CompiledTrace, Any]:
        """A trace, and its plan, for a call in which a decision comes out otherwise than in the one that was tried."""
        from static.reports.paths import same_until, told

        traced = tried[0]
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
        if hit is None:
            hit = path, self._plan(path, path.env(leaves))
            self._keep((key, path), hit)
        self._by_call[key] = hit
        if type(hit[1]) is Plan:  # not what interprets while kernels compile
            if len(self._after) >= KEPT_PLANS:
                self._after.clear()
            self._after[traced, miss.decision, miss.bits] = hit
        return hit

    def _with_more_room(
        self, traced: CompiledTrace, need: NeedsRoom, key: Any, leaves: list[Any]
    ) -> tuple[CompiledTrace, Any]:
        """A plan in which a loop may run more often; plans with less room are forgotten."""
        traced.make_room(need)
        self._after.clear()
        self._by_call = {k: hit for k, hit in self._by_call.copy().items() if hit[0] is not traced}
        plan = traced.plan(traced.env(leaves))
        self._by_call[key] = traced, plan
        if self._last is not None and self._last[0] is traced:
            self._last = traced, plan
        return traced, plan
