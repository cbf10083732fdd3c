"""One sentence that answers the question, in one direction: how many times as fast is static."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def verdict(workload: Mapping[str, Any]) -> str:
    """Return the sentence for a workload of a record.

    Examples
    --------
    >>> ratio = {"value": 0.25, "low": 0.2, "high": 0.3}
    >>> verdict({"name": "f", "bits_equal": True, "static_over": {"dynamic": ratio},
    ...          "break_even": {"disk": {"value": 38.0, "low": 30.0, "high": 40.0}}})
    'f: static is 4.0x as fast as dynamic, pays off after 38 calls, same bits.'
    """
    name = workload["name"]
    if workload.get("error"):
        return f"{name}: failed: {workload['error'].splitlines()[-1]}"
    if not workload["bits_equal"]:
        return f"{name}: BITS DIFFER, so nothing was timed: {workload['differences'][0]}"
    ratio = workload["static_over"]["dynamic"]
    if ratio["low"] <= 1 <= ratio["high"]:  # no difference to be seen, so nothing that would pay
        width = 100 * (ratio["high"] - ratio["low"]) / 2
        return f"{name}: static and dynamic are as fast as each other, to {width:.0f} %, same bits."
    return f"{name}: static is {times(1 / ratio['value'])} as fast as dynamic{pays(workload)}, same bits."


def times(factor: float) -> str:
    """Return how many times as fast.

    Examples
    --------
    >>> times(312.4), times(3.14), times(0.84)
    ('312x', '3.1x', '0.84x')
    """
    return f"{factor:.0f}x" if factor >= 9.95 else f"{factor:.1f}x" if factor >= 1.095 else f"{factor:.2f}x"


def interval(ratio: Mapping[str, Any]) -> str:
    """Return ``[low, high]`` of how many times as fast, from a ratio of times."""
    return f"[{times(1 / ratio['high'])}, {times(1 / ratio['low'])}]"


def pays(workload: Mapping[str, Any]) -> str:
    """Return after how many calls compiling has paid off, from the disk cache; empty if that was not measured."""
    found = workload.get("break_even", {}).get("disk")
    if found is None:
        return ""
    if found["value"] is None:
        return ", never pays off"
    if found["value"] == 0:
        return ", pays off at once"
    calls = int(found["value"])
    return f", pays off after {calls:,} {'call' if calls == 1 else 'calls'}"
