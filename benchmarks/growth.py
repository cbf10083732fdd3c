"""``python -m benchmarks.growth``: how the time from a Python function to a plan grows with the size of its graph.

Graphs of about 1e2, 1e3 and 1e4 nodes, forward and backward, of several shapes. Machine code is left out: kernels are
planned at an address that is never called. Microseconds of processor time per node of the traced graph: where nothing
is worse than linear, a figure does not grow down its column.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import static
from benchmarks import terminal
from common.core.garbage import collecting_later
from static.passes import run_passes
from static.running.executable import compile_graph
from static.tools.replay import trace_call

SIZES = (100, 1_000, 10_000)
PHASES = ("trace", "differentiate", "passes", "lower", "plan")
NO_KERNEL = 64
"""An address that a plan takes for a kernel's; it is never run."""


class Growth(NamedTuple):
    """The cost of one graph: its nodes, and processor seconds per phase."""

    nodes: int
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds.values())


def chain(x: Any, n: int) -> Any:
    """each op reads the one before it"""
    for _ in range(n // 6):
        x = static.tanh(x * 1.5)
    return x.sum()


def fan(x: Any, n: int) -> Any:
    """one value is read by everything"""
    y = static.exp(x)
    total = y * 0.5
    for i in range(n // 4):
        total = total + y * float(i)
    return total.sum()


def layers(x: Any, n: int) -> Any:
    """residual layers that share their weights: products between elementwise ops"""
    w = np.full((8, 8), 0.1, np.float32)
    for _ in range(n // 9):
        x = x + static.tanh(x @ w + 0.25)
    return x.sum()


def dag(x: Any, n: int) -> Any:
    """each op reads one of all earlier values and one of the last twenty, at random"""
    choose, values = random.Random(0), [x]
    for i in range(n // 4):
        a, b = choose.choice(values), choose.choice(values[-20:])
        values.append(a * b if i % 2 else static.sin(a) + b)
    return sum((v.sum() for v in values[-100:]), static.tensor(0.0))


def rows(x: Any, n: int) -> Any:
    """softmax after softmax: reductions, their broadcasts and gradients"""
    for _ in range(n // 12):
        x = static.softmax(x * 1.1, -1) - 0.1
    return x.sum()


SHAPES: dict[str, Callable[[Any, int], Any]] = {f.__name__: f for f in (chain, fan, layers, dag, rows)}


def grow(shape: str, n: int) -> Growth:
    """Trace, differentiate, optimise, lower and plan a graph of about `n` nodes."""
    marks: list[float] = []

    def mark() -> None:
        marks.append(time.process_time())

    def program(x: Any) -> Any:
        x.requires_grad_()
        y = SHAPES[shape](x, n)
        mark()
        return y, *static.autograd.grad(y, x)

    gc.collect()
    mark()
    with collecting_later():  # as in a call
        call = trace_call(program, (np.full((8, 8), 0.3, np.float32),), {})
        mark()
        graph, _ = run_passes(call.graph)
        mark()
        compiled = compile_graph(graph)
        mark()
        vars(compiled)["address"] = lambda frame, step, layout: NO_KERNEL
        compiled.plan(call.env)
        mark()
    return Growth(len(call.graph.nodes), dict(zip(PHASES, np.diff(marks).tolist(), strict=True)))


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="shape", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="nodes, about")
    options = parser.parse_args(arguments)
    if unknown := [shape for shape in options.shapes if shape not in SHAPES]:
        parser.error(f"no shape {unknown[0]!r}; there are {', '.join(SHAPES)}")
    for shape in options.shapes:
        grow(shape, 100)  # what is made once: rules, kernels of constants
        lines = []
        for n in options.sizes:
            found = grow(shape, n)
            cells = [*(found.seconds[phase] for phase in PHASES), found.total]
            lines.append([f"{found.nodes:,}", *(terminal.significant(s / found.nodes * 1e6) for s in cells),
                          terminal.seconds(found.total)])  # fmt: skip
        print(f"{shape}: {SHAPES[shape].__doc__}; us per node")
        print(terminal.table(["nodes", *PHASES, "all", "in all"], lines), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
