"""Single operators of `dynamic` beside PyTorch eager: ``python -m benchmarks.ops``, where PyTorch is installed.

Both run the same call on the same numbers with one thread, in turn, and the processor time of the fastest of several
batches counts. Results are compared before anything is timed. Rows are sorted by ratio; below 1 `dynamic` is faster.

    python -m benchmarks.ops                            # 1e3 and 1e6 elements, forward and with backward
    python -m benchmarks.ops -k softmax --elements 1e7  # operators whose name contains it
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ops_calls import CALLS, Call

Step = Callable[[], Any]


class Row(NamedTuple):
    """One operator at one size.

    Attributes
    ----------
    ours, theirs : seconds of one call, in `dynamic` and in PyTorch.
    """

    name: str
    elements: int
    backward: bool
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Our time by theirs."""
        return self.ours / self.theirs


def step(tw: ModuleType, call: Call, arrays: Sequence[np.ndarray], backward: bool) -> Step:
    """A call on tensors that are made once; with `backward`, gradients of all floating-point operands too."""
    make: Any = tw.from_numpy
    tensors = [make(x.copy()) for x in arrays]
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
    """The processor time of one call of each, the best of batches that alternate, within about `budget` seconds."""
    pair = ours, theirs
    for run in pair:
        for _ in range(3):
            run()
    once = [max(_batch(run, 1) for _ in range(2)) for run in pair]
    counts = [max(1, int(0.004 / max(t, 1e-7))) for t in once]
    rounds = int(max(4, min(40, budget / sum(t * n for t, n in zip(once, counts, strict=True)))))
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
    if not call.random:
        mine, its = (_first(run()).detach().numpy() for run in steps)  # where values are equal, indices may differ
        scale = float(np.abs(its[np.isfinite(its)]).max(initial=1))
        np.testing.assert_allclose(mine, its, rtol=2e-3, atol=2e-4 * scale, err_msg=call.name)
    gc.collect()
    return Row(call.name, elements, backward, *seconds(steps[0], steps[1], budget))


def table(rows: Iterable[Row]) -> str:
    """The rows as text, the slowest first, and their geometric mean."""
    ordered = sorted(rows, key=lambda row: -row.ratio)
    lines = [f"{'op':<34}{'elements':>9} {'':<9}{'dynamic us':>12}{'torch us':>12}{'ratio':>7}"]
    for r in ordered:
        kind = "backward" if r.backward else "forward"
        lines.append(
            f"{r.name:<34}{r.elements:>9} {kind:<9}{r.ours * 1e6:>12.1f}{r.theirs * 1e6:>12.1f}{r.ratio:>7.2f}"
        )
    mean = float(np.exp(np.mean([np.log(r.ratio) for r in ordered]))) if ordered else 1.0
    slow = sum(r.ratio > 1.2 for r in ordered)
    return "\n".join([*lines, f"{len(ordered)} rows, {slow} over 1.2, geometric mean {mean:.2f}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if a row is over the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ops", description="Single operators beside PyTorch.")
    parser.add_argument("-k", default="", metavar="TEXT", help="operators whose name contains it")
    parser.add_argument("--elements", default="1e3,1e6", help="sizes, separated by commas")
    parser.add_argument("--only", choices=["forward", "backward"], help="one of the two")
    parser.add_argument("--budget", type=float, default=0.4, metavar="SECONDS", help="processor time per row")
    parser.add_argument("--limit", type=float, metavar="RATIO", help="fail if a row is over it")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed here: pip install torch")
        return 2
    torch.set_num_threads(1)
    rows = []
    for call in CALLS:
        if options.k not in call.name:
            continue
        for elements in (int(float(n)) for n in options.elements.split(",")):
            for backward in (False, True):
                if (backward and not call.differentiable) or options.only == ("forward" if backward else "backward"):
                    continue
                rows.append(compare(call, elements, backward, options.budget))
                print(f"\r{call.name:<34}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(table(rows))
    return int(options.limit is not None and any(row.ratio > options.limit for row in rows))


if __name__ == "__main__":
    sys.exit(main())
