"""Timing of statements: medians of repeated runs."""

from __future__ import annotations

import statistics
import textwrap
import timeit
from collections.abc import Callable, Mapping
from typing import Any

from common.runtime.thread_pool import get_num_threads, set_num_threads

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


class Measurement:
    """Times of one statement.

    Attributes
    ----------
    number_per_run : how often it ran per measurement.
    raw_times : seconds per measurement.
    """

    def __init__(
        self, number_per_run: int, raw_times: list[float], label: str | None, sub_label: str | None,
        description: str | None, num_threads: int, stmt: str,
    ) -> None:  # fmt: skip
        self.number_per_run, self.raw_times, self.num_threads, self.stmt = number_per_run, raw_times, num_threads, stmt
        self.label, self.sub_label, self.description = label, sub_label, description

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The difference of the third and the first quartile of `times`."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """The statement that was timed."""
        return ": ".join(x for x in (self.label or self.stmt, self.sub_label) if x)

    def __repr__(self) -> str:
        unit, scale = next((u for u in _UNITS if self.median >= u[1]), _UNITS[-1])
        kind = "Median" if len(self.times) > 1 else "Mean"
        return (
            f"<{type(self).__name__}>\n{self.title}\n  {kind}: {self.median / scale:.2f} {unit}\n"
            f"  {len(self.times)} measurements, {self.number_per_run} runs per measurement, "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )


class Timer:
    """Times a statement, on one thread unless more are asked for.

    Parameters
    ----------
    stmt, setup : Python text; setup runs once per measurement.
    global_setup : accepted; it is for statements in C++.
    timer : a clock in seconds.
    globals : the names that they see.
    label, sub_label, description, env : how the measurement is called.
    num_threads : of the library, while it runs.

    Examples
    --------
    >>> import dynamic as tw
    >>> from dynamic.utils import benchmark
    >>> timed = benchmark.Timer("x + x", globals={"x": tw.ones(3)}).timeit(10)
    >>> timed.number_per_run, timed.median > 0
    (10, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: Mapping[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "py",
    ) -> None:
        stmt, setup = textwrap.dedent(stmt), textwrap.dedent(setup)
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._about = (label, sub_label, description, num_threads, stmt)

    def _run(self, number: int) -> float:
        before = get_num_threads()
        set_num_threads(self._about[3])
        try:
            return self._timer.timeit(number)
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs, after a short warm-up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], *self._about)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements for at least `min_run_time` seconds in all, each of a number of runs that suits the clock."""
        number = 1
        while self._run(number) < min_run_time / 1000 and number < 10**9:
            number *= 10
        times: list[float] = []
        while sum(times) < min_run_time or len(times) < 2:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, *self._about)

    def repeat(self, repeat: int = -1, number: int = -1) -> Any:
        """Seconds of `repeat` measurements of `number` runs, as Python's `timeit.repeat`."""
        return [self._run(max(number, 1)) for _ in range(max(repeat, 1))]

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """Measurements until the quartiles are within `threshold` of the median, for at most `max_run_time` seconds."""
        found = self.blocked_autorange(callback, min_run_time)
        while found.iqr > threshold * found.median and sum(found.raw_times) < max_run_time:
            found.raw_times.append(self._run(found.number_per_run))
        return found


class Compare:
    """A table of measurements: a row per sub-label and number of threads, a column per description.

    Parameters
    ----------
    results : measurements.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements."""
        self._results += results

    def trim_significant_figures(self) -> None:
        """Accepted: three figures are shown."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted: the table has no colours."""

    def __str__(self) -> str:
        columns = list(dict.fromkeys(str(m.description) for m in self._results))
        rows: dict[str, dict[str, str]] = {}
        for m in self._results:
            row = f"{m.sub_label or m.stmt} ({m.num_threads} threads)"
            rows.setdefault(row, {})[str(m.description)] = f"{m.median * 1e6:.3g}"
        wide = max((len(row) for row in rows), default=0)
        title = next((m.label for m in self._results if m.label), "")
        lines = [title, " " * wide + "".join(f" | {c:>12}" for c in columns)]
        lines += [
            f"{row:<{wide}}" + "".join(f" | {cells.get(c, ''):>12}" for c in columns) for row, cells in rows.items()
        ]
        return "\n".join([*lines, "Times are in microseconds (us)."])

    def print(self) -> None:
        """Print the table."""
        print(self)


__all__ = ["Compare", "Measurement", "Timer"]
