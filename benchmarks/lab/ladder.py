"""The ladder: every rung's bits, then its time, memory, kernels and bytes; and the waterfall of the steps' gains."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import measure, oneoff, stats
from benchmarks.lab import allocations, counting, limits, waterfall
from benchmarks.lab.activity import Watch
from benchmarks.lab.patience import Patience
from benchmarks.lab.rungs import MEANING, PLANNED, RECORDING, Rung, climb, differences
from benchmarks.lab.stability import objections
from benchmarks.stats import Samples
from benchmarks.workload import Workload

KERNELS, EMPTY = waterfall.KERNELS, waterfall.EMPTY


class NotTheSame(RuntimeError):
    """A rung's bits differ, so nothing is timed."""


def ladder(
    workload: Workload,
    engines: dict[str, ModuleType],
    seconds: float,
    threads: int,
    starts: bool,
    tell: Callable[[str], None],
    clock: str = "wall",
    patience: Patience | None = None,
) -> dict[str, Any]:
    """Return the ladder of a program as plain data.

    Parameters
    ----------
    seconds : float
        How long all rungs are timed, in turns.
    threads : int
        Of the last rung; there is none for 1.
    starts : bool
        Whether to measure one-off costs in new processes.
    tell : callable
        Told what is being done.
    clock : str
        A key of `benchmarks.measure.CLOCKS`.
    patience : Patience, optional
        Watches calls that do not end.

    Raises
    ------
    NotTheSame
        If a bit differs on a rung.
    """
    dynamic, static = engines["dynamic"], engines["static"]
    tell("bits of every rung")
    names = check(patience.of(workload) if patience else workload, dynamic, static)
    rungs = {rung.name: rung for rung in climb(workload, dynamic, static)}
    calls: dict[str, tuple[Any, Sequence[tuple[Any, ...]]]] = {r.name: (r.call, r.inputs) for r in rungs.values()}
    for rung in rungs.values():
        rung.call(*rung.inputs[0])
        rung.call(*rung.inputs[-1])
    planned = rungs[PLANNED]
    apart = _apart(planned)
    if apart is not None:
        calls[KERNELS], calls[EMPTY] = (apart.whole, [()]), (apart.empty, [()])
    if allocate := counting.allocations(rungs["graph, node by node"].function):
        calls[waterfall.ALLOCATION] = (allocate, [()])
    tell("all rungs, in turns")
    watch = Watch()
    samples = measure.interleave(calls, seconds, clock=clock)
    each: list[Samples] = []
    if apart is not None and apart.each:
        tell("each kernel on its own")
        each = _each(apart, seconds / 3)
    activity = watch.since()
    tell("memory, bytes and limits")
    counted = {name: _counted(rung, rungs, dynamic) for name, rung in rungs.items()}
    footprint = int(max(counted[PLANNED]["footprint"] or 0, 1))
    machine = {
        "bandwidth": limits.bandwidth(static, footprint),
        "footprint": footprint,
        "peak_float32": limits.peak(static, "float32"),
        "peak_float64": limits.peak(static, "float64"),
    }
    parts = counting.kernels(planned.function)
    shares = waterfall.waterfall(samples, each, parts, machine)
    record: dict[str, Any] = {
        "rungs": [
            {"name": name, "meaning": MEANING[name], "bits_equal": True, "call": stats.median(samples[name]).as_json(),
             **counted[name]}
            for name in names
        ],
        "waterfall": shares,
        "machine": machine,
        "kernels": parts,
        "unstable": objections(
            {"dynamic": samples[RECORDING], "static": samples[PLANNED]}, activity if clock == "wall" else None
        ),
    }  # fmt: skip
    if threads > 1:
        tell(f"{threads} threads")
        record["rungs"].append(
            _threads(planned, static, threads, samples[PLANNED], workload, dynamic, counted[PLANNED])
        )
    if starts:
        record["once"] = once(workload, planned, tell)
    return record


def check(workload: Workload, dynamic: ModuleType, static: ModuleType) -> list[str]:
    """Return the names of the rungs, each of which has given the bits of the first for 20 steps."""
    names = []
    for i, rung in enumerate(list(climb(workload, dynamic, static))):
        first = next(iter(climb(workload, dynamic, static)))
        lines = differences(workload, first, rung) if i else []
        if lines:
            raise NotTheSame(f"{rung.name}: {lines[0]}")
        names.append(rung.name)
    return names


def _apart(rung: Rung) -> Any:
    """The kernels of the compiled rung, if they run without Python."""
    from static.tools.kernels_apart import kernels_apart

    function = rung.function
    if function is None or function.newest_plan is None or function.newest_plan.calls_python:
        return None
    return kernels_apart(function, *rung.inputs[-1])


def _each(apart: Any, seconds: float) -> list[Samples]:
    """Seconds of each kernel, without what starting it takes.

    They run in the order of the program, since each reads what the others left: indices too. The clock is that of the
    wall, which is read fast; a median over single calls does not see when other processes interrupt one.
    """
    now = time.perf_counter

    def once() -> list[float]:
        found = []
        for run in apart.each:
            start = now()
            run()
            middle = now()
            apart.empty()
            found.append(2 * middle - start - now())
        return found

    once()
    rounds: list[Samples] = []
    end = now() + seconds
    while len(rounds) < 7 or (len(rounds) < 301 and now() < end):
        rounds.append(np.median([once() for _ in range(9)], axis=0))
    return list(np.array(rounds).T)


def _counted(rung: Rung, rungs: dict[str, Rung], dynamic: ModuleType) -> dict[str, Any]:
    """Peak bytes and allocations of a call, kernel calls and bytes moved."""
    found: dict[str, Any] = {"peak_bytes": _peak(rung), "allocations": _allocations(rung)}
    found |= dict.fromkeys(("kernel_calls", "moved_bytes", "flops", "footprint"))
    graph = counting.graph(rungs["graph, node by node"].function)
    if rung.way is None:
        with dynamic.profiler.profile() as profile:
            rung.call(*rung.inputs[0])
        found["kernel_calls"] = sum(event.kind in ("op", "rule") for event in profile.events())
        found |= {name: graph[name] for name in ("moved_bytes", "flops")} if graph else {}
    elif rung.way.options.get("interpret"):
        own = counting.graph(rung.function)
        found |= {name: own[name] for name in ("moved_bytes", "flops", "kernel_calls")} if own else {}
    elif rung.function is not None:
        parts = counting.kernels(rung.function)
        found["kernel_calls"] = sum(part["times"] for part in parts)
        found["moved_bytes"] = sum(part["times"] * (part["reads"] + part["writes"]) for part in parts)
        found["flops"] = sum(part["times"] * part["flops"] for part in parts)
        found["arena_bytes"] = arena = rung.function.explain().arena_bytes
        found["footprint"] = arena + counting.bound_bytes(rung.function)
    return found


def _allocations(rung: Rung) -> int:
    """Arrays for which a call, made before, asks numpy for memory."""
    rung.call(*rung.inputs[0])
    with allocations.counted() as found:
        rung.call(*rung.inputs[0])
    return found.arrays


def _peak(rung: Rung) -> int:
    """Bytes that a call has allocated at most at one time, arrays and Python objects, results included."""
    tracemalloc.start()
    try:
        rung.call(*rung.inputs[0])
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        rung.call(*rung.inputs[0])
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _threads(
    rung: Rung, static: ModuleType, threads: int, one: Samples, workload: Workload, dynamic: ModuleType, counted: Any
) -> dict[str, Any]:
    """The last rung: the same program with threads, on as many cores."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if before:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    static.set_num_threads(threads)
    try:
        first, *_, last = list(climb(workload, dynamic, static))
        lines = differences(workload, first, last)
        if lines:
            raise NotTheSame(f"{threads} threads: {lines[0]}")
        found = measure.interleave({"threads": (rung.call, rung.inputs)}, 0.3)["threads"]
    finally:
        static.set_num_threads(1)
        if before:
            os.sched_setaffinity(0, before)
    return {
        "name": f"{threads} threads", "meaning": "loops and products are shared by threads", "bits_equal": True,
        "call": stats.median(found).as_json(), **counted,
    }  # fmt: skip


def once(workload: Workload, rung: Rung, tell: Callable[[str], None]) -> dict[str, Any]:
    """Seconds per phase until the first result: with an empty cache, from the disk, and for a second function here."""
    found: dict[str, Any] = {}
    for engine in ("dynamic", "static"):
        tell(f"{engine} in new processes, cold and from the disk cache")
        reports = oneoff.cold_and_disk(engine, workload.key, 1, 3)
        found[engine] = {start: _phases(runs) for start, runs in reports.items()}
    if rung.function is not None:
        found["static"]["memory"] = dict(rung.function.explain().seconds)
    return found


def _phases(reports: Sequence[oneoff.Report]) -> dict[str, float]:
    """Medians: import, build, the phases of the first call, and what is left of it."""
    names = dict.fromkeys(
        name for report in reports for name in report if name.endswith("_seconds") or "phase_" in name
    )
    middle = {name: float(np.median([report.get(name, 0.0) for report in reports])) for name in names}
    phases = {name[6:]: value for name, value in middle.items() if name.startswith("phase_")}
    rest = middle["first_call_seconds"] - sum(phases.values())
    return {"import": middle["import_seconds"], "build": middle["build_seconds"], **phases, "first call": rest}
