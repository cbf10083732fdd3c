"""``python3 -m benchmarks``: runs the same programs in both engines, compares their bits, then times them."""

import argparse
import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bootstrap import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.run import Result

NEEDS = ("numpy", "numba", "networkx", "scipy")


def parser() -> argparse.ArgumentParser:
    """Return the command line's definition."""
    p = argparse.ArgumentParser(
        prog="twingrad" if Path(sys.argv[0]).stem == "twingrad" else "python3 -m benchmarks",
        description="Run real workloads in both engines, compare every bit, then measure: seconds per call, "
        "one-off cost cold and from the disk cache, break-even calls, peak memory.",
        epilog="Exit code 1 if a bit differs or a workload fails, 130 after Ctrl-C, "
        "which keeps what is finished. Table on stdout, progress on stderr. "
        "Other commands: run FILE.py:NAME measures a program of yours, explain FILE.py:NAME says what each step of "
        "compiling buys, compare A.json B.json, passport, "
        "report, doctor, graph, export, draw, list, cache [--clear]; each has --help.",
    )
    p.add_argument("--quick", action="store_true", help="fewer repetitions: about five minutes on two cores")
    p.add_argument("-k", metavar="NAME", action="append", default=[], dest="select",
                   help="only workloads whose name contains NAME (repeatable)")  # fmt: skip
    p.add_argument("--peers", metavar="NAMES", nargs="?", const="all", help="also measure PyTorch and JAX")
    p.add_argument("--threads", metavar="N", type=int, default=1,
                   help="time calls with N threads on N cores, peers too; no one-off costs")  # fmt: skip
    p.add_argument("--dask", metavar="ADDRESS", help="measure on the workers of a Dask cluster, one workload at a "
                   "time on each; the address of its scheduler")  # fmt: skip
    p.add_argument("--list", action="store_true", help="list the workloads and end")
    p.add_argument("--json", metavar="PATH", type=Path, help="file for the results; default: in .benchmarks")
    p.add_argument("--resume", metavar="PATH", nargs="?", const="", help="go on with a run that was interrupted "
                   "or unstable; default: the newest")  # fmt: skip
    p.add_argument("--readme", metavar="PATH", type=Path, help="write a short table between this file's markers")
    p.add_argument("--results", metavar="PATH", type=Path, help="write all tables between this file's markers")
    return p


LABORATORY = ("run", "explain", "compare", "doctor", "report", "graph", "export")
"""Commands of `benchmarks.lab.command`; `run` without a file runs the project's own workloads."""
OTHERS = ("passport", "cache", "draw", "list")


def refuse_unknown(words: "list[str]") -> None:
    """End with an error if the first word is no command, and name the nearest."""
    if words and not words[0].startswith("-") and words[0] not in (*LABORATORY, *OTHERS):
        near = difflib.get_close_matches(words[0], (*LABORATORY, *OTHERS), 1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; to measure a file: run {words[0]}" * (".py" in words[0])
        parser().error(f"there is no command {words[0]!r}{meant}; the commands: {', '.join((*LABORATORY, *OTHERS))}")


def main() -> int:
    """Run the command and return its exit code."""
    refuse_unknown(sys.argv[1:])
    if sys.argv[1:2] == ["list"]:
        sys.argv[1:2] = ["--list"]
    if (
        sys.argv[1:2] == ["run"]
        and not any(".py" in word for word in sys.argv[2:])
        and not {"-h", "--help"} & set(sys.argv)
    ):
        del sys.argv[1]
    if sys.argv[1:2] and sys.argv[1] in LABORATORY:
        if sys.argv[1] == "report" or "--report" in sys.argv:
            bootstrap("benchmarks", "lab", (*NEEDS, "jinja2"))
        bootstrap("benchmarks", "bench", NEEDS)
        from benchmarks.lab import command

        return command.main(sys.argv[1], sys.argv[2:])
    if sys.argv[1:2] == ["passport"]:
        bootstrap("benchmarks", "bench", NEEDS)
        from benchmarks.passport import command as passport

        return passport.main(sys.argv[2:])
    if sys.argv[1:2] == ["cache"]:
        bootstrap("benchmarks", "bench", NEEDS)
        from benchmarks import cache

        return cache.main(sys.argv[2:])
    if sys.argv[1:2] == ["draw"]:
        bootstrap("benchmarks", "draw", ("matplotlib",))
        from benchmarks import draw

        return draw.main(sys.argv[2:])
    options = parser().parse_args()
    bootstrap("benchmarks", "dask" if options.dask else "bench", (*NEEDS, *["distributed"] * bool(options.dask)))
    from benchmarks.machine import cores as cores_here
    from benchmarks.measure import keep_to

    if not 1 <= options.threads <= cores_here():
        parser().error(f"--threads is from 1 to {cores_here()}, the cores of this process, not {options.threads}")
    cores = keep_to(options.threads)  # before anything starts a thread pool
    from benchmarks import interrupts, machine, report, store
    from benchmarks.lab import console
    from benchmarks.lab.progress import Progress
    from benchmarks.peers import chosen
    from benchmarks.run import ENGINES, FULL, QUICK, Result, measure, without_starts
    from benchmarks.workload import discover

    try:
        workloads = discover(options.select)
        peers, lacking = chosen(options.peers)
        pages = {
            path: written
            for path, written in ((options.readme, report.in_short), (options.results, report.text))
            if path
        }
        for path in pages:
            report.around(path)  # now, not after minutes of measuring
    except (LookupError, ValueError, OSError) as problem:
        print(f"benchmarks: {problem if isinstance(problem, OSError) else problem.args[0]}", file=sys.stderr)
        return 2
    if options.list:
        for workload in workloads:
            console.wrapped(f"{workload.name:16} {workload.title}", follow=" " * 17)
        return 0
    sweep: Any = None
    if options.dask:
        from benchmarks.sweep import Sweep

        if options.threads != 1:
            parser().error("--dask measures with one thread on each worker: leave out --threads")
        try:
            sweep = Sweep(options.dask)
        except OSError as problem:
            print(f"benchmarks: {problem}", file=sys.stderr)
            return 2
    engines = {name: __import__(name) for name in ENGINES}
    engines["static"].set_num_threads(options.threads)  # one setting for both
    about = machine.describe()
    record: dict[str, Any] = {"machine": about, "quick": options.quick, "cores": cores, "threads": options.threads}
    try:
        path, finished = store.resumed(options.resume, options.json, record)
    except (LookupError, ValueError, OSError) as problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 2
    effort = QUICK if options.quick else FULL
    effort = effort if options.threads == 1 else without_starts(effort)
    results: list[Result] = []
    with Progress(sum(w.key not in finished for w in workloads)) as progress:
        for line in (*lacking, f"{machine.one_line(about)}; pinned to cores {cores}"):
            progress.say(line)

        def found() -> "Iterator[Result]":
            if sweep is not None:
                yield from (Result.of_json(w, finished[w.key]) for w in workloads if w.key in finished)
                left = [w for w in workloads if w.key not in finished]
                yield from sweep.results(left, effort, peers, progress)
                return
            for workload in workloads:
                if workload.key in finished:
                    yield Result.of_json(workload, finished[workload.key])
                else:
                    yield measure(workload, engines, effort, peers, progress)
                    progress.finished()

        done = interrupts.collect(results, found())
    if sweep is not None:
        sweep.close()
        results.sort(key=lambda result: workloads.index(result.workload))
        record["machines"] = sweep.machines
    record |= {"complete": done, "workloads": [result.as_json() for result in results]}
    passed = all(result.passed for result in results)
    code = (0 if passed else 1) if done else interrupts.EXIT_CODE
    if not done:
        kept = f"; `--resume {path}` measures the others" * bool(results)
        tell(f"interrupted: {len(results)} of {len(workloads)} workloads are finished{kept}")
    if not results:
        return code
    print(report.text(results, about, peers, options.threads))
    try:
        store.save(path, record)
        tell(f"results written to {path}")
        for page, written in pages.items():
            if passed and done:
                report.insert(page, written(results, about, peers, options.threads))
                tell(f"results written to {page}")
            else:
                tell(f"{page} is left as it was: a workload {'failed' if done else 'is missing'}")
    except OSError as problem:
        tell(f"benchmarks: the results could not be written: {problem}")
        return 1
    return code


def tell(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def run() -> int:
    """Run the command; Ctrl-C before anything is measured ends it in one line."""
    try:
        return main()
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
