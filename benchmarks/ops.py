"""Single operators of `dynamic` beside PyTorch eager: ``python -m benchmarks.ops``, where PyTorch is installed.

Both run the same call on the same numbers with one thread, in turn, and the processor time of the fastest of several
batches counts. Results are compared before anything is timed. The last column says how many times as fast `dynamic`
is; the slowest rows stand first.
Beside each row stands what the machine allows (`benchmarks.ops_limits`), and at the end per size and direction the
geometric mean and how many rows are slow: less than 0.83x as fast.

    python -m benchmarks.ops                            # 1e3, 1e5 and 1e7 elements, forward and with backward
    python -m benchmarks.ops -k softmax --elements 1e6  # operators whose name contains it
    python -m benchmarks.ops --write now.json --before then.json  # keep the rows, and compare with those of another run
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # LAPACK's threads too; read when numpy is imported

import numpy as np

from benchmarks.ops_calls import CALLS, Call
from benchmarks.ops_functions import FUNCTIONS
from benchmarks.ops_limits import limit

Step = Callable[[], Any]
SIZES = "1e3,1e5,1e7"
SLOW = 0.83
"""A row that is less than so many times as fast as PyTorch is named."""
_APART = 1e-3
"""Share of elements that may differ by more than the tolerance: where a function is steep or undefined."""


class Row(NamedTuple):
    """One operator at one size.

    Attributes
    ----------
    ours, theirs : seconds of one call, in `dynamic` and in PyTorch.
    least : seconds that moving the arrays, or adding the products, takes on this machine.
    """

    name: str
    elements: int
    backward: bool
    ours: float
    theirs: float
    least: float = 0.0

    @property
    def speed(self) -> float:
        """How many times as fast as PyTorch `dynamic` is."""
        return self.theirs / self.ours


def step(tw: ModuleType, call: Call, arrays: Sequence[np.ndarray], backward: bool) -> Step:
    """A call on tensors with memory of their own, made once; with `backward`, gradients of all float operands too."""
    make: Any = tw.tensor
    tensors = [make(x) for x in arrays]
    if not backward:
        return lambda: call.f(tw, *tensors)
    leaves = [t.requires_grad_() for t, x in zip(tensors, arrays, strict=True) if x.dtype.kind == "f"]
    first = _first(call.f(tw, *tensors))
    seed = make(np.random.default_rng(1).standard_normal(tuple(first.shape)).astype(np.float32))
    grad: Any = tw.autograd.grad
    return lambda: grad(_first(call.f(tw, *tensors)), leaves, seed, allow_unused=True)


def _first(y: Any) -> Any:
    return y[0] if isinstance(y, (tuple, list)) else y


def _batch(run: Step, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def seconds(ours: Step, theirs: Step, budget: float) -> tuple[float, float]:
    """The processor time of one call of each, the best of batches that alternate, within about `budget` seconds.

    What is remembered after some calls is known before the first batch that counts.
    """
    pair = ours, theirs
    once = []
    for run in pair:
        run()
        spent = _batch(run, 1)
        if spent < 0.02:
            spent = min(spent, *(_batch(run, 1) for _ in range(14)))
        once.append(spent)
    counts = [max(1, int(0.004 / max(t, 1e-7))) for t in once]
    rounds = int(max(3, min(40, budget / sum(t * n for t, n in zip(once, counts, strict=True)))))
    best = [np.inf, np.inf]
    for _ in range(rounds):
        best = [min(b, _batch(run, n)) for b, run, n in zip(best, pair, counts, strict=True)]
    return best[0], best[1]


def compare(call: Call, elements: int, backward: bool, budget: float) -> Row:
    """Time one operator.

    Raises
    ------
    AssertionError : the two libraries' results differ by more than rounding explains.
    """
    import torch

    import dynamic

    arrays = call.operands(np.random.default_rng(0), elements)
    steps = [step(tw, call, arrays, backward) for tw in (dynamic, torch)]
    mine, its = (_first(run()).detach().numpy() for run in steps)  # where values are equal, indices may differ
    assert mine.shape == its.shape, f"{call.name}: {mine.shape}, PyTorch {its.shape}"
    if not call.random:
        scale = float(np.abs(its[np.isfinite(its)]).max(initial=1))
        apart = 1 - np.isclose(mine, its, rtol=2e-3, atol=2e-4 * scale, equal_nan=True).mean() if its.size else 0.0
        assert apart <= _APART, f"{call.name}: {apart:.1%} of the elements differ from PyTorch's"
    result = _first(call.f(torch, *map(torch.from_numpy, arrays))).detach().numpy()
    least = limit(call, arrays, result, backward)
    gc.collect()
    return Row(call.name, elements, backward, *seconds(steps[0], steps[1], budget), least)


def table(rows: Iterable[Row]) -> str:
    """The rows as text, the slowest first."""
    lines = [f"{'op':<26}{'elements':>9} {'':<9}{'dynamic us':>12}{'torch us':>12}{'limit us':>12}{'as fast':>9}"]
    for r in sorted(rows, key=lambda row: row.speed):
        kind = "backward" if r.backward else "forward"
        times = "".join(f"{1e6 * t:>12.1f}" for t in (r.ours, r.theirs, r.least))
        lines.append(f"{r.name:<26}{r.elements:>9} {kind:<9}{times}{r.speed:>8.2f}x")
    return "\n".join(lines)


def mean(rows: Iterable[Row]) -> float:
    """The geometric mean: how many times as fast."""
    return float(np.exp(np.mean([np.log(row.speed) for row in rows])))


def summary(rows: Sequence[Row], before: Sequence[Row] = ()) -> str:
    """Per size and direction the mean, and the number of slow rows; the same of another run's equal rows."""
    lines = [f"{'elements':>9} {'':<9}{'rows':>5}{'mean':>8}{'slow':>6}{'  before':>9}{'slow':>6}"]
    then = {row[:3]: row for row in before}
    for elements, backward in sorted({(row.elements, row.backward) for row in rows}):
        some = [row for row in rows if row[1:3] == (elements, backward)]
        line = f"{elements:>9} {'backward' if backward else 'forward':<9}{len(some):>5}{mean(some):>7.2f}x"
        line += f"{sum(row.speed < SLOW for row in some):>6}"
        if old := [then[row[:3]] for row in some if row[:3] in then]:
            line += f"{mean(old):>8.2f}x{sum(row.speed < SLOW for row in old):>6}"
        lines.append(line)
    return "\n".join(lines)


def measured(sizes: Sequence[int], name: str = "", only: str | None = None, budget: float = 0.4) -> Iterable[Row]:
    """Time the operators whose name contains `name`, one after the other; those that differ are named and left out."""
    import torch

    torch.set_num_threads(1)
    for call in (*CALLS, *FUNCTIONS):
        if name not in call.name:
            continue
        for elements in sizes:
            for backward in (False, True):
                if (backward and not call.differentiable) or only == ("forward" if backward else "backward"):
                    continue
                print(f"\r{call.name:<34}", end="", file=sys.stderr, flush=True)
                try:
                    with warnings.catch_warnings(action="ignore"):
                        yield compare(call, elements, backward, budget)
                except (AssertionError, RuntimeError, MemoryError) as error:
                    print(f"\n{call.name} at {elements}: {error}", file=sys.stderr)
    print(file=sys.stderr)


def read(path: str) -> list[Row]:
    """The rows of a file that `--write` has made."""
    return [Row(*row) for row in json.loads(Path(path).read_text())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if a row is slower than the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ops", description="Single operators beside PyTorch.")
    parser.add_argument("-k", default="", metavar="TEXT", help="operators whose name contains it")
    parser.add_argument("--elements", default=SIZES, help="sizes, separated by commas")
    parser.add_argument("--only", choices=["forward", "backward"], help="one of the two")
    parser.add_argument("--budget", type=float, default=0.4, metavar="SECONDS", help="processor time per row")
    parser.add_argument("--limit", type=float, metavar="TIMES", help="fail if a row is not so many times as fast")
    parser.add_argument("--write", metavar="FILE", help="keep the rows")
    parser.add_argument("--before", metavar="FILE", help="rows of another run, whose means stand beside")
    options = parser.parse_args(arguments)
    if find_spec("torch") is None:
        print("PyTorch is not installed here: pip install torch")
        return 2
    rows: list[Row] = []
    for row in measured([int(float(n)) for n in options.elements.split(",")], options.k, options.only, options.budget):
        rows.append(row)
        if options.write:
            Path(options.write).write_text(json.dumps(rows))
    print(table(rows))
    print(summary(rows, read(options.before) if options.before else ()))
    return int(options.limit is not None and any(row.speed < options.limit for row in rows))


if __name__ == "__main__":
    sys.exit(main())
