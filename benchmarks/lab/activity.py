"""The load by other processes during a measurement: the system's counters less our own time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Activity:
    """The processor time between two moments.

    Attributes
    ----------
    others : cores that other processes kept busy, in the mean; None where the system does not tell.
    stolen : share of time that the host of a virtual machine took away.
    seconds : how long it was looked at.
    """

    others: float | None
    stolen: float
    seconds: float


class Watch:
    """Counters at one moment; `since` compares them with now.

    Examples
    --------
    >>> Watch().since().seconds >= 0
    True
    """

    def __init__(self) -> None:
        self._at, self._own, self._counts = time.perf_counter(), _own(), _counts()

    def since(self) -> Activity:
        """Return what happened since this was made."""
        seconds = time.perf_counter() - self._at
        counts = _counts()
        if not counts or not self._counts or seconds <= 0:
            return Activity(None, 0.0, seconds)
        delta = [b - a for a, b in zip(self._counts, counts, strict=True)]
        whole = sum(delta) or 1
        cores = os.cpu_count() or 1
        stolen = delta[7] / whole
        idle = (delta[3] + delta[4]) / whole
        busy = (1 - idle - stolen) * cores
        return Activity(max(0.0, busy - (_own() - self._own) / seconds), stolen, seconds)


def look(seconds: float = 0.5) -> Activity:
    """Return what others do while this process sleeps for some seconds."""
    watch = Watch()
    time.sleep(seconds)
    return watch.since()


def governor() -> str | None:
    """Return how the clock of the cores is governed, such as "performance"; None where nobody tells."""
    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return path.read_text().strip() if path.is_file() else None


def _own() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _counts() -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal of all cores together, in ticks."""
    if not STAT.is_file():
        return []
    row = STAT.read_text().partition("\n")[0].split()
    return [int(x) for x in row[1:9]] if len(row) >= 9 else []
