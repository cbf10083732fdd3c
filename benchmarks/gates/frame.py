"""The frame of every gate: a measured bound, shown in pytest-benchmark's table and asserted."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import stats
from benchmarks.measure import interleave
from benchmarks.stats import Samples

Measured = dict[str, Samples]
SECONDS = 3.0


def compare(benchmark: Any, calls: Mapping[str, tuple[Any, Sequence[tuple[Any, ...]]]]) -> Measured:
    """Measure programs in interleaved rounds, by elapsed time; the first is ours and goes into the table."""
    samples = interleave(calls, SECONDS)
    record(benchmark, *next(iter(calls.values())))
    benchmark.extra_info["seconds"] = {name: stats.median(found).value for name, found in samples.items()}
    return samples


def record(benchmark: Any, call: Any, inputs: Sequence[tuple[Any, ...]]) -> None:
    """Let pytest-benchmark time passes over the input sets.

    Warmed up by us: its own calibration would run through a compilation.
    """

    def passes() -> None:
        for arguments in inputs:
            call(*arguments)

    benchmark.pedantic(passes, rounds=10, iterations=3, warmup_rounds=3)


def assert_ratio(samples: Measured, ours: str, theirs: str, bound: float, upper: bool = False) -> None:
    """Assert that ours/theirs is at most `bound`: the median, or the upper end of its 95 % interval."""
    found = stats.ratio(samples[ours], samples[theirs])
    value = found.high if upper else found.value
    assert value <= bound, (
        f"{ours}/{theirs} = {found.value:.3f} [{found.low:.3f}, {found.high:.3f}], at most {bound} allowed; "
        f"{ours} {stats.median(samples[ours]).value * 1e6:.1f} us"
    )
