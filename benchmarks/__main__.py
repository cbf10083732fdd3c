"""``python3 -m benchmarks``: runs the same programs in both engines, compares their bits, then times them."""

import argparse
import difflib
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.bootstrap import bootstrap

NEEDS = ("numpy", "numba", "networkx", "scipy")


def parser() -> argparse.ArgumentParser:
    """Return the command line's definition."""
    p = argparse.ArgumentParser(
        prog="twingrad" if Path(sys.argv[0]).stem == "twingrad" else "python3 -m benchmarks",
        description="Run real workloads in both engines, compare every bit, then measure: seconds per call, "
        "one-off cost cold and from the disk cache, break-even calls, peak memory.",
        epilog="Exit code 1 if a bit differs or a workload fails, 130 after Ctrl-C, "
        "which keeps what is finished. Table on stdout, progress on stderr. "
        "Other commands: run FILE.py:NAME measures a program of yours, explain FILE.py:NAME shows how much "
        "time each step of compiling saves, compare A.json B.json, passport, "
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
MODULES = {
    "passport": ("benchmarks.passport.command", "bench", NEEDS),
    "cache": ("benchmarks.cache", "bench", NEEDS),
    "draw": ("benchmarks.draw", "draw", ("matplotlib",)),
}
"""Other commands: a module, the extra that it needs, and packages of that."""
COMMANDS = (*LABORATORY, *MODULES, "list")


def refuse_unknown(words: "list[str]") -> None:
    """End with an error if the first word is no command, and name the nearest."""
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], COMMANDS, 1)
        meant = f"; did you mean {near[0]!r}?" if near else f"; to measure a file: run {words[0]}" * (".py" in words[0])
        parser().error(f"there is no command {words[0]!r}{meant}; the commands: {', '.join(COMMANDS)}")


def main() -> int:
    """Run the command and return its exit code."""
    words = sys.argv[1:]
    refuse_unknown(words)
    if words[:1] == ["run"] and not any(".py" in word for word in words) and not {"-h", "--help"} & set(words):
        words = words[1:]  # the project's own workloads
        if words and not words[0].startswith("-"):
            parser().error(f"run measures FILE.py:NAME; a workload of the project is -k {words[0]}")
    name = words[0] if words else ""
    if name in LABORATORY:
        if name == "report" or "--report" in words:
            bootstrap("benchmarks", "lab", (*NEEDS, "jinja2"))
        bootstrap("benchmarks", "bench", NEEDS)
        from benchmarks.lab import command

        return command.main(name, words[1:])
    if name in MODULES:
        module, extra, needs = MODULES[name]
        bootstrap("benchmarks", extra, needs)
        return int(import_module(module).main(words[1:]))
    options = parser().parse_args(["--list", *words[1:]] if name == "list" else words)
    bootstrap("benchmarks", "dask" if options.dask else "bench", (*NEEDS, *["distributed"] * bool(options.dask)))
    from benchmarks.machine import cores as cores_here
    from benchmarks.measure import keep_to

    if not 1 <= options.threads <= cores_here():
        parser().error(f"--threads is from 1 to {cores_here()}, the cores of this process, not {options.threads}")
    if options.dask and options.threads != 1:
        parser().error("--dask measures with one thread on each worker: leave out --threads")
    cores = keep_to(options.threads)  # before anything starts a thread pool
    from benchmarks import suite

    return suite.main(options, cores)


def run() -> int:
    """Run the command; Ctrl-C before anything is measured ends it in one line."""
    try:
        return main()
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
