"""Do peers compute the same? To how much of the largest element, and which bits a compiled peer shares with its own
eager mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.bits import raw
from benchmarks.workload import Array, to_array
from common.random.generator import default_generator

TOLERANCE = 1e-3
"""Of the largest element: a peer that differs by more computes something else, and is not timed."""


@dataclass(frozen=True)
class Agreement:
    """A peer's first results, compared with `dynamic`'s.

    Attributes
    ----------
    distance : largest difference, relative to the largest element; None if it returns something else, or is infinite.
    shared : share of elements with the bits of the peer's own eager mode; None where it has none.
    first_call : seconds of that call, compiling included where the peer's own cache does not hold it.
    draws : whether the call draws random numbers, which the peer does from a generator of its own.
    error : why it does not run, or is not timed.
    """

    distance: float | None = None
    shared: float | None = None
    first_call: float = 0.0
    draws: bool = False
    error: str = ""

    def line(self) -> str:
        """Return what is to be said of it."""
        if self.error:
            return self.error
        if self.draws:
            return "draws other random numbers, so it is not compared"
        if self.distance is None:
            return "returns something else, so it is not compared"
        told = f"agrees with dynamic to {self.distance:.1e} of the largest element"
        if self.shared is not None:
            told += f"; {100 * self.shared:.1f} % of its elements have the bits of its own eager mode"
        return told

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def of_json(found: Mapping[str, Any]) -> dict[str, Agreement]:
    """Return what a record holds."""
    return {name: Agreement(**fields) for name, fields in found.items()}


def agreement(
    programs: Mapping[str, tuple[Callable[..., Any], Any]],
    eager_of: Callable[[str], tuple[Callable[..., Any], Any] | None] = lambda name: None,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Agreement]:
    """Return what the first call of each peer says.

    Parameters
    ----------
    programs : mapping of name to (callable, input sets)
        Fresh, the engines among them.
    eager_of : callable
        The program of a peer's name, built anew in the peer's eager mode; None where there is none.
    tell : callable
        Told what is being done.
    """
    call, inputs = programs["dynamic"]
    before = default_generator.get_state()
    ours = leaves(call(*inputs[0]))
    draws = not np.array_equal(default_generator.get_state(), before)
    found = {}
    for name, (call, inputs) in programs.items():
        if name in ("dynamic", "static"):
            continue
        tell(f"first call of {name}")
        start = time.perf_counter()
        try:
            theirs = leaves(call(*inputs[0]))
        except Exception as problem:  # a peer that cannot run a program must not hide what the others do
            found[name] = Agreement(error=f"does not run it: {first_line(problem)}")
            continue
        spent = time.perf_counter() - start
        found[name] = (
            Agreement(first_call=spent, draws=True) if draws else _judged(ours, theirs, spent, partial(eager_of, name))
        )
    return found


def first_line(problem: Exception) -> str:
    """Return the kind of a failure and the first line of its message."""
    return f"{type(problem).__name__}: {str(problem).strip().partition(chr(10))[0]}"


def _judged(ours: list[Array], theirs: list[Array], seconds: float, eager_of: Callable[[], Any]) -> Agreement:
    if [x.shape for x in theirs] != [x.shape for x in ours]:
        return Agreement(first_call=seconds)
    far = distance(ours, theirs)
    if not far <= TOLERANCE:
        return Agreement(error=f"is not timed: it differs from dynamic by {far:.1e} of the largest element")
    eager = eager_of()
    own = None if eager is None else leaves(eager[0](*eager[1][0]))
    return Agreement(far, None if own is None else shared(own, theirs), seconds)


def leaves(returned: Any) -> list[Array]:
    """Return the arrays in what a call returned, in order, as copies."""
    if isinstance(returned, Mapping):
        returned = list(returned.values())
    if isinstance(returned, tuple | list):
        return [x for part in returned for x in leaves(part)]
    return [np.array(to_array(returned))]


def distance(ours: list[Array], theirs: list[Array]) -> float:
    """Return the largest difference, relative to the largest element of its array; infinite if only one is finite."""
    found = [0.0]
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        found.append(float(np.max(np.abs(a - b), initial=0) / max(float(np.max(np.abs(a), initial=0)), 1e-300)))
    return max(found)


def shared(one: list[Array], other: list[Array]) -> float:
    """Return the share of elements whose bits are equal."""
    same = [raw(a) == raw(b) if a.dtype == b.dtype else np.zeros(a.size, bool) for a, b in zip(one, other, strict=True)]
    return float(np.concatenate(same).mean()) if same and sum(map(len, same)) else 1.0
