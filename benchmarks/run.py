"""The run: per workload the bits first, then what each engine costs."""

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import bits, oneoff, peak_memory, stats
from benchmarks.lab import stability
from benchmarks.lab.activity import Activity, Watch
from benchmarks.lab.agreement import agreement
from benchmarks.lab.probe import PREFIX, probes
from benchmarks.measure import interleave
from benchmarks.stats import Estimate
from benchmarks.terminal import progress
from benchmarks.workload import Array, Workload

ENGINES = ("dynamic", "static")


@dataclass(frozen=True)
class Effort:
    """How much to measure: seconds of interleaved calls, processes per engine and kind of start; and by which clock."""

    seconds: float
    cold: int
    disk: int
    clock: str = "wall"


FULL = Effort(seconds=6.0, cold=3, disk=5)
QUICK = Effort(seconds=1.0, cold=1, disk=1)


def without_starts(effort: Effort) -> Effort:
    """The same calls, and no new processes: compiling takes one thread however many there are."""
    return replace(effort, cold=0, disk=0)


@dataclass
class Result:
    """What was found about one workload. Timings stay empty if a bit differs."""

    workload: Workload
    differences: list[str] = field(default_factory=list)
    error: str = ""
    calls: dict[str, stats.Samples] = field(default_factory=dict)
    starts: dict[str, dict[str, list[oneoff.Report]]] = field(default_factory=dict)
    probes: dict[str, stats.Samples] = field(default_factory=dict)
    activity: Activity | None = None
    clock: str = "wall"
    agreement: dict[str, str] = field(default_factory=dict)

    @property
    def unstable(self) -> list[str]:
        """Why the times per call are unreliable, each with its remedy; none if they are stable."""
        return stability.objections(self.calls, self.activity if self.clock == "wall" else None) if self.calls else []

    @property
    def passed(self) -> bool:
        """Both engines ran and every bit agreed."""
        return not self.differences and not self.error

    def call(self, name: str) -> Estimate:
        """Seconds per call of an engine or a peer."""
        return stats.median(self.calls[name])

    def over(self, peers: Iterable[str]) -> float | None:
        """Time of a call of static over that of the fastest of some peers; None if none of them has this workload."""
        known = [name for name in peers if name in self.calls]
        return max((stats.ratio(self.calls["static"], self.calls[name]).value for name in known), default=None)

    def once(self, engine: str, start: str) -> Estimate:
        """One-off seconds of an engine; `start` is "cold" or "disk"."""
        return stats.median(oneoff.once(self.starts[engine][start]))

    def break_even(self, start: str) -> Estimate:
        """Calls after which static has cost less than dynamic."""
        eager, compiled = (oneoff.once(self.starts[engine][start]) for engine in ENGINES)
        return stats.break_even(self.calls["dynamic"], self.calls["static"], eager, compiled)

    def peak(self, engine: str) -> float:
        """Peak bytes of a process that starts from the disk cache and makes some steps."""
        return float(np.median([report["peak_bytes"] for report in self.starts[engine]["disk"]]))

    def as_json(self) -> dict[str, Any]:
        """Return everything measured, and the estimates that the table shows, as plain data."""
        record: dict[str, Any] = {
            "name": self.workload.name,
            "key": self.workload.key,
            "title": self.workload.title,
            "bits_equal": not self.differences and not self.error,
            "differences": self.differences,
            "error": self.error,
            "seconds_per_call": {name: samples.tolist() for name, samples in self.calls.items()},
            "processes": self.starts,
        }
        if self.calls:
            record["clock"], record["unstable"] = self.clock, self.unstable
            record["agreement"] = self.agreement
            record["probes"] = {name: samples.tolist() for name, samples in self.probes.items()}
            if self.activity is not None:
                record["activity"] = asdict(self.activity)
            record["call"] = {name: self.call(name).as_json() for name in self.calls}
            record["static_over"] = {
                name: stats.ratio(self.calls["static"], self.calls[name]).as_json()
                for name in self.calls
                if name != "static"
            }
        if self.starts:
            record["once"] = {
                engine: {start: self.once(engine, start).as_json() for start in ("cold", "disk")} for engine in ENGINES
            }
            record["break_even"] = {start: self.break_even(start).as_json() for start in ("cold", "disk")}
            record["peak_bytes"] = {engine: self.peak(engine) for engine in ENGINES}
            record["peak_method"] = peak_memory.method()
        return record


def measure(workload: Workload, engines: dict[str, ModuleType], effort: Effort, peers: Sequence[str] = ()) -> Result:
    """Check the bits of one workload and, only if all agree, measure it."""
    result = Result(workload)
    progress(f"{workload.name}: bits over {bits.STEPS} steps")
    try:
        result.differences = list(bits.mismatches(workload, engines["dynamic"], engines["static"]))
        if result.passed:
            progress(f"{workload.name}: calls, interleaved")
            watch, result.clock = Watch(), effort.clock
            found = programs(workload, engines, peers)
            result.agreement = agreement(found) if len(found) > len(engines) else {}
            timed = interleave({**found, **probes()}, effort.seconds, clock=effort.clock)
            result.calls = {name: samples for name, samples in timed.items() if not name.startswith(PREFIX)}
            result.probes = {name: samples for name, samples in timed.items() if name.startswith(PREFIX)}
            result.activity = watch.since()
            for engine in ENGINES if effort.cold else ():
                progress(f"{workload.name}: {engine} in new processes, cold and from the disk cache")
                result.starts[engine] = oneoff.cold_and_disk(engine, workload.key, effort.cold, effort.disk)
    except Exception as problem:  # one workload that fails must not hide the results of the others
        result.error = f"{type(problem).__name__}: {problem}"
        progress(traceback.format_exc().rstrip())
    for line in result.differences:
        progress(f"{workload.name}: BITS DIFFER: {line}")
    return result


def programs(workload: Workload, engines: dict[str, ModuleType], peers: Sequence[str]) -> dict[str, Any]:
    """Return name -> (call, input sets) of both engines and of each peer that has this workload."""
    from benchmarks.peers import build

    inputs = workload.inputs()
    made = {name: workload.make(engine) for name, engine in engines.items()}
    initial: dict[str, Array] = made["dynamic"].parameters()
    found: dict[str, Any] = {name: (program.call, inputs) for name, program in made.items()}
    for peer in peers:
        try:
            built = build(peer, workload, initial)
        except Exception as problem:  # a peer that cannot run a program must not hide what the others do
            progress(f"{workload.name}: {peer} does not run it: {type(problem).__name__}: {problem}")
            continue
        if built is not None:
            found[peer] = built
    return found
