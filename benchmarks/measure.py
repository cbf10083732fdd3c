"""Time calls so that two programs can be compared: warmed up, batched, interleaved, on one core."""

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stats import Samples

Call = Callable[..., Any]
STAT = Path("/proc/stat")
BATCH_SECONDS = 0.005  # far above the timer's resolution, far below a scheduler's slice on a shared machine
CHECK = 10  # rounds between two looks at whether the intervals are narrow enough
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def single_core() -> int | None:
    """Keep this process on one core, see `keep_to`; return it (None where that can't be done)."""
    cores = keep_to(1)
    return cores[0] if cores else None


def keep_to(count: int) -> list[int]:
    """Keep this process, and thread pools made later, on `count` cores; return them (none where that can't be done).

    Call it before numpy's BLAS, torch or jax start their threads: they size their pools by what they see.
    """
    for name in THREADS:
        os.environ[name] = str(count)
    if not hasattr(os, "sched_setaffinity"):
        return []
    cores = idlest_cores(os.sched_getaffinity(0), count)
    os.sched_setaffinity(0, cores)
    return cores


def threads() -> int:
    """How many threads libraries may use; 1 unless `keep_to` was asked for more."""
    return int(os.environ.get(THREADS[0], "1"))


def idlest_cores(cores: set[int], count: int = 1, seconds: float = 0.1) -> list[int]:
    """Return the `count` cores that were idle for longest during some time; of equals the highest numbers.

    On a shared machine another pinned process may own a core. Core 0 comes last: it serves most interrupts.
    """

    def idle() -> dict[int, int]:
        rows = [line.split() for line in STAT.read_text().splitlines()] if STAT.is_file() else []
        return {int(row[0][3:]): int(row[4]) for row in rows if row and row[0][:3] == "cpu" and row[0][3:]}

    before = idle()
    if len(cores) > count and before:
        time.sleep(seconds)
    after = idle()
    return sorted(cores, key=lambda core: (after.get(core, 0) - before.get(core, 0), core), reverse=True)[:count]


CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
"""The clocks: time that a user waits, or time of the processor, which other processes disturb less."""


def batch(call: Call, inputs: Sequence[tuple[Any, ...]], repeats: int, clock: str = "wall") -> float:
    """Return the seconds per call of `repeats` passes over all input sets, results dropped as they come."""
    now = CLOCKS[clock]
    start = now()
    for _ in range(repeats):
        for arguments in inputs:
            call(*arguments)
    return (now() - start) / (repeats * len(inputs))


def calibrate(call: Call, inputs: Sequence[tuple[Any, ...]], seconds: float = BATCH_SECONDS) -> int:
    """Return how many passes over `inputs` take at least `seconds`; the calls made here are the warm-up.

    Two passes before the first timing: the first compiles, the second sees the second plan or pool.
    """
    batch(call, inputs, 2)
    repeats = 1
    while True:
        spent = batch(call, inputs, repeats) * repeats * len(inputs)
        if spent >= seconds:
            return repeats
        repeats = max(repeats + 1, int(1.2 * repeats * seconds / max(spent, 1e-9)))


def interleave(
    calls: Mapping[str, tuple[Call, Sequence[tuple[Any, ...]]]],
    seconds: float,
    minimum: int = 7,
    maximum: int = 301,
    batch_seconds: float = BATCH_SECONDS,
    clock: str = "wall",
    repeats: int | None = None,
    enough: Callable[[dict[str, Samples]], bool] | None = None,
) -> dict[str, Samples]:
    """Measure several programs in rounds: one batch of each, the order reversed in every other round.

    Parameters
    ----------
    calls : mapping of name to (callable, input sets)
        Each batch passes over all input sets of its program, at least once.
    seconds : float
        Time to spend in all, after warm-up; `minimum` rounds are made in any case.
    minimum, maximum : int
        Bounds on the number of rounds.
    batch_seconds : float
        How long one batch lasts at least.
    clock : str
        A key of `CLOCKS`.
    repeats : int, optional
        Passes per batch, the same for all; by default as many as `batch_seconds` needs.
    enough : callable, optional
        Told all samples after `minimum` rounds and after every `CHECK` more; no round follows if it says True.

    Returns
    -------
    dict of (rounds,) float64 arrays
        Seconds per call, by name; index i of every array belongs to the same round.
    """
    passes = {
        name: calibrate(call, inputs, batch_seconds) if repeats is None else repeats
        for name, (call, inputs) in calls.items()
    }
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    gc.collect()  # start from a clean heap; collections that a program causes stay in its time
    now = CLOCKS["wall"]
    end = now() + seconds

    def samples() -> dict[str, Samples]:
        return {name: np.array(found) for name, found in rounds.items()}

    while (made := len(rounds[order[0]])) < minimum or (made < maximum and now() < end):
        for name in order:
            rounds[name].append(batch(*calls[name], passes[name], clock))
        order.reverse()
        if enough is not None and made + 1 >= minimum and (made + 1 - minimum) % CHECK == 0 and enough(samples()):
            break
    return samples()
