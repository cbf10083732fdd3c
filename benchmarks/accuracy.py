"""Print error and speed of the elementary functions: ``python -m benchmarks.accuracy [name ...]``.

One line per function and dtype: the largest error found, in ulp against mpmath, where it was found and among which
points; and nanoseconds per element of both engines beside the functions of numpy (or scipy), and of PyTorch and JAX
where they are installed (which promise no bits). A function whose compiled form differs from the numpy backend of the
same source by one bit, or whose engines differ, is reported and not timed. ``--write docs/numerics.md`` puts the rows,
with the machine named, into the table between the markers of that page.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import exhaustive, machine, measure, report
from benchmarks.bits import difference
from benchmarks.elementary.mpmath_definitions import REFERENCES
from benchmarks.elementary.scalar_loop import compile_loop
from benchmarks.elementary.ulp_errors import FUNCTIONS, definition, operands, sample, special_values, worst_error
from benchmarks.peers import elementary_functions
from common.compiler.primitives import evaluate

__all__ = ["MARKERS", "inputs", "main", "table"]

MARKERS = (
    "<!-- accuracy: written by `python -m benchmarks.accuracy --write docs/numerics.md` -->",
    "<!-- end of accuracy -->",
)

POINTS = 600_000
CHECKED = 4_000
SIZE = 1_000_000
ROUNDS = 15
COLUMNS = ["function", "dtype", "worst ulp", "found at", "among", "dynamic", "static"]
_ROW = re.compile(r"^\| ([^|]+) \| (float\d\d) \|.*\|$", re.MULTILINE)


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
    return tuple(rng.uniform(*REFERENCES[name].timed, SIZE).astype(dtype) for _ in range(operands(name)))


def _nanoseconds(calls: list[Callable[[], Any]]) -> list[float]:
    """Return the shortest time per element of each, measured in turns after a warm-up.

    Other programs of the machine only ever add time, and rarely to all rounds.
    """
    times: list[list[int]] = [[] for _ in calls]
    for turn in range(ROUNDS + 3):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter_ns()
            call()
            if turn >= 3:
                own.append(time.perf_counter_ns() - start)
    return [min(own) / SIZE for own in times]


def _error(name: str, dtype: Any, loop: Callable[..., np.ndarray]) -> tuple[float, str, str]:
    """Return the largest error, where it is, and among how many points."""
    if dtype == np.float32 and (known := exhaustive.recorded(name)):
        return known.ulp, f"{known.argument:.9g}", "all"
    points = sample(name, dtype, POINTS)
    worst, where = worst_error(name, loop(*points), points, CHECKED)
    return worst, ", ".join(f"{float(w):.9g}" for w in where), f"{len(points[0]):,}"


def _row(name: str, dtype: Any, libraries: list[str]) -> str:
    scalar, count = definition(name), operands(name)
    loop = compile_loop(f"{name}_{np.dtype(dtype).name}", scalar, *[dtype] * count)
    arguments = inputs(name, dtype, POINTS)
    unequal = difference(loop(*arguments), evaluate(scalar, *arguments))
    timed = _timing_arguments(name, dtype)
    engines = [elementary_functions.call(engine, name, timed) for engine in ("dynamic", "static")]
    for call in engines:
        unequal = unequal or (None if call is None else difference(np.asarray(call()), loop(*timed)))
    title = f"| {name} | {np.dtype(dtype).name} |"
    if unequal:
        return f"{title} bits differ: {unequal} |" + " |" * (4 + len(libraries))
    worst, place, among = _error(name, dtype, loop)
    calls = [*engines, *(elementary_functions.call(library, name, timed) for library in libraries)]
    times = iter(_nanoseconds([call for call in calls if call is not None]))
    shown = " | ".join("-" if call is None else f"{next(times):.2f}" for call in calls)
    return f"{title} {worst:.2f} | {place} | {among} | {shown} |"


def rows(names: list[str], libraries: list[str]) -> dict[tuple[str, str], str]:
    """Measure functions, all by default; rows are printed as they are made."""
    found = {}
    for name in names or FUNCTIONS:
        for dtype in (np.float64, np.float32):
            found[name, np.dtype(dtype).name] = row = _row(name, dtype, libraries)
            print(row, flush=True)
    return found


def table(found: dict[tuple[str, str], str], libraries: list[str]) -> str:
    """Return the rows as a table of Markdown in the order of `FUNCTIONS`, the machine above it."""
    columns = [*COLUMNS, *libraries]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [found[key] for name in FUNCTIONS for key in ((name, "float64"), (name, "float32")) if key in found]
    about = (
        f"{machine.one_line(machine.describe())}. One core, one thread; nanoseconds per element, the best of {ROUNDS} "
        f"rounds in turns over {SIZE:,} elements."
    )
    return "\n".join([about, "", *lines])


def _known(page: Path, libraries: list[str]) -> dict[tuple[str, str], str] | str:
    """Return the rows of a page's table, or what it has other columns than this run would write."""
    before, after = report.around(page, MARKERS)
    text = page.read_text(encoding="utf-8")[len(before) : -len(after)]
    header = re.search(rf"^\| {COLUMNS[0]} \|.*\|$", text, re.MULTILINE)
    if header and header[0] != (own := f"| {' | '.join([*COLUMNS, *libraries])} |"):
        return f"its columns are {header[0]}, those of this run would be {own}"
    return {(match[1], match[2]): match[0] for match in _ROW.finditer(text)}


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and write it where `--write` says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description="Error and speed of functions.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(FUNCTIONS)}; all by default")
    parser.add_argument("--write", metavar="PATH", type=Path, help="put the rows into the table in this file")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(FUNCTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    measure.single_core()
    libraries = elementary_functions.libraries()
    known = _known(options.write, libraries) if options.write and options.names else {}
    if isinstance(known, str):
        parser.error(f"{options.write} keeps its table: {known}; install the same libraries, or name no function")
    found = rows(options.names, libraries)
    if options.write:
        report.insert(options.write, table(known | found, libraries), MARKERS)


if __name__ == "__main__":
    main()
