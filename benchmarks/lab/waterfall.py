"""From the eager call down to the machine's limits by measured differences; the remainder comes last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import stats
from benchmarks.lab.rungs import FUSED, NO_GRAD, PLANNED, RECORDING, SINGLE
from benchmarks.stats import Samples

KERNELS, EMPTY, ALLOCATION = "kernels in a row", "nothing", "allocation"
"""Calls timed beside the rungs: all kernels without the call, a program without kernels, numpy's allocations."""


def waterfall(
    samples: Mapping[str, Samples],
    each: Sequence[Samples],
    parts: list[dict[str, Any]],
    machine: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return the segments, from top to bottom: name, seconds with interval, and share of the eager call.

    Parameters
    ----------
    samples : mapping of rung to (rounds,) arrays
        Measured in the same rounds, so that differences are of the same round.
    each : sequence of (n,) arrays
        Seconds of each kernel alone.
    parts : list of dict
        The kernels, which are told their seconds and limits here.
    machine : mapping
        Bytes and operations per second.
    """
    found: list[dict[str, Any]] = []
    eager = stats.median(samples[RECORDING]).value

    def add(name: str, estimate: stats.Estimate, kind: str) -> None:
        found.append({"name": name, "kind": kind, **estimate.as_json(), "share": estimate.value / eager})

    untaped = NO_GRAD if NO_GRAD in samples else RECORDING
    if untaped is NO_GRAD:
        add("recording the tape", stats.difference(samples[RECORDING], samples[NO_GRAD]), "way")
    dispatch = "Python, and dispatch of each op" if untaped is NO_GRAD else "Python, dispatch and recording"
    if ALLOCATION in samples:
        add("allocating results", stats.median(samples[ALLOCATION]), "way")
        add(dispatch, stats.difference(samples[untaped] - samples[ALLOCATION], samples[SINGLE]), "way")
    else:
        add(dispatch, stats.difference(samples[untaped], samples[SINGLE]), "way")
    add("loops and traffic that fusion saves", stats.difference(samples[SINGLE], samples[FUSED]), "way")
    add("memory that planning shares", stats.difference(samples[FUSED], samples[PLANNED]), "way")
    if KERNELS in samples:
        add("the compiled call itself", stats.difference(samples[PLANNED], samples[KERNELS] - samples[EMPTY]), "call")
    if each and len(each) == len(parts):
        traffic, arithmetic = [], []
        for part, alone in zip(parts, each, strict=True):
            limit = (part["reads"] + part["writes"]) / machine["bandwidth"]
            part["seconds"] = stats.median(alone).as_json()
            part["memory_limit"] = limit
            part["compute_limit"] = (
                part["flops"] / machine["peak_float32"] if part["name"].startswith(("gemm", "conv")) else None
            )
            traffic.append(np.minimum(np.median(alone), limit))
            arithmetic.append(max(0.0, float(np.median(alone)) - limit))
        total = _sum(each)
        share = float(np.sum(traffic)) / max(float(np.sum(traffic) + np.sum(arithmetic)), 1e-12)
        add("kernels: memory traffic", _scaled(total, share), "limit")
        add("kernels: arithmetic", _scaled(total, 1 - share), "limit")
    elif KERNELS in samples:
        add("kernels, loops and branches", stats.median(samples[KERNELS] - samples[EMPTY]), "limit")
    else:
        add("the compiled call", stats.median(samples[PLANNED]), "call")
    rest = eager - sum(segment["value"] for segment in found)
    found.append(
        {"name": "remainder", "kind": "remainder", "value": rest, "low": None, "high": None, "share": rest / eager}
    )
    return found


def _sum(each: Sequence[Samples]) -> stats.Estimate:
    """The sum of medians with its interval; kernels are resampled apart from each other."""
    estimates = [stats.median(alone) for alone in each]
    middle = sum(e.value for e in estimates)
    low = np.sqrt(sum((e.value - e.low) ** 2 for e in estimates))
    high = np.sqrt(sum((e.high - e.value) ** 2 for e in estimates))
    return stats.Estimate(middle, middle - float(low), middle + float(high))


def _scaled(estimate: stats.Estimate, factor: float) -> stats.Estimate:
    return stats.Estimate(estimate.value * factor, estimate.low * factor, estimate.high * factor)
