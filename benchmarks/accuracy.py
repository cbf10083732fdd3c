"""Print error and speed of the elementary functions: ``python -m benchmarks.accuracy [name ...]``.

One line per function and dtype: the largest error found, in ulp against mpmath, and nanoseconds per element
beside numpy's own function (which promises no bits). A function whose compiled form differs from the numpy
backend of the same source by one bit is reported and not timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bits import difference
from benchmarks.elementary_reference import FUNCTIONS, sample, special_values, worst_error
from benchmarks.scalar_loop import compile_loop
from common.kernels import elementary
from common.native.primitives import evaluate

__all__ = ["inputs", "main"]

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


def _numpy_function(name: str) -> Callable[..., Any] | None:
    if name == "rsqrt":
        return lambda x, out: np.reciprocal(np.sqrt(x, out=out), out=out)
    if name == "sigmoid":
        return lambda x, out: np.reciprocal(
            np.add(np.exp(np.negative(x, out=out), out=out), 1, out=out), out=out
        )
    return getattr(np, {"pow": "power"}.get(name, name), None)


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


def _row(name: str, dtype: Any) -> str:
    definition = getattr(elementary, name)
    points = sample(name, dtype, POINTS)
    loop = compile_loop(f"{name}_{np.dtype(dtype).name}", definition, *[dtype] * len(points))
    arguments = inputs(name, dtype, POINTS)
    unequal = difference(loop(*arguments), evaluate(definition, *arguments))
    title = f"| {name} | {np.dtype(dtype).name} |"
    if unequal:
        return f"{title} the two backends differ: {unequal} | | |"
    worst, where = worst_error(name, loop(*points), points, CHECKED)
    timed = _timing_arguments(name, dtype)
    out = np.empty_like(timed[0])
    numpy_function = _numpy_function(name)
    calls: list[Callable[[], Any]] = [lambda: loop(*timed, out=out)]
    if numpy_function is not None:
        calls.append(lambda: numpy_function(*timed, out=out))
    own, *other = _nanoseconds(calls)
    theirs = f"{other[0]:.2f}" if other else "-"
    place = ", ".join(repr(float(w)) for w in where)
    return f"{title} {worst:.2f} | {place} | {own:.2f} | {theirs} |"


def main(names: list[str]) -> None:
    """Print the table."""
    print(
        f"| function | dtype | worst ulp of {POINTS:,} | at | ns/element | numpy |\n|---|---|---|---|---|---|"
    )
    for name in names or FUNCTIONS:
        for dtype in (np.float64, np.float32):
            print(_row(name, dtype), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
