"""``run FILE.py:NAME``: programs of a user's, measured as carefully as the project's own workloads."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import interrupts, machine, measure, run, store
from benchmarks.lab import console, verdict
from benchmarks.lab.activity import governor
from benchmarks.lab.agreement import of_json
from benchmarks.lab.progress import Progress
from benchmarks.lab.stability import first_line, of_record, told
from benchmarks.lab.target import Target, UserProgram
from benchmarks.terminal import seconds


class WrongUse(ValueError):
    """The command line cannot be followed; the message says what to write instead."""


def programs(options: argparse.Namespace, engine: ModuleType) -> list[UserProgram]:
    """Return what is to be measured: each target, at each size of the sweep."""
    found = []
    for text in options.targets:
        named = Target.parse(text)
        target = Target(
            named.file, named.name, options.args or "", dict(map(_size, options.size)), options.grad,
            options.loss, options.optimizer, options.control_flow,
        )  # fmt: skip
        first = UserProgram(target, engine) if not options.sweep else None
        sweep = options.sweep or (first.sweep if first is not None else "")
        if not sweep:
            assert first is not None
            found.append(first)
            continue
        name, _, numbers = sweep.partition("=")
        try:
            values = [int(n) for n in numbers.split(",")]
        except ValueError:
            raise WrongUse(f"--sweep is a name and numbers, such as n=10,100,1000, not {sweep!r}") from None
        found += [UserProgram(target.at(**{name.strip(): n}), engine) for n in values]
    return found


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdecimal():
        raise WrongUse(f"--size is a name and a number, such as n=100, not {text!r}")
    return name, int(number)


def effort_of(options: argparse.Namespace) -> run.Effort:
    """Return how much to measure."""
    effort = run.QUICK if options.quick else run.FULL
    if options.threads > 1 or not options.starts:
        effort = run.without_starts(effort)
    if options.seconds is not None:  # no less, however narrow the intervals
        effort = dataclasses.replace(effort, seconds=options.seconds, tight=0.0)
    return dataclasses.replace(effort, clock=options.clock, limit=options.limit)


def begin(options: argparse.Namespace) -> tuple[dict[str, ModuleType], list[int]]:
    """Keep to the cores, then import the engines.

    Raises
    ------
    WrongUse
        If more threads are asked for than there are cores.
    """
    cores = machine.cores()
    if not 1 <= options.threads <= cores:
        raise WrongUse(f"--threads is from 1 to {cores}, the cores of this process, not {options.threads}")
    kept = measure.keep_to(options.threads)
    engines = {name: __import__(name) for name in run.ENGINES}
    engines["static"].set_num_threads(options.threads)
    return engines, kept


def main(options: argparse.Namespace) -> int:
    """Measure, print the verdicts, store the record. Returns the exit code."""
    from benchmarks.peers import chosen

    peers, missing = chosen(options.peers)
    engines, kept = begin(options)
    about = {**machine.describe(), "governor": governor()}
    wanted = programs(options, engines["dynamic"])
    for workload in wanted:
        workload.inputs()  # what is missing is said before anything is measured
    record = {"machine": about, "quick": options.quick, "cores": kept, "threads": options.threads}
    path, finished, had = store.resumed(options.resume, options.json, record)
    results: list[dict[str, Any]] = []
    with Progress(sum(w.key not in finished for w in wanted)) as progress:

        def found() -> Iterator[dict[str, Any]]:
            yield from (finished[w.key] for w in wanted if w.key in finished)
            for workload in wanted:
                if workload.key not in finished:
                    yield run.measure(workload, engines, effort_of(options), peers, progress).as_json()
                    progress.finished()

        done = interrupts.collect(results, found())
    keys = [workload.key for workload in wanted]
    results.sort(key=lambda result: keys.index(result["key"]))
    record |= {"complete": done, "workloads": store.with_earlier(results, had)}
    if results:
        store.save(path, record)
    show(record, missing)
    if not done:
        console.say(f"interrupted: {len(results)} of {len(wanted)} are finished; "
                    f"`--resume {path}` measures the others", "yellow")  # fmt: skip
        return interrupts.EXIT_CODE
    print(f"results: {path}", file=sys.stderr)
    report(record, options.report, engines)
    return 0 if all(w["bits_equal"] for w in results) else 1


def report(record: dict[str, Any], path: Path | None, engines: dict[str, ModuleType]) -> None:
    """Write the page of a record, if there is a path for it."""
    if path is not None:
        from benchmarks.lab.html.report import write

        write(record, path, engines)
        print(f"report: {path}", file=sys.stderr)


def show(record: dict[str, Any], missing: list[str]) -> None:
    """Print a record: what makes it unreliable, the verdicts, then the figures."""
    reasons = [line for workload in record["workloads"] for line in of_record(workload)]
    if reasons:
        console.wrapped(first_line(reasons), style="bold yellow")
    for workload in record["workloads"]:
        good = workload["bits_equal"] and not workload["error"]
        console.wrapped(verdict.verdict(workload), style="bold green" if good else "bold red")
    for line in missing:
        console.wrapped(line, style="yellow")
    for workload in record["workloads"]:
        if workload.get("call"):
            console.say()
            details(workload)
    wrong, remedies = told({workload["name"]: of_record(workload) for workload in record["workloads"]})
    if len(reasons) > 1:
        console.say()
        console.say("What makes these figures unreliable:", "yellow")
        for name, what in wrong.items():
            console.wrapped(f"- {name}: {what}", "  ")
        console.say("What to do:", "yellow")
        for line in remedies:
            console.wrapped(f"- {line}", "  ")


def details(workload: dict[str, Any]) -> None:
    """Print times per call, one-off costs and memory of a workload."""
    console.say(f"{workload['name']}: {workload['title']}", "bold")
    rows = []
    static = workload["call"]["static"]
    for name, call in sorted(workload["call"].items(), key=lambda item: item[1]["value"]):
        over = workload["static_over"].get(name)
        ratio = [] if over is None else [f"{verdict.times(1 / over['value'])} {verdict.interval(over)}"]
        rows.append([name, seconds(call["value"]), f"[{seconds(call['low'])}, {seconds(call['high'])}]",
                     *(ratio or ["-" if call is static else ""])])  # fmt: skip
    for line in console.columns(rows, ["", "per call", "95 % interval", "static is so many times as fast"]):
        console.say(line)
    if "once" in workload:
        rows = [
            [engine, *(seconds(workload["once"][engine][start]["value"]) for start in ("cold", "disk")),
             f"{workload['peak_bytes'][engine] / 1e6:.0f} MB"]
            for engine in run.ENGINES
        ]  # fmt: skip
        console.say()
        for line in console.columns(rows, ["import to first result", "empty cache", "from disk", "peak memory"]):
            console.say(line)
    for name, found in of_json(workload.get("agreement", {})).items():
        console.wrapped(f"{name}: {found.line()}", "  ")


__all__ = ["WrongUse", "begin", "details", "main", "programs", "report", "show"]
