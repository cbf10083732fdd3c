"""The program of a run with its fetches and feeds: for reports, and for the debugger's replay."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from static.jit.shown import TraceReports
from static.running.plan import Plan
from static.tools.replay import TracedCall

if TYPE_CHECKING:
    from static.session.compiled_cut import Compiled, Variant


class RunProgram(TraceReports):
    """The program of a run: ``explain()``, ``dump(folder)``, ``source``, ``graph`` and ``picture``, as of a function.

    Attributes
    ----------
    variant, plan : the program for the sizes that are 1, and for all sizes.
    """

    __name__ = "Session.run"

    def __init__(self, compiled: Compiled, variant: Variant, plan: Any) -> None:
        self.variant, self.plan = variant, plan
        self.passes, self.retraces, self.plans_made = None, [], compiled.plans_made
        self.traces = [self._trace(compiled)]

    def _trace(self, compiled: Compiled) -> Any:
        """A cut and its variant in the form of a trace, for reports."""
        variant, cut = self.variant, compiled.cut
        needed = SimpleNamespace(guards=cut.guards, fixed={}, hooks=0)
        known = {"trace": needed, "captured": [], "donations": [], "decisions": (), "within": None}
        fields = {name: getattr(variant, name) for name in ("raw", "graph", "program", "passes", "seconds", "start")}
        return SimpleNamespace(**fields, **known, op=None, grad_targets=[], returned=len(cut.outputs))

    @property
    def newest_plan(self) -> Any:
        """The plan; None where it is interpreted."""
        return self.plan if type(self.plan) is Plan else None


def replayed(compiled: Compiled, feeds: Sequence[np.ndarray], others: Sequence[Any]) -> TracedCall:
    """A run for `debug`, `nan_watch` and `compare`: nothing that they do on it is seen outside."""
    variant, _, env = compiled.planned(tuple(x.shape for x in feeds))
    state = [x if isinstance(x, np.ndarray) else x.payload for x in others]
    return TracedCall(variant.raw, [np.array(x, order="C") for x in (*feeds, *state)], {**env, **variant.rooms})
