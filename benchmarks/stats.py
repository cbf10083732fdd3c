"""Medians, ratios and break-even points with 95 % intervals, by the bootstrap.

The percentile bootstrap: measurements are resampled with replacement, the statistic is computed on each
resample, and the 2.5 % and 97.5 % quantiles are reported (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13). Two programs measured in the same rounds enter as one sample, the ratio or the
difference of each round: what disturbs both programs of a round cancels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A value with the 95 % interval around it; all three may be infinite."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float | None]:
        """Return plain data; JSON has no infinity, it becomes None."""
        items = {"value": self.value, "low": self.low, "high": self.high}
        return {name: float(v) if np.isfinite(v) else None for name, v in items.items()}


def bootstrap(statistic: Callable[..., Any], *samples: Samples, seed: int = 0) -> Estimate:
    """Return `statistic` of the samples and its 95 % interval.

    Parameters
    ----------
    statistic : callable
        Receives one array (resamples, n) per sample and returns (resamples,); it reduces the last axis.
    *samples : (n,) arrays
        Measurements, independent of each other; lengths may differ.
    seed : int
        Of the resampling, so that one set of measurements always gives one interval.
    """
    rng = np.random.default_rng(seed)
    drawn = [s[rng.integers(0, len(s), (RESAMPLES, len(s)))] for s in samples]
    spread = statistic(*drawn)
    value = float(statistic(*(s[None, :] for s in samples))[0])
    # inverted_cdf picks a value that occurred: interpolating towards an infinity would give nan
    low, high = np.quantile(spread, [0.025, 0.975], method="inverted_cdf")
    return Estimate(value, float(low), float(high))


def median(samples: Samples) -> Estimate:
    """Return the median of (n,) measurements."""
    return bootstrap(lambda s: np.median(s, axis=-1), samples)


def ratio(ours: Samples, theirs: Samples) -> Estimate:
    """Return the median of the ratios ours/theirs of interleaved rounds, each (n,)."""
    return bootstrap(lambda q: np.median(q, axis=-1), ours / theirs)


def difference(one: Samples, other: Samples) -> Estimate:
    """Return the difference of the medians of interleaved rounds, each (n,), resampled together.

    Differences of several programs that were measured in the same rounds add up.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(one), (RESAMPLES, len(one)))
    spread = np.median(one[drawn], axis=-1) - np.median(other[drawn], axis=-1)
    low, high = np.quantile(spread, [0.025, 0.975])
    return Estimate(float(np.median(one) - np.median(other)), float(low), float(high))


def break_even(eager: Samples, compiled: Samples, eager_once: Samples, compiled_once: Samples) -> Estimate:
    """Return after how many calls the compiled program has cost less than the eager one.

    Both pay a one-off cost, then a cost per call: ``once_c + n*call_c <= once_e + n*call_e``. The answer is
    0 if compiling costs nothing extra, and infinite ("never") if a compiled call isn't faster.

    Parameters
    ----------
    eager, compiled : (rounds,) arrays
        Seconds per call, measured in the same rounds.
    eager_once, compiled_once : (n,) arrays
        One-off seconds, each measured in a process of its own.
    """

    def calls(saved: Any, once_e: Any, once_c: Any) -> Any:
        saved = np.median(saved, axis=-1)
        extra = np.median(once_c, axis=-1) - np.median(once_e, axis=-1)
        later = np.ceil(np.divide(extra, saved, out=np.full_like(extra, np.inf), where=saved > 0))
        return np.where((extra <= 0) & (saved >= 0), 0.0, later)

    return bootstrap(calls, eager - compiled, eager_once, compiled_once)
