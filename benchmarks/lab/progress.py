"""Progress of a run on stderr: the present step, the finished share, and about how long the rest takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.lab import console


class Progress:
    """A line that is written over on a terminal, a bar where rich is installed; lines where stderr is piped.

    Parameters
    ----------
    total : int
        How many programs are to be measured.
    clock : callable
        Seconds since some moment.

    Examples
    --------
    >>> moments = iter([0.0, 30.0])
    >>> progress = Progress(3, lambda: next(moments))
    >>> progress.finished()
    >>> progress.state()
    '1 of 3, about 1 min left'
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.done = total, 0
        self._clock, self._start, self._last = clock, clock(), 0.0
        self._bar: Any = None

    def __enter__(self) -> Progress:
        """Show a bar if somebody looks."""
        if console.coloured(sys.stderr):
            from rich import progress
            from rich.console import Console

            columns = (progress.BarColumn(20), progress.TextColumn("{task.description}"))
            self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("", total=self.total)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.stop()
        elif sys.stderr.isatty():
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        """Say what is being done."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done, description=f"{self.state()}: {text}")
        elif sys.stderr.isatty():
            line = f"{self.state()}: {text}"
            print(f"\r\x1b[2K{line[: console.width() - 1]}", end="", file=sys.stderr, flush=True)
        else:
            print(f"[{self.state()}] {text}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print("\r\x1b[2K" * sys.stderr.isatty() + text, file=sys.stderr, flush=True)

    def finished(self) -> None:
        """Count one more."""
        self.done += 1
        self._last = self._clock() - self._start

    def state(self) -> str:
        """Return how much is done and left; the rest is taken to need as long as what is finished did, each."""
        counted = f"{self.done} of {self.total}"
        if not self.done:
            return counted
        return f"{counted}, about {duration(self._last / self.done * (self.total - self.done))} left"


def duration(seconds: float) -> str:
    """Return a time to wait as people say it.

    Examples
    --------
    >>> duration(8.2), duration(59.7), duration(700.0)
    ('9 s', '1 min', '12 min')
    """
    return f"{int(seconds) + 1} s" if seconds < 55 else f"{max(1, round(seconds / 60))} min"
