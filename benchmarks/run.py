"""The run: per workload the bits first, then the costs of each engine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import bits, oneoff, peak_memory, stats
from benchmarks.lab import failures, stability
from benchmarks.lab.activity import Activity, Watch
from benchmarks.lab.agreement import Agreement, agreement, first_line, of_json
from benchmarks.lab.patience import LIMIT, Patience
from benchmarks.lab.probe import PREFIX, probes
from benchmarks.lab.progress import Progress
from benchmarks.measure import batch, interleave
from benchmarks.stats import Estimate
from benchmarks.terminal import seconds
from benchmarks.workload import Array, Workload

ENGINES = ("dynamic", "static")
SLOWEST = 0.5
"""Seconds per call from which on a peer is not timed: every round would wait for it."""


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes
    ----------
    seconds : of interleaved calls, at most.
    cold, disk : new processes per engine and kind of start.
    clock : a key of `benchmarks.measure.CLOCKS`.
    tight : how narrow the intervals of static's ratios become, relative to them, before calls end early.
    rounds : calls are made in so many rounds at least.
    limit : seconds that one call may take while bits are compared.
    again : so many more times calls are measured while what was measured is unstable; the last time stands.
    """

    seconds: float
    cold: int
    disk: int
    clock: str = "wall"
    tight: float = 0.0
    rounds: int = 7
    limit: float = LIMIT
    again: int = 0


FULL = Effort(seconds=8.0, cold=3, disk=3, tight=0.03, rounds=21, again=3)
QUICK = Effort(seconds=1.0, cold=1, disk=1)


def without_starts(effort: Effort) -> Effort:
    """The same calls, and no new processes: compiling takes one thread however many there are."""
    return replace(effort, cold=0, disk=0)


@dataclass
class Result:
    """The findings about one workload. Timings stay empty if a bit differs."""

    workload: Workload
    differences: list[str] = field(default_factory=list)
    error: str = ""
    calls: dict[str, stats.Samples] = field(default_factory=dict)
    starts: dict[str, dict[str, list[oneoff.Report]]] = field(default_factory=dict)
    probes: dict[str, stats.Samples] = field(default_factory=dict)
    activity: Activity | None = None
    clock: str = "wall"
    agreement: dict[str, Agreement] = field(default_factory=dict)

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
            record["agreement"] = {name: found.as_json() for name, found in self.agreement.items()}
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

    @staticmethod
    def of_json(workload: Workload, record: Mapping[str, Any]) -> "Result":
        """Return what `as_json` gave: a run that goes on has it in its record."""
        samples = {
            key: {name: np.array(values) for name, values in record.get(key, {}).items()}
            for key in ("seconds_per_call", "probes")
        }
        return Result(
            workload, list(record["differences"]), record["error"], samples["seconds_per_call"],
            record.get("processes", {}), samples["probes"],
            Activity(**record["activity"]) if "activity" in record else None,
            record.get("clock", "wall"), of_json(record.get("agreement", {})),
        )  # fmt: skip


def measure(
    workload: Workload,
    engines: dict[str, ModuleType],
    effort: Effort,
    peers: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Check the bits of one workload and, only if all agree, measure it."""
    result, progress = Result(workload), progress or Progress(1)
    name, tell = workload.name, progress.tell
    tell(f"{name}: bits over {bits.STEPS} steps")
    try:
        watched = Patience(progress.say, effort.limit).of(workload)
        result.differences = list(bits.mismatches(watched, engines["dynamic"], engines["static"]))
        if result.passed:
            found, result.agreement = programs(workload, engines, peers, progress)
            result.clock = effort.clock
            for turn in range(1 + effort.again):
                tell(f"{name}: calls, interleaved" + ", again: they were unstable" * bool(turn))
                watch = Watch()
                timed = interleave(
                    {**found, **probes()}, effort.seconds, effort.rounds, clock=effort.clock,
                    enough=lambda samples: stability.enough({own: samples[own] for own in found}, effort.tight),
                )  # fmt: skip
                result.calls = {own: samples for own, samples in timed.items() if not own.startswith(PREFIX)}
                result.probes = {own: samples for own, samples in timed.items() if own.startswith(PREFIX)}
                result.activity = watch.since()
                if not result.unstable:
                    break
            for engine in ENGINES if effort.cold else ():
                tell(f"{name}: {engine} in new processes, cold and from the disk cache")
                result.starts[engine] = oneoff.cold_and_disk(engine, workload.key, effort.cold, effort.disk)
    except Exception as problem:  # one workload that fails must not hide the results of the others
        result.error = f"{type(problem).__name__}: {problem}"
        progress.say(failures.told(problem))
    for line in result.differences:
        progress.say(f"{name}: BITS DIFFER: {line}")
    return result


def quickest(call: Any, inputs: Sequence[Any]) -> float:
    """Return the seconds per call of the faster of two batches, after one that compiles what the first call did not."""
    return min([batch(call, inputs, 1) for _ in range(3)][1:])


def programs(
    workload: Workload, engines: dict[str, ModuleType], peers: Sequence[str], progress: Progress
) -> tuple[dict[str, Any], dict[str, Agreement]]:
    """Return (call, input sets) of both engines and of each peer that agrees with them, and what peers' results say."""
    from benchmarks.lab.peers import NotWritten
    from benchmarks.peers import PEERS, build

    inputs = workload.inputs()
    made = {name: workload.make(engine) for name, engine in engines.items()}
    initial: dict[str, Array] = made["dynamic"].parameters()
    found: dict[str, Any] = {name: (program.call, inputs) for name, program in made.items()}
    lacking: dict[str, Agreement] = {}
    for peer in peers:
        try:
            built = build(peer, workload, initial)
        except NotWritten as problem:
            lacking[peer] = Agreement(error=f"is left out: {problem}")
            continue
        except Exception as problem:  # a peer that cannot run a program must not hide what the others do
            lacking[peer] = Agreement(error=f"does not run it: {first_line(problem)}")
            continue
        if built is not None:
            found[peer] = built
    if not lacking and found.keys() == engines.keys():
        return found, {}

    def eager_of(name: str) -> Any:
        way = PEERS[name].eager
        return build(way, workload, initial) if way else None

    told = {**agreement(found, eager_of, lambda text: progress.tell(f"{workload.name}: {text}")), **lacking}
    for peer, judged in told.items():
        if not judged.error and (slow := quickest(*found[peer])) > SLOWEST:
            told[peer] = judged = replace(judged, error=f"is not timed: a call takes {seconds(slow)}")
        if judged.error:
            found.pop(peer, None)
            progress.say(f"{workload.name}: {peer} {judged.error}")
    return found, told
