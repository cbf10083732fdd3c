"""Do two engines return the same bits? The check without which no timing is printed."""

from collections.abc import Iterator
from itertools import cycle, islice
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.draws import Draws
from benchmarks.workload import Array, Program, Workload

STEPS = 20


def difference(ours: Array | Any, theirs: Array | Any) -> str | None:
    """Say how two arrays or tensors differ, or return None if dtype, shape and every bit agree.

    All NaNs count as one value (their payload is not defined); -0.0 and +0.0 are different.
    """
    ours, theirs = (np.asarray(x.detach() if hasattr(x, "detach") else x) for x in (ours, theirs))
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{ours.shape} against {theirs.dtype}{theirs.shape}"
    unequal = raw(ours) != raw(theirs)
    if np.issubdtype(ours.dtype, np.floating):
        unequal &= ~(np.isnan(ours) & np.isnan(theirs)).reshape(-1)
    if not unequal.any():
        return None
    first = int(np.argmax(unequal))
    index = tuple(int(i) for i in np.unravel_index(first, ours.shape))
    a, b = ours.reshape(-1)[first], theirs.reshape(-1)[first]
    return f"{int(unequal.sum())} of {ours.size} elements, first at {index}: {show(a)} against {show(b)}"


def raw(array: Array) -> Array:
    """Return the bits of each element as unsigned integers, (size,)."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(f"u{flat.dtype.itemsize}")


def show(value: np.generic) -> str:
    """Return a number readably and as the hexadecimal digits of its bits, most significant byte first."""
    return f"{value!r} (0x{value.tobytes()[:: -1 if value.dtype.str[0] != '>' else 1].hex()})"


def mismatches(workload: Workload, first: ModuleType, second: ModuleType) -> Iterator[str]:
    """Run 20 calls in both engines and yield a line per result whose bits differ, of the first such step.

    Compared are what the call returns and every gradient after each step, and parameters and optimizer state
    before the first step and after the last.
    """
    programs, draws = [], []
    for engine in (first, second):
        programs.append(workload.make(engine))
        draws.append(Draws())
    yield from unequal("before step 1", *(p.state() for p in programs))
    for number, arguments in enumerate(islice(cycle(workload.inputs()), STEPS), start=1):
        found = [own(results, workload, program, arguments) for own, program in zip(draws, programs, strict=True)]
        lines = list(unequal(f"step {number}", *found))
        if lines:
            yield from lines
            yield from draws[0].warning()
            return  # everything after the first difference differs because of it
    yield from unequal(f"after step {STEPS}", *(p.state() for p in programs))


def results(workload: Workload, program: Program, arguments: tuple[Array, ...]) -> dict[str, Array]:
    """Return what one call returned and every gradient it left, by name."""
    return {**workload.results(program.call(*arguments)), **program.gradients()}


def unequal(when: str, ours: dict[str, Array], theirs: dict[str, Array]) -> Iterator[str]:
    """Yield a line for each name that is missing on one side or whose arrays differ."""
    for name in ours | theirs:
        if name not in ours or name not in theirs:
            yield f"{when}: {name} exists in one engine only"
        elif (found := difference(ours[name], theirs[name])) is not None:
            yield f"{when}: {name}: {found}"
