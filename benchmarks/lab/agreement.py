"""Do peers compute the same? To how much of the largest element, and which bits a compiled peer shares with its eager
mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.bits import raw
from benchmarks.workload import Array, to_array

EAGER = {"torch.compile": "torch"}
"""The eager mode of a compiled peer, where that is a peer of its own."""


def agreement(programs: Mapping[str, tuple[Callable[..., Any], Any]]) -> dict[str, str]:
    """Return a line per peer about the results of its first call.

    Parameters
    ----------
    programs : mapping of name to (callable, input sets)
        Fresh, the engines among them.
    """
    first = {name: leaves(call(*inputs[0])) for name, (call, inputs) in programs.items()}
    ours, told = first["dynamic"], {}
    for name, theirs in first.items():
        if name in ("dynamic", "static"):
            continue
        if [x.shape for x in theirs] != [x.shape for x in ours]:
            told[name] = "returns something else, so it is not compared"
            continue
        line = f"agrees with dynamic to {distance(ours, theirs):.1e} of the largest element"
        eager = first.get(EAGER.get(name, ""))
        if eager is None and name == "jax.jit":
            eager = _without_jit(*programs[name])
        if eager is not None and [x.shape for x in eager] == [x.shape for x in theirs]:
            line += f"; {100 * shared(eager, theirs):.1f} % of its elements have the bits of its own eager mode"
        told[name] = line
    return told


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


def _without_jit(call: Callable[..., Any], inputs: Any) -> list[Array] | None:
    """The same call op by op; None for a program with state, whose second call is another."""
    import jax

    again = leaves(call(*inputs[0]))
    with jax.disable_jit():
        found = leaves(call(*inputs[0]))
    return found if distance(again, found) < 1e-2 else None
