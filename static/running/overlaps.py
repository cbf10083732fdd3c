"""Arguments and state that overlap in memory: a program would not see its own writes through the other name.

A program reads its inputs, and carries out its writes when all is computed. The eager engine writes at once, and shows
the write in every view of that memory. So a call is refused in which an input that the program uses after a write
overlaps what is written; an input that is used before it only may overlap.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from static.graph import Graph

_WORK = 10_000
"""Steps of the exact search for a common element, see `numpy.shares_memory`; who needs more is taken to overlap."""


class Overlaps:
    """Inputs of a program that may not overlap.

    Parameters
    ----------
    name : of the program.
    names : of its inputs.
    first : position of an input that is written -> the least id of nodes that were made after its first write.
    last : per input, the greatest id of nodes that use it; infinite if it is used after the call.
    """

    def __init__(
        self,
        name: str = "the program",
        names: Sequence[str] = (),
        first: Mapping[int, int] | None = None,
        last: Sequence[float] = (),
    ) -> None:
        self.name, self._names, self._first, self._last = name, names, first or {}, last

    def check(self, arrays: Sequence[Any], written: Sequence[int]) -> list[tuple[int, int]]:
        """Compare the memory of a call's arrays; what is allowed of `touching` is returned.

        Parameters
        ----------
        written : positions of those that the program writes.

        Raises
        ------
        ArgumentError : a written array overlaps another that is written, or that is used after the write.
        """
        every = frozenset(written)
        found = touching(arrays, every)
        for i, j in found:
            both = j in every
            if (i < j if both else self._used_after_write(j, i)) and shared(arrays[i], arrays[j]):
                a, b = self._named(i), self._named(j)
                uses = f"and to {b}, which shares" if both else f"and then uses {b}, which shares"
                raise ArgumentError(
                    f"{self.name} writes to {a} {uses} memory with it: eagerly each write shows in both, but a "
                    "compiled program writes when all is computed. Pass the whole tensor and take its views inside "
                    "the function, or pass a copy (.clone()) of one of them"
                )
        return found

    def _used_after_write(self, position: int, written: int) -> bool:
        return written in self._first and self._last[position] >= self._first[written]

    def _named(self, position: int) -> str:
        return self._names[position] if position < len(self._names) else f"array {position}"


def touching(arrays: Sequence[Any], written: Container[int]) -> list[tuple[int, int]]:
    """Positions of a written array and of another one whose ranges of addresses intersect, in ascending order."""
    known = [x if isinstance(x, np.ndarray) and x.size else None for x in arrays]
    found: list[tuple[int, int]] = []
    begun: list[tuple[int, int]] = []
    for start, end, i in sorted((*_range(x), i) for i, x in enumerate(known) if x is not None):
        begun = [(last, j) for last, j in begun if last > start]
        for _, j in begun:
            found += [pair for pair in ((i, j), (j, i)) if pair[0] in written]
        begun.append((end, i))
    return sorted(found)


def _range(x: np.ndarray) -> tuple[int, int]:
    start = end = x.__array_interface__["data"][0]
    if x.flags.c_contiguous:
        return start, start + x.nbytes
    for n, step in zip(x.shape, x.strides, strict=True):
        start, end = start + min((n - 1) * step, 0), end + max((n - 1) * step, 0)
    return start, end + x.itemsize


def shared(a: Any, b: Any) -> bool:
    """Whether two arrays have an element in common."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # type: ignore[arg-type, unused-ignore]  # stubs of old
    except np.exceptions.TooHardError:
        return True


def overlaps(graph: Graph, first_writes: Mapping[tuple[int, int], int], name: str, everything: bool) -> Overlaps:
    """Arguments and state that may not overlap in calls of a traced function.

    Parameters
    ----------
    first_writes : key of a written input -> the least id of nodes that were made after its first write.
    everything : whether all inputs are used after the call, by the gradients of its results.
    """
    root = {value.key: i for i, value in enumerate(graph.inputs)}
    last: list[float] = [inf if everything else -1] * len(root)
    for node in graph.nodes:
        for value in node.values:
            if (i := root.get(value.key)) is not None:
                last[i] = max(last[i], node.id)
                if node.op is not None and node.op.kind == "view":
                    root.update((part.key, i) for part in node.outputs)
    for value in graph.results:
        if (i := root.get(value.key)) is not None:
            last[i] = inf
    first = {root[effect.state.key]: first_writes.get(effect.state.key, 0) for effect in graph.effects}
    return Overlaps(f"{name}()", [value.node.attrs["name"] for value in graph.inputs], first, last)
