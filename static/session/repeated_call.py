"""Fetches and feeds that have been run before, and functions of feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.core.tree import LEAF, unflatten
from common.runtime.bound_program import HELD, ArgumentPlace
from common.tensor import write_log
from common.tensor.leaf import Buffer
from common.tensor.observers import observed
from static.running.plan import Objects, Plan
from static.session.compiled_cut import Compiled

if TYPE_CHECKING:
    from static.session.run_program import RunProgram
    from static.tools.replay import TracedCall

REFUSED = object()
"""The result of a call that has done nothing."""


class SessionState(Protocol):
    """A session, as far as its calls need it; see `static.session.session.Session`."""

    graph: Any
    version: int

    def owns(self, state: Any) -> bool:
        """Whether a state has a value of the session's own."""
        ...

    def owners(self, cut: Any) -> list[Any]:
        """Owners of the inputs behind the feeds."""
        ...

    def newly(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> tuple[RepeatedCall | None, Any]:
        """The fetched values, and a repeated call for the next time."""
        ...

    def program(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> RunProgram:
        """The compiled program of a run."""
        ...

    def replayed(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> TracedCall:
        """A run for tools that run it op by op."""
        ...


class RepeatedCall:
    """Fetches and feeds that have been run before, as one native call for the sizes of the last time.

    Attributes
    ----------
    is_one : whether one tensor is fetched, not nested.
    """

    __slots__ = (
        "name",
        "written_at",
        "_plan",
        "_step",
        "_places",
        "_structure",
        "is_one",
        "_flat",
        "_shared",
        "__weakref__",
    )

    def __init__(
        self, session: SessionState, compiled: Compiled, plan: Any, places: list[int | None], structure: Any
    ) -> None:
        self.name, self.written_at, self._plan = "session", -1, plan
        self._places, self._structure = places, structure
        self.is_one = structure == LEAF and places == [0]
        kept = [place for place in places if place is not None]
        self._flat = structure == (list, (LEAF,) * len(places)) and len(kept) == len(set(kept))
        self._shared = [x for x in compiled.cut.written if not session.owns(x)]
        if self._shared:
            write_log.programs.add(self)
        state = [ArgumentPlace(HELD, x) for x in session.owners(compiled.cut)]
        objects = Objects(state, (), (), Buffer.over(np.zeros(0)), self.is_one)
        self._step = plan.bind(objects) if isinstance(plan, Plan) else None

    def written_arrays(self) -> list[np.ndarray]:
        """The memory outside of the session that it writes."""
        return [x.payload for x in self._shared]

    def attempt(self, feeds: Iterable[Any]) -> Any:
        """The fetched values; `REFUSED`, with nothing done, if the arrays are not those of the plan."""
        assert self._step is not None
        outputs = self._step(*feeds)
        if type(outputs) is int:
            self._plan.explain(outputs)
            return REFUSED
        return self.finish(outputs)

    def finish(self, outputs: Any) -> Any:
        """The fetched values, nested as they were asked for: of an array, or a tuple of arrays."""
        if self._shared:
            self.written_at = write_log.number_write()
        if self.is_one:
            return outputs
        if self._flat:
            return [None if place is None else outputs[place] for place in self._places]
        used: set[int] = set()
        leaves: list[Any] = []
        for place in self._places:
            leaves.append(None if place is None else outputs[place].copy() if place in used else outputs[place])
            used.update(() if place is None else (place,))
        return unflatten(self._structure, leaves)


class SessionCallable:
    """A function of the values of some feeds, in their order; `Session.make_callable` makes it."""

    __slots__ = ("__weakref__", "_feeds", "_fetches", "_known", "_session")

    def __init__(self, session: SessionState, fetches: Any, feeds: Sequence[Any]) -> None:
        self._session, self._fetches, self._feeds = session, fetches, list(feeds)
        self._known: RepeatedCall | None = None

    def __call__(self, *values: Any) -> Any:
        """Return the values of ``run(fetches, ...)``.

        Raises
        ------
        ArgumentError : another number of values; the rest as `Session.run`.
        """
        session, known = self._session, self._known
        if known is not None and session.version == session.graph.version and len(values) == len(self._feeds):
            result = REFUSED if mode.tracing and observed() else known.attempt(values)
            if result is not REFUSED:
                return result
        self._known, result = session.newly(self._fetches, self._fed(values))
        return result

    def _fed(self, values: Sequence[Any]) -> dict[Any, Any]:
        if len(values) != len(self._feeds):
            raise ArgumentError(f"this callable takes {len(self._feeds)} values, got {len(values)}")
        return dict(zip(self._feeds, values, strict=True))

    def program(self, *values: Any) -> RunProgram:
        """The program for such values; see `Session.program`."""
        return self._session.program(self._fetches, self._fed(values))

    def replayed(self, *values: Any) -> TracedCall:
        """The call, for tools that run it op by op."""
        return self._session.replayed(self._fetches, self._fed(values))
