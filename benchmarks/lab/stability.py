"""Is a measurement worth reading? Load, drift and wide intervals speak against it, each with its remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import stats
from benchmarks.lab.activity import Activity
from benchmarks.stats import Samples

BUSY = 0.25
"""Cores that others may keep busy."""
STOLEN = 0.02
DRIFT = 0.05
"""By how much a ratio may differ between the last third of the rounds and the first.

A clock that gets slower makes all programs of a round slower: times drift, ratios of the same round do not.
"""
MOVED = 0.25
"""By how much times may drift, ratios apart: beyond, the machine is another than at the start."""
WIDTH = 0.10
"""How wide the interval of a ratio may be, relative to it."""


def objections(calls: Mapping[str, Samples], activity: Activity | None) -> list[str]:
    """Return why figures are unreliable, with what to do; none if they are stable.

    Parameters
    ----------
    calls : mapping of name to (rounds,) arrays
        Seconds per call, of the same rounds; "static" among them.
    activity : Activity, optional
        What others did meanwhile.
    """
    found = []
    if activity is not None:
        if (activity.others or 0) > BUSY:
            found.append(
                f"other processes kept {activity.others:.1f} cores busy: end them (`twingrad doctor`), measure later, "
                "or use --clock processor"
            )
        if activity.stolen > STOLEN:
            found.append(f"the host took {100 * activity.stolen:.0f} % of the time away: use a machine of your own")
    clock = "fix the clock (`sudo cpupower frequency-set -g performance`), or measure longer (--seconds 30)"
    between = "between the first and the last third of the rounds"
    for name, samples in calls.items():
        if name != "static" and (moved := drift(calls["static"] / samples)) > DRIFT:
            found.append(f"the ratio of static to {name} drifted by {100 * moved:.0f} % {between}: {clock}")
    if (moved := max(map(drift, calls.values()), default=0.0)) > MOVED:
        found.append(f"times drifted by {100 * moved:.0f} % {between}: {clock}")
    if "dynamic" in calls and (wide := width(calls["dynamic"], calls["static"])) > WIDTH:
        found.append(f"the interval of the ratio is {100 * wide:.0f} % wide: measure longer (--seconds 30)")
    return found


def enough(calls: Mapping[str, Samples], tight: float) -> bool:
    """Whether more rounds would tell little: the ratio of static to each other program is known to `tight`.

    Parameters
    ----------
    calls : mapping of name to (rounds,) arrays
    tight : float
        Width of an interval, relative to the ratio; 0 is never reached.
    """
    own, others = calls["static"], [samples for name, samples in calls.items() if name != "static"]
    return all(drift(own / other) <= DRIFT and width(own, other) <= tight for other in others)


def drift(samples: Samples) -> float:
    """Return by how much the median of the last third differs from that of the first, relative to it."""
    third = len(samples) // 3
    if third < 2:
        return 0.0
    first, last = float(np.median(samples[:third])), float(np.median(samples[-third:]))
    return abs(last / first - 1)


def width(one: Samples, other: Samples) -> float:
    """Return the width of the interval of a ratio, relative to the ratio."""
    ratio = stats.ratio(one, other)
    return (ratio.high - ratio.low) / ratio.value


def first_line(reasons: list[str]) -> str:
    """Return what stands above an unstable run: the first reason with its remedy."""
    return f"UNSTABLE: {reasons[0]}" if reasons else ""


def told(unstable: Mapping[str, Sequence[str]]) -> tuple[dict[str, str], list[str]]:
    """Return what is wrong with each unstable workload, from its reasons, and what to do, each remedy once."""
    wrong: dict[str, str] = {}
    remedies: dict[str, None] = {}
    for name, reasons in unstable.items():
        parts = [reason.partition(": ") for reason in reasons]
        if parts:
            wrong[name] = "; ".join(what for what, _, _ in parts)
            remedies.update((remedy, None) for _, _, remedy in parts)
    return wrong, list(remedies)


def of_record(workload: Mapping[str, Any]) -> list[str]:
    """Return what a stored workload said of its stability."""
    return list(workload.get("unstable", ()))
