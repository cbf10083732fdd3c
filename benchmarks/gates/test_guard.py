"""Gate: the cost of checking Python's decisions in a call, and of another path than the last one."""

from typing import Any

import numpy as np

import static
from benchmarks.gates.frame import compare


def decided(x: Any) -> Any:
    """Two decisions, of which the first has two outcomes."""
    y = x * 2
    if y.sum().item() > 0:
        y = y.tanh() * x
    if y.sum() > 100:
        y = y - 1
    return y


def straight(x: Any) -> Any:
    """The path of positive sums, and the conditions of its decisions."""
    y = x * 2
    first = y.sum() > 0
    y = y.tanh() * x
    return y, first, y.sum() > 100


def test_a_guarded_path(benchmark: Any) -> None:
    """At most 5 us above the same computation without decisions."""
    x = np.array([1.0, 2.0, 3.0], np.float32)
    guarded = static.function(decided, control_flow="guard")
    plain = static.function(straight)
    assert guarded(x).numpy().tobytes() == plain(x)[0].numpy().tobytes()
    alternating = static.function(decided, control_flow="guard")
    calls = {"guarded": (guarded, [(x,)]), "plain": (plain, [(x,)]), "alternating": (alternating, [(x,), (-x,)])}
    samples = compare(benchmark, calls)
    benchmark.extra_info["other_path_seconds"] = float(np.median(samples["alternating"]))
    assert np.median(samples["guarded"] - samples["plain"]) <= 5e-6
