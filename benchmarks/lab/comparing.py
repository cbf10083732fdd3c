"""``compare``: slowdowns between two runs or two programs, with the certainty that a gate needs.

Two programs are timed in turns in one process, and the ratio of each round counts: what disturbs a round disturbs both.
Where its arrays lie makes one compiled program a percent or three faster or slower for as long as it lives. So both are
built anew several times, and the interval is as wide as the medians of these builds scatter.

Two records are of processes that ran at different times, so their rounds are more alike than the runs are. The interval
is therefore as wide as the medians of blocks of rounds scatter: a percent or two on a quiet machine, and so wide on a
loaded one that nothing is significant. Times are divided by those of probes that were timed in the same rounds.

A difference counts from a size on, and if an interval that is corrected for the number of comparisons (Bonferroni)
excludes none.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import measure, store
from benchmarks.lab import console, measuring
from benchmarks.lab.patience import Patience, on_stderr
from benchmarks.lab.stability import of_record
from benchmarks.lab.target import is_target
from benchmarks.lab.verdict import times
from benchmarks.stats import Samples
from benchmarks.terminal import seconds
from benchmarks.workload import Workload

LEVEL = 0.01
"""How often at least one of all comparisons of two equal runs may be wrong."""
LEAST = 0.03
"""Differences below this share are not reported: two processes of one program differ by so much."""
BLOCKS = 8
BUILDS = 8
"""How often two programs that are timed in turns are built."""


@dataclass(frozen=True)
class Change:
    """How one way of running a program changed.

    Attributes
    ----------
    program, way : name of the workload; engine or peer.
    before, after : seconds per call, medians.
    ratio, low, high : time after over before, the machine's own speed taken out, with its interval.
    """

    program: str
    way: str
    before: float
    after: float
    ratio: float
    low: float
    high: float

    def verdict(self, least: float = LEAST) -> str:
        """Return "slower", "faster" or "same"."""
        if self.low > 1 and self.ratio > 1 + least:
            return "slower"
        if self.high < 1 and self.ratio < 1 / (1 + least):
            return "faster"
        return "same"


def changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Change]:
    """Return what two records have in common, compared.

    Raises
    ------
    LookupError
        If they have no workload in common.
    """
    named = {w["name"]: w for w in first["workloads"] if w.get("seconds_per_call")}
    pairs = [(named[w["name"]], w) for w in second["workloads"] if w["name"] in named and w.get("seconds_per_call")]
    both = [(a, b, way) for a, b in pairs for way in a["seconds_per_call"] if way in b["seconds_per_call"]]
    if not both:
        names = (", ".join(w["name"] for w in record["workloads"]) for record in (first, second))
        raise LookupError(f"the two runs timed no program of the same name: {' and '.join(names)}")
    return [_change(a, b, way, LEVEL / len(both)) for a, b, way in both]


def _change(first: Mapping[str, Any], second: Mapping[str, Any], way: str, level: float) -> Change:
    from scipy.stats import t

    blocks = [_blocks(_relative(w, way)) for w in (first, second)]
    scatter = float(np.sqrt(sum(np.var(b, ddof=1) for b in blocks)))
    half = scatter * float(t.ppf(1 - level / 2, 2 * (BLOCKS - 1)))
    middle = float(np.median(blocks[1]) - np.median(blocks[0]))
    plain = [float(np.median(w["seconds_per_call"][way])) for w in (first, second)]
    return Change(first["name"], way, *plain, *(float(np.exp(x)) for x in (middle, middle - half, middle + half)))


def _relative(workload: Mapping[str, Any], way: str) -> Samples:
    """Logarithms of the times of the rounds, those of the probes taken off."""
    found: Samples = np.log(np.array(workload["seconds_per_call"][way]))
    known = [np.log(np.array(samples)) for samples in workload.get("probes", {}).values()]
    return found - np.mean(known, axis=0) if known else found


def _blocks(logs: Samples) -> Samples:
    """Medians of blocks of neighbouring rounds.

    Raises
    ------
    ValueError
        If there are too few rounds.
    """
    if len(logs) < 2 * BLOCKS:
        raise ValueError(f"a run has {len(logs)} rounds, comparing needs {2 * BLOCKS}: measure longer (--seconds)")
    return np.array([np.median(block) for block in np.array_split(logs, BLOCKS)])


def paired(name: str, way: str, builds: Sequence[tuple[Samples, Samples]], level: float) -> Change:
    """Return how two programs compare that were built several times, and timed in the same rounds.

    Parameters
    ----------
    builds : sequence of two (rounds,) arrays
        Of each time that both were built.
    """
    from scipy.stats import t

    middles = [float(np.median(np.log(second / first))) for first, second in builds]
    middle = float(np.median(middles))
    half = float(np.std(middles, ddof=1) / np.sqrt(len(middles)) * t.ppf(1 - level / 2, len(middles) - 1))
    plain = (float(np.median(np.concatenate(samples))) for samples in zip(*builds, strict=True))
    return Change(name, way, *plain, *(float(np.exp(x)) for x in (middle, middle - half, middle + half)))


def programs(first: str, second: str, options: argparse.Namespace) -> list[Change]:
    """Time two programs in turns, in both engines."""
    options.targets, options.threads, options.sweep, options.quick = [first, second], 1, "", False
    options.grad, options.loss, options.optimizer, options.control_flow = options.grad or None, "", "", None
    engines, _ = measuring.begin(options)
    patience = Patience(on_stderr)
    mine, theirs = measuring.programs(options, engines["dynamic"])
    name = mine.name if mine.name == theirs.name else f"{mine.name} -> {theirs.name}"
    found = []
    for engine, module in engines.items():
        for workload in (mine, theirs):
            patience.of(workload).make(module).call(*workload.inputs()[0])
        kept: list[Any] = []  # alive, so that the next lie elsewhere
        builds = [_build(mine, theirs, module, options.seconds / BUILDS, i % 2 == 1, kept) for i in range(BUILDS)]
        found.append(paired(name, engine, builds, LEVEL / len(engines)))
    return found


def _build(
    mine: Workload, theirs: Workload, module: ModuleType, seconds: float, turned: bool, kept: list[Any]
) -> tuple[Samples, Samples]:
    """Build two programs and copies of their inputs, and time them in turns."""
    order = (theirs, mine) if turned else (mine, theirs)
    made = [(workload.make(module).call, copy.deepcopy(workload.inputs())) for workload in order]
    kept.append(made)
    repeats = max(measure.calibrate(*program) for program in made)
    timed = measure.interleave(
        dict(zip("ab", made, strict=True)), seconds, minimum=7, maximum=2001, repeats=max(1, repeats // 4),
        clock="processor",
    )  # fmt: skip
    return (timed["b"], timed["a"]) if turned else (timed["a"], timed["b"])


def main(arguments: list[str]) -> int:
    """Compare two records, or two programs. Returns 1 if something got slower."""
    p = argparse.ArgumentParser(
        prog="twingrad compare",
        description="Say what got slower or faster: between two runs, or between two programs timed in turns.",
        epilog="Exit code 0: nothing got slower; 1: something did; 3: --strict, and a run is unstable.",
    )
    p.add_argument("first", metavar="A", help="A.json, or FILE.py:NAME")
    p.add_argument("second", metavar="B", help="B.json, or FILE.py:NAME")
    p.add_argument("--least", type=float, default=100 * LEAST, metavar="PERCENT", help="smaller changes do not count")
    p.add_argument("--strict", action="store_true", help="refuse to judge unstable runs")
    p.add_argument("--args", metavar="TEXT", help="of programs, as run takes them")
    p.add_argument("--grad", action="store_true", help="of programs: value and gradient")
    p.add_argument("--size", metavar="NAME=N", action="append", default=[], help="of programs")
    p.add_argument("--seconds", metavar="S", type=float, default=5.0, help="of programs: how long they are timed")
    options = p.parse_args(arguments)
    names, unstable = (options.first, options.second), []
    if is_target(options.first) or is_target(options.second):
        found = programs(*names, options)
    else:
        records = [store.load(Path(name)) for name in names]
        found = changes(*records)
        unstable = [
            f"{Path(name).name}: {w['name']}: {line}"
            for name, record in zip(names, records, strict=True)
            for w in record["workloads"]
            for line in of_record(w)
        ]
    least = options.least / 100
    show(found, least, unstable)
    if unstable and options.strict:
        return 3
    return 1 if any(change.verdict(least) == "slower" for change in found) else 0


def show(found: list[Change], least: float, unstable: list[str]) -> None:
    """Print the verdict, then every comparison, what changed first."""
    told = [change for change in found if change.verdict(least) == "slower"]
    faster = [change for change in found if change.verdict(least) == "faster"]
    if unstable:
        console.wrapped(f"UNSTABLE: {unstable[0]}", style="bold yellow")
    if told:
        worst = max(told, key=lambda change: change.ratio)
        console.wrapped(f"{len(told)} of {len(found)} got slower; most: {worst.way} on {worst.program} is "
                        f"{times(1 / worst.ratio)} as fast.", style="bold red")  # fmt: skip
    elif faster:
        console.wrapped(f"{len(faster)} of {len(found)} got faster, nothing slower.", style="bold green")
    else:
        console.wrapped(
            f"No difference of {100 * least:.0f} % or more in {len(found)} comparisons.", style="bold green"
        )
    console.say()
    order = {"slower": 0, "faster": 1, "same": 2}
    rows = [
        [f"{c.program} {c.way}", seconds(c.before), seconds(c.after),
         f"{1 / c.ratio:.3f}x [{1 / c.high:.3f}x, {1 / c.low:.3f}x]", c.verdict(least)]
        for c in sorted(found, key=lambda c: (order[c.verdict(least)], -c.ratio))
    ]  # fmt: skip
    for line in console.columns(rows, ["", "before", "after", "as fast", ""]):
        console.say(line)
