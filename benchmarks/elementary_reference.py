"""Reference values, sample points and error in ulp for the elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "reference", "sample", "special_values", "ulp_error", "worst_error"]

FUNCTIONS = ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "pow", "rsqrt")
"""The functions that are not exact; `pow` is the only one of two arguments."""

_PREFILTER: dict[str, Callable[..., Any]] = {
    name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh")
}
_PREFILTER |= {
    "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))),
}


def _precision(dtype: Any) -> tuple[int, int]:
    """Return (bits of the significand, exponent of the smallest subnormal)."""
    return (53, -1074) if np.dtype(dtype).itemsize == 8 else (24, -149)


def reference(name: str, *arguments: float) -> Any:
    """Return the exact value (an mpmath number of 160 bits) at finite arguments."""
    import mpmath as mp

    with mp.workprec(160):
        x = mp.mpf(arguments[0])
        if name == "pow":
            return mp.power(x, mp.mpf(arguments[1]))
        if name == "sigmoid":
            return 1 / (1 + mp.exp(-x))
        if name == "rsqrt":
            return 1 / mp.sqrt(x)
        return getattr(mp, name)(x)


def ulp_error(value: float, exact: Any, dtype: Any) -> float:
    """Return ``|value - exact|`` in units in the last place of ``exact`` in ``dtype``.

    A result that is infinite counts as the first power of two beyond the range.
    """
    import mpmath as mp

    digits, lowest = _precision(dtype)
    with mp.workprec(160):
        if exact == 0:
            return abs(float(value)) / 2.0**lowest
        top = 1024 if digits == 53 else 128
        got = mp.mpf(float(value)) if np.isfinite(value) else mp.sign(float(value)) * mp.ldexp(1, top)
        if np.isnan(value):
            return float("inf")
        if abs(exact) > mp.ldexp(1, top):
            exact = mp.sign(exact) * mp.ldexp(1, top)
        unit = mp.ldexp(1, min(max(mp.frexp(exact)[1], lowest + digits), top) - digits)
        return float(abs(got - exact) / unit)


def sample(name: str, dtype: Any, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return points of the function's domain: some uniform where it bends, some over its whole range."""
    rng = np.random.default_rng(seed)
    wide = np.dtype(dtype).itemsize == 8
    third = count // 3

    def powers(low: float, high: float, signed: bool = True) -> np.ndarray:
        return 2.0 ** rng.uniform(low, high, third) * (rng.choice([-1.0, 1.0], third) if signed else 1.0)

    uniform = rng.uniform
    bottom, top = (-1074, 1024) if wide else (-149, 128)
    overflow, underflow = (709.78, -745.1) if wide else (88.72, -103.9)
    if name == "pow":
        x = np.concatenate([powers(bottom, top, False), powers(-2, 2, False), 1 + powers(-30, -1)])
        exponent = uniform(underflow, overflow, 3 * third) / np.log(x)
        y = np.concatenate([exponent[:third], uniform(-9, 9, third), exponent[2 * third :]])
        x, y = x.astype(dtype), y.astype(dtype)
        usable = (x > 0) & np.isfinite(x) & np.isfinite(y)
        return x[usable], y[usable]
    if name in ("exp", "expm1"):
        parts = [uniform(underflow, overflow, third), uniform(-2, 2, third), powers(-60, 9)]
    elif name in ("log", "rsqrt"):
        parts = [powers(bottom, top, False), uniform(0.4, 2.2, third), 1 + powers(-50, -1)]
    elif name == "log1p":
        parts = [powers(-80, top, False), uniform(-0.999999, 3, third), powers(-60, -1.001)]
    elif name in ("sin", "cos", "tan"):
        limit = 47 if wide else 27
        near = np.rint(powers(0, limit - 1)) * (np.pi / 2)  # where the reduced argument is smallest
        parts = [powers(-60, limit), uniform(-10, 10, third), near]
    elif name == "sigmoid":
        parts = [uniform(underflow, 40, third), uniform(-3, 3, third), powers(-60, 6)]
    else:
        bend = 22.0 if name == "tanh" else 6.2
        parts = [uniform(-bend, bend, third), uniform(-1.5, 1.5, third), powers(-60, 5)]
    x = np.concatenate(parts).astype(dtype)
    return (x[np.isfinite(x) & (x > 0)] if name in ("log", "rsqrt") else x[np.isfinite(x)],)


def special_values(dtype: Any) -> np.ndarray:
    """Return zeros, infinities, NaN, the ends of all ranges and the borders of the forms, and neighbours."""
    info = np.finfo(dtype)
    values = [
        0.0, np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max, info.eps, 1, 2, 3, 0.5, 1.5,
        7, 10, 20, 22, 40, 4097, 5.93, 3.95, 0.921875, 0.126, 709.782712893384, 709.7827128933841,
        745.1332191019412, 88.72283, 88.722839, 103.97207, 103.9721, 2.0**27, 2.0**47, 2.0**53, 2.0**54,
        2.0**60, 2.0**-13, 2.0**-28, 1e9, 1e22, 1e30, 3e38, np.pi, np.pi / 2, np.pi / 4, np.sqrt(0.5),
        np.sqrt(2.0),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        positive = np.array(values, dtype)
        below, above = np.nextafter(positive, dtype(0)), np.nextafter(positive, dtype(np.inf))
        neighbours = np.concatenate([positive, below, above])
    return np.concatenate([neighbours, -neighbours])


def worst_error(name: str, values: np.ndarray, points: tuple[np.ndarray, ...], checked: int) -> tuple[float, Any]:
    """Return the largest error found, in ulp, and the point it was found at.

    Every value is compared in extended precision where numpy has it; the ``checked`` worst of those and as
    many others are compared with mpmath, and only those count.
    """
    dtype = values.dtype
    stride = max(1, len(values) // checked)
    candidates = list(range(0, len(values), stride))
    if name in _PREFILTER and np.finfo(np.longdouble).nmant > 60:
        exact = _PREFILTER[name](*(p.astype(np.longdouble) for p in points))
        digits, lowest = _precision(dtype)
        unit = np.ldexp(np.longdouble(1), np.maximum(np.frexp(exact)[1] - digits, lowest))
        error = np.abs(values - exact) / unit
        candidates += [int(i) for i in np.argsort(np.where(np.isfinite(error), error, 0))[-checked:]]
    errors = [(ulp_error(values[i], reference(name, *(float(p[i]) for p in points)), dtype), i) for i in candidates]
    worst, index = max(errors)
    return worst, tuple(p[index] for p in points)
