"""``python -m benchmarks.features``: nanoseconds of each part of an eager operation's bookkeeping.

A part is measured by leaving it out: the same code without its words, or with the switch that skips it. Ops have 8
float32 elements; the fastest of interleaved rounds, because a machine that others use only ever adds time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks import measure
from common.core.dispatch import NO_ATTRS
from common.core.op import REGISTRY
from common.evaluate import specialise
from common.evaluate.specialise import recipe
from common.runtime.builtins import make_apply, make_finder
from common.runtime.call_text import builtin_source

Call = Callable[[], Any]
CHAIN = 50


class FeatureTime(NamedTuple):
    """A part of the bookkeeping, what is measured, and its time with and without that part, in seconds."""

    feature: str
    what: str
    on: float
    off: float


class Multiplier:
    """``x * x`` by the engine's builtin for 8 elements, or by one without a part.

    Parameters
    ----------
    part : words of its native source.
    instead : what stands in their place.
    """

    def __init__(self, part: str = "", instead: str = "") -> None:
        source = builtin_source("apply")
        assert part in source
        mul, x = REGISTRY["mul"], np.ones(8, np.float32)
        _, store, cells = make_finder()
        store(recipe(mul, ((x.shape, x.dtype),) * 2, NO_ATTRS), mul, NO_ATTRS, x, x)
        applied, _ = make_apply(cells, specialise.tape(), source.replace(part, instead) if part else source)
        self.operator: Callable[[Any, Any], Any] = lambda a, b: applied(mul, NO_ATTRS, a, b)


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """A module whose global is another value for a while."""
    old = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, old)


def often(function: Callable[..., Any], *operands: Any, count: int = 100) -> Call:
    """Many calls from one frame, as in a user's loop."""

    def run() -> None:
        for _ in range(count):
            function(*operands)

    return run


def inside(call: Call, module: Any, name: str, value: Any) -> Call:
    """A call that finds another value in a module's global."""

    def run() -> None:
        with replaced(module, name, value):
            call()

    return run


def fastest(calls: dict[str, Call], seconds: float, count: int = 100) -> dict[str, float]:
    """Seconds per operation of calls that make `count` of them, in processor time: the fastest of many turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():  # what is compiled, or done at the first and the second time
        call()
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.thread_time()
            call()
            times[name].append(time.thread_time() - start)
    return {name: min(found) / count for name, found in times.items()}


#: Parts of a recorded operation, and what the builtin does in their place.
PARTS = {
    "line of the user": (" and note_place(table, new)", ""),
    "number of the node": ("PyIter_Next(table[COUNTER])", "PyLong_FromLongLong(1)"),
    "grad mode": ("recording = is_recording(table)", "recording = 1"),
    "traces, profiles, observers": (" or table[TRACING][ENTRIES]", ""),
}


def operator_rows(seconds: float) -> list[FeatureTime]:
    """The parts of a recorded multiplication."""
    import dynamic as tw

    x = tw.tensor(np.linspace(0.5, 1.5, 8, dtype=np.float32), requires_grad=True)
    plain = x.detach()
    whole = Multiplier().operator
    calls = {name: often(Multiplier(*words).operator, x, x) for name, words in PARTS.items()}
    times = fastest({"all": often(whole, x, x), **calls, "unrecorded": often(whole, plain, plain)}, seconds)
    what = "x * x, recorded"
    rows = [FeatureTime("node on the tape", what, times["all"], times["unrecorded"])]
    return rows + [FeatureTime(name, what, times["all"], times[name]) for name in PARTS]


def promotion_row(seconds: float) -> FeatureTime:
    """Whether shapes and dtypes are equal: the builtin that finds out, against one that takes shapes for granted."""
    from common.evaluate import kernels as eager_kernels

    f4 = np.dtype(np.float32)
    x = np.ones(8, f4)
    kernel = eager_kernels.address(eager_kernels.elementwise_source("mul", (f4, f4), f4, "ff"), "loop_mul")
    taken = eager_kernels.fixed(kernel, (f4, f4), (8,), f4, (8, 1))
    assert taken is not None
    checked = eager_kernels.same_shape("mul", (f4, f4), f4)
    times = fastest({"on": often(checked, x, x), "off": often(taken, x, x)}, seconds)
    return FeatureTime("promotion, broadcasting", "x * x on arrays", times["on"], times["off"])


def write_row(seconds: float) -> FeatureTime:
    """The log of writes into memory, by which overwritten saved values are found."""
    import dynamic as tw
    from dynamic.eager import writing_kernels

    x, one = tw.tensor(np.ones(8, np.float32)), tw.tensor(np.ones(8, np.float32))
    multiply: Any = x.mul_
    with tw.no_grad():
        often(multiply, one)()  # which makes `write`
        write = writing_kernels.write
        calls = {
            "on": inside(often(multiply, one), writing_kernels, "write", write),
            "off": inside(often(multiply, one), writing_kernels, "write", lambda x, *frame: frame or write(x)),
        }
        times = fastest(calls, seconds)
    return FeatureTime("log of writes (versions)", "x.mul_(y)", times["on"], times["off"])


def view_row(seconds: float) -> FeatureTime:
    """The family of a tensor and its views, by which a write reaches the history of all."""
    import dynamic as tw
    from common.evaluate import specialise
    from dynamic.eager import views

    x = tw.tensor(np.ones((2, 4), np.float32), requires_grad=True) * 1
    transpose: Any = x.t
    calls = {
        "on": inside(often(transpose), views, "_shown", views._shown),
        "off": inside(often(transpose), views, "_shown", lambda a, y, found: specialise.shown(found, y, a)),
    }
    times = fastest(calls, seconds)
    return FeatureTime("family of views", "x.t(), recorded", times["on"], times["off"])


def backward_rows(seconds: float) -> list[FeatureTime]:
    """Per node of a backward pass: hooks that could be there, and writes that could have been made."""
    import dynamic as tw
    from common.tensor import hook_handles, write_log

    x = tw.tensor(np.linspace(0.5, 1.5, 8, dtype=np.float32), requires_grad=True)
    y = x
    for _ in range(CHAIN):
        y = y * x
    g = tw.tensor(np.ones(8, np.float32))

    def backward() -> None:
        x.grad = None
        y.backward(g, retain_graph=True)

    calls = {
        "all": often(backward, count=10),
        "hooks": inside(often(backward, count=10), hook_handles, "hooks_seen", True),
        "written": inside(often(backward, count=10), write_log, "last_write", 1 << 62),
    }
    times = fastest(calls, seconds, 10 * CHAIN)
    what = "backward of x * x, per node"
    return [
        FeatureTime("hooks, none ever made", what, times["all"], times["all"]),
        FeatureTime("hooks, made elsewhere", what, times["hooks"], times["all"]),
        FeatureTime("writes since, elsewhere", what, times["written"], times["all"]),
    ]


def rows(seconds: float) -> list[FeatureTime]:
    """All rows; `seconds` is the time for each group of calls that are compared."""
    groups = [operator_rows(seconds), [promotion_row(seconds)], [write_row(seconds)], [view_row(seconds)]]
    return [row for group in [*groups, backward_rows(seconds)] for row in group]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each group of calls")
    options = parser.parse_args()
    measure.single_core()
    print(f"{'part':28s} {'measured in':28s} {'with':>7s} {'without':>8s} {'cost':>6s}  (ns)")
    for row in rows(options.seconds):
        on, off = row.on * 1e9, row.off * 1e9
        print(f"{row.feature:28s} {row.what:28s} {on:7.0f} {off:8.0f} {on - off:6.0f}")


if __name__ == "__main__":
    main()
