"""The paths of a function whose Python decides on traced values: which of its traces serves which calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from static.graph.side_effects import Mismatch
from static.tracing.decisions import Decision


class TracedPath(Protocol):
    """A trace, as far as its path is concerned; see `static.jit.traced.CompiledTrace`."""

    decisions: Sequence[Decision]
    runs: int


@dataclass(frozen=True, slots=True)
class Path:
    """One path.

    Attributes
    ----------
    decisions : what must hold on it, in order, as text.
    shared : how many of them it has in common, from the first on, with the path before it in the list.
    runs : how many calls have taken it.
    """

    decisions: tuple[str, ...]
    shared: int
    runs: int


def same_until(one: TracedPath, two: TracedPath, miss: Mismatch) -> bool:
    """Whether a trace decides as another one before a decision, and there as a run has."""
    at = miss.decision
    first, second = one.decisions, two.decisions
    return len(first) > at and first[:at] == second[:at] and first[at] == second[at]._replace(bits=miss.bits)


def told(traced: TracedPath, miss: Mismatch) -> str:
    """Why another path is traced."""
    decision = traced.decisions[miss.decision]
    return f"{decision.place} is {decision.shown(miss.bits)} for the first time"


def paths(traces: Sequence[TracedPath]) -> list[Path]:
    """All paths, those with a common beginning one after the other."""
    order: dict[tuple[int, ...], list[TracedPath]] = {}
    for traced in traces:
        if traced.decisions:
            order.setdefault(_place(traced, traces), []).append(traced)
    found, before = [], list[object]()
    for traced in (x for key in sorted(order) for x in order[key]):
        made = traced.decisions
        shared = 0
        while shared < min(len(made), len(before)) and made[shared] == before[shared]:
            shared += 1
        found.append(Path(tuple(map(str, made)), shared, traced.runs))
        before = list(made)
    return found


def _place(traced: TracedPath, traces: Sequence[TracedPath]) -> tuple[int, ...]:
    """For each beginning of the path, the position of the first trace that has it: sorts as a tree."""
    made = traced.decisions
    return tuple(next(i for i, x in enumerate(traces) if x.decisions[:n] == made[:n]) for n in range(1, len(made) + 1))
