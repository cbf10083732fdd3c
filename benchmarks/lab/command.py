"""The laboratory: ``twingrad run``, ``explain``, ``compare``, ``doctor``, ``report``, ``graph`` and ``export``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.lab import failures, measuring, patience

EPILOG = """\
FILE.py:NAME is a function; a module, measured as a training step; make(), which sets up and returns a step; or a
Workload. The file imports dynamic, static or torch: it gets the engine that is measured. FILE.py alone means its make()
or its only function.
"""


def run_parser(word: str = "run") -> argparse.ArgumentParser:
    """Return the command line of ``run`` and ``explain``."""
    about = {
        "run": "Measure a program of yours in both engines: bits first, then what each costs.",
        "explain": "Run a program of yours in ever more compiled ways, and show how much time each step saves.",
        "graph": "Draw the graph of a program of yours: recorded, traced, after each pass, fused, as kernels.",
    }[word]
    p = argparse.ArgumentParser(
        prog=f"twingrad {word}", description=about, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("targets", nargs="*" if word == "run" else 1, metavar="FILE.py:NAME", help="what to measure")
    what = p.add_argument_group("the program")
    what.add_argument("--args", metavar="TEXT", help='its arguments, such as "f32[64,n], i64[64]<10, 0.5"')
    what.add_argument("--size", metavar="NAME=N", action="append", default=[], help="a number for a size's name")
    what.add_argument("--grad", action=argparse.BooleanOptionalAction, default=None, help="value and gradient")
    what.add_argument("--loss", metavar="NAME", default="", help="of a module: a loss of nn.functional of its output "
                      "and the last argument; the mean square of the output by default")  # fmt: skip
    what.add_argument("--optimizer", metavar="CALL", default="", help='of a module, such as "SGD(lr=0.1)"')
    what.add_argument("--control-flow", choices=("guard", "convert"), help="how Python's if and while are compiled")
    how = p.add_argument_group("measuring")
    how.add_argument("--seconds", metavar="S", type=float, help="how long calls are timed")
    how.add_argument("--limit", metavar="S", type=float, default=patience.LIMIT, help="how long one call may take "
                     "when the bits are compared; its line is told before; default: %(default)g")  # fmt: skip
    how.add_argument("--quick", action="store_true", help="fewer repetitions")
    how.add_argument("--threads", metavar="N", type=int, default=1, help="threads, at most the cores")
    how.add_argument("--json", metavar="PATH", type=Path, help="file for the results; default: in .benchmarks")
    if word != "graph":
        how.add_argument("--clock", choices=("wall", "processor"), default="wall", help="processor: what the processor "
                         "works, which other processes disturb less; for a loaded machine, and for gates")  # fmt: skip
        how.add_argument("--report", metavar="FILE.html", type=Path, help="write the results as a page, too")
    if word == "graph":
        p.add_argument("--to", metavar="FILE", type=Path, help=".html (default), .svg, .dot, .txt or .json")
    if word == "run":
        how.add_argument("--starts", action=argparse.BooleanOptionalAction, default=True, help="one-off costs too")
        how.add_argument("--sweep", metavar="NAME=N,N", default="", help="measure at several sizes, as n=10,100,1000")
        how.add_argument("--peers", metavar="NAMES", nargs="?", const="all", help="also PyTorch and JAX")
        how.add_argument("--resume", metavar="PATH", nargs="?", const="", help="go on with a run that was interrupted "
                         "or unstable")  # fmt: skip
    return p


def run(arguments: list[str]) -> int:
    """Measure."""
    options = run_parser().parse_args(arguments)
    if options.peers and ".py" in options.peers:  # `--peers FILE.py:NAME`
        options.targets, options.peers = [options.peers, *options.targets], "all"
    return measuring.main(options)


def explain(arguments: list[str]) -> int:
    """Measure the ladder."""
    from benchmarks.lab import explaining

    return explaining.main(run_parser("explain").parse_args(arguments))


def report(arguments: list[str]) -> int:
    """Write the page of a run."""
    from benchmarks.lab.html import command

    return command.report(arguments)


def graph(arguments: list[str]) -> int:
    """Draw a program."""
    from benchmarks.lab.html import command

    return command.graph(run_parser("graph").parse_args(arguments))


def compare(arguments: list[str]) -> int:
    """Compare two runs."""
    from benchmarks.lab import comparing

    return comparing.main(arguments)


def doctor(arguments: list[str]) -> int:
    """Look at the machine."""
    from benchmarks.lab import doctor

    return doctor.main(arguments)


def export(arguments: list[str]) -> int:
    """Write a program as a library, model or file, or a run for pyperf."""
    from benchmarks.lab import exporting

    return exporting.main(arguments)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run,
    "explain": explain,
    "compare": compare,
    "doctor": doctor,
    "export": export,
    "report": report,
    "graph": graph,
}


def main(word: str, arguments: list[str]) -> int:
    """Run a command.

    Returns
    -------
    int : the exit code; 2 and a line on stderr for what cannot be done, 1 and the user's lines for a program that
        fails.
    """
    try:
        return COMMANDS[word](arguments)
    except Exception as problem:
        if failures.own_lines(problem):
            print(f"twingrad {word}: the program fails\n{failures.told(problem)}", file=sys.stderr)
            return 1
        if not isinstance(problem, LookupError | OSError | ValueError | SyntaxError | ImportError):
            raise
        text = problem.args[0] if isinstance(problem, LookupError | ValueError) else str(problem)
        print(f"twingrad {word}: {text}", file=sys.stderr)
        return 2
