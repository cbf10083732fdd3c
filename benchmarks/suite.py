"""The project's workloads in both engines: measured one after the other, printed, and written to record and pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import interrupts, machine, peers, report, run, store
from benchmarks.lab import console
from benchmarks.lab.progress import Progress
from benchmarks.run import Effort, Result
from benchmarks.sweep import Sweep
from benchmarks.workload import Workload, discover

#: Per file that gets results, what writes them.
Pages = Mapping[Path, Callable[..., str]]


def main(options: argparse.Namespace, cores: Sequence[int]) -> int:
    """Measure the workloads that the command line names, and return the exit code.

    Parameters
    ----------
    options : of `benchmarks.__main__.parser`.
    cores : to which this process is pinned.
    """
    try:
        workloads = discover(options.select)
        asked, lacking = peers.chosen(options.peers)
        pages = {
            path: written
            for path, written in ((options.readme, report.in_short), (options.results, report.text))
            if path
        }
        for path in pages:
            report.around(path)  # now, not after minutes of measuring
    except (LookupError, ValueError, OSError) as problem:
        return _refused(problem)
    if options.list:
        for workload in workloads:
            console.wrapped(f"{workload.name:16} {workload.title}", follow=" " * 17)
        return 0
    about = machine.describe()
    record: dict[str, Any] = {"machine": about, "quick": options.quick, "cores": cores, "threads": options.threads}
    try:
        path, finished, had = store.resumed(options.resume, options.json, record)
        cluster = Sweep(options.dask) if options.dask else None
    except (LookupError, ValueError, OSError) as problem:
        return _refused(problem)
    effort = run.QUICK if options.quick else run.FULL
    effort = effort if options.threads == 1 else run.without_starts(effort)
    results: list[Result] = []
    with Progress(sum(w.key not in finished for w in workloads)) as progress:
        for line in (*lacking, f"{machine.one_line(about)}; pinned to cores {cores}"):
            progress.say(line)
        kept = [Result.of_json(w, finished[w.key]) for w in workloads if w.key in finished]
        left = [w for w in workloads if w.key not in finished]
        if cluster is None:
            found = _measured(left, effort, asked, options.threads, progress)
        else:
            found = cluster.results(left, effort, asked, progress)
        results += kept
        done = interrupts.collect(results, found)
    results.sort(key=lambda result: workloads.index(result.workload))
    if cluster is not None:
        cluster.close()
        record["machines"] = cluster.machines
    passed = all(result.passed for result in results)
    if not done:
        more = f"; `--resume {path}` measures the others" * bool(results)
        tell(f"interrupted: {len(results)} of {len(workloads)} workloads are finished{more}")
    code = (0 if passed else 1) if done else interrupts.EXIT_CODE
    if not results:
        return code
    print(report.text(results, about, asked, options.threads))
    record |= {"complete": done, "workloads": store.with_earlier([result.as_json() for result in results], had)}
    try:
        store.save(path, record)
        tell(f"results written to {path}")
        for page, written in pages.items():
            if passed and done:
                report.insert(page, written(results, about, asked, options.threads))
                tell(f"results written to {page}")
            else:
                tell(f"{page} is left as it was: a workload {'failed' if done else 'is missing'}")
    except OSError as problem:
        tell(f"benchmarks: the results could not be written: {problem}")
        return 1
    return code


def _measured(
    workloads: Sequence[Workload], effort: Effort, asked: list[str], threads: int, progress: Progress
) -> Iterator[Result]:
    """Measure workloads in this process."""
    engines = {name: __import__(name) for name in run.ENGINES}
    engines["static"].set_num_threads(threads)  # one setting for both
    for workload in workloads:
        yield run.measure(workload, engines, effort, asked, progress)
        progress.finished()


def _refused(problem: Exception) -> int:
    tell(f"benchmarks: {problem if isinstance(problem, OSError) else problem.args[0]}")
    return 2


def tell(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)
