"""Print error and speed of the elementary functions: ``python -m benchmarks.accuracy [name ...]``.

One line per function and dtype: the largest error found, in ulp against mpmath, where it was found, and nanoseconds
per element beside the functions of numpy, and of PyTorch and JAX where they are installed (which promise no bits). A
function whose compiled form differs from the numpy backend of the same source by one bit is reported and not timed.
``--write docs/numerics.md`` puts the table, with the machine named, between the markers of that page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, measure, report
from benchmarks.bits import difference
from benchmarks.elementary_reference import FUNCTIONS, sample, special_values, worst_error
from benchmarks.peers import functions
from benchmarks.scalar_loop import compile_loop
from common.kernels import elementary
from common.native.primitives import evaluate

__all__ = ["MARKERS", "inputs", "main", "table"]

MARKERS = (
    "<!-- accuracy: written by `python -m benchmarks.accuracy --write docs/numerics.md` -->",
    "<!-- end of accuracy -->",
)

POINTS = 600_000
CHECKED = 2_000
SIZE = 100_000
ROUNDS = 31


def inputs(name: str, dtype: Any, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return arguments to compare bits on: points of the domain, random bit patterns, special values."""
    points = sample(name, dtype, 2 * count // 3, seed)
    rng = np.random.default_rng(seed)
    special = special_values(dtype)
    grids = np.meshgrid(*[special] * len(points))
    noise = [np.frombuffer(rng.bytes(count // 3 * special.itemsize), dtype) for _ in points]
    return tuple(np.concatenate([p, n, g.ravel()]) for p, n, g in zip(points, noise, grids, strict=True))


def _timing_arguments(name: str, dtype: Any) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    low = 0.1 if name in ("log", "log1p", "rsqrt", "pow") else -10.0
    arguments = [rng.uniform(low, 10.0, SIZE)]
    if name == "pow":
        arguments.append(rng.uniform(-9.0, 9.0, SIZE))
    return tuple(a.astype(dtype) for a in arguments)


def _nanoseconds(functions: list[Callable[[], Any]]) -> list[float]:
    """Return the median time per element of each, measured in turns after a warm-up."""
    times: list[list[int]] = [[] for _ in functions]
    for turn in range(ROUNDS + 3):
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter_ns()
            function()
            if turn >= 3:
                own.append(time.perf_counter_ns() - start)
    return [float(np.median(own)) / SIZE for own in times]


def _row(name: str, dtype: Any, libraries: list[str]) -> str:
    definition = getattr(elementary, name)
    points = sample(name, dtype, POINTS)
    loop = compile_loop(f"{name}_{np.dtype(dtype).name}", definition, *[dtype] * len(points))
    arguments = inputs(name, dtype, POINTS)
    unequal = difference(loop(*arguments), evaluate(definition, *arguments))
    title = f"| {name} | {np.dtype(dtype).name} |"
    if unequal:
        return f"{title} the two backends differ: {unequal} |" + " |" * (2 + len(libraries))
    worst, where = worst_error(name, loop(*points), points, CHECKED)
    timed = _timing_arguments(name, dtype)
    out = np.empty_like(timed[0])
    calls: list[Callable[[], Any] | None] = [lambda: loop(*timed, out=out)]
    calls += [functions.call(library, name, timed) for library in libraries]
    times = iter(_nanoseconds([call for call in calls if call is not None]))
    shown = " | ".join("-" if call is None else f"{next(times):.2f}" for call in calls)
    place = ", ".join(f"{float(w):.9g}" for w in where)
    return f"{title} {worst:.2f} | {place} | {shown} |"


def table(names: list[str]) -> str:
    """Return the table as Markdown, the machine above it; rows are printed as they are made."""
    libraries = functions.libraries()
    columns = ["function", "dtype", "worst ulp", "found at", "ns/element", *libraries]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    print(*lines, sep="\n")
    for name in names or FUNCTIONS:
        for dtype in (np.float64, np.float32):
            lines.append(_row(name, dtype, libraries))
            print(lines[-1], flush=True)
    about = (
        f"{machine.one_line(machine.describe())}. One core, one thread; {POINTS:,} points per error, medians of "
        f"{ROUNDS} rounds over {SIZE:,} elements per time."
    )
    return "\n".join([about, "", *lines])


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write it where `--write` says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description="Error and speed of functions.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(FUNCTIONS)}; all by default")
    parser.add_argument("--write", metavar="PATH", type=Path, help="put the table between this file's markers")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(FUNCTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    measure.single_core()
    text = table(options.names)
    if options.write:
        report.insert(options.write, text, MARKERS)


if __name__ == "__main__":
    main()
