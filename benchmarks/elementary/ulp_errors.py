"""Reference values, sample points and error in ulp for the elementary functions.

The functions are those of `REFERENCES` that exist. Every `costly` op of the registry that is made of a function of
`common.kernels.math.elementary` needs an entry there, but for those in `NOT_MEASURED`; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import common.ops.functional
from benchmarks.elementary.mpmath_definitions import REFERENCES, Reference
from common.core.op import REGISTRY
from common.kernels.math import elementary

__all__ = [
    "FUNCTIONS", "NOT_MEASURED", "definition", "operands", "reference", "sample", "special_values", "ulp_error",
    "worst_error",
]  # fmt: skip

assert common.ops.functional  # defines the ops

NOT_MEASURED = frozenset(
    ("div", "reciprocal", "sqrt", "gelu_erf", "gelu_tanh", "silu", "mish", "logsigmoid", "elu_scaled", "celu_scaled",
     "softplus_scaled", "logaddexp2", "round_decimals", "round_tens", "fmod", "remainder", "floor_divide",
     "trunc_divide", "addcdiv")
)  # fmt: skip
"""Costly ops without a row: correctly rounded by IEEE 754, sums of measured functions that may cancel, and activations
and variants that are measured in `tests.oracle.test_logarithms`."""

FUNCTIONS = tuple(
    name
    for name in REFERENCES
    if name.partition("(")[0] in REGISTRY or hasattr(elementary, name)
)  # fmt: skip
"""Names of the functions that are not exact."""


def definition(name: str) -> Callable[..., Any]:
    """Return the scalar definition of a function."""
    op = REGISTRY.get(name)
    scalar: Callable[..., Any] = op.scalar if op is not None else getattr(elementary, name)
    return scalar


def operands(name: str) -> int:
    """Return the number of arguments of a function."""
    return REFERENCES[name].operands


def _precision(dtype: Any) -> tuple[int, int]:
    """Return (bits of the significand, exponent of the smallest subnormal)."""
    return (53, -1074) if np.dtype(dtype).itemsize == 8 else (24, -149)


def reference(name: str, *arguments: float) -> Any:
    """Return the exact value (an mpmath number of 160 bits) at finite arguments."""
    import mpmath as mp

    with mp.workprec(160):
        return REFERENCES[name].exact(mp, *map(mp.mpf, arguments))


def ulp_error(value: float, exact: Any, dtype: Any, floor: float = 0.0) -> float:
    """Return ``|value - exact|`` in units in the last place of ``exact`` in ``dtype``.

    A result that is infinite counts as the first power of two beyond the range. The unit is at least that of `floor`.
    """
    import mpmath as mp

    digits, lowest = _precision(dtype)
    with mp.workprec(160):
        top = 1024 if digits == 53 else 128
        got = mp.mpf(float(value)) if np.isfinite(value) else mp.sign(float(value)) * mp.ldexp(1, top)
        if np.isnan(value):
            return float("inf")
        if abs(exact) > mp.ldexp(1, top):
            exact = mp.sign(exact) * mp.ldexp(1, top)
        size = max(abs(exact), mp.mpf(floor))
        exponent = mp.frexp(size)[1] if size else lowest + digits
        unit = mp.ldexp(1, min(max(exponent, lowest + digits), top) - digits)
        return float(abs(got - exact) / unit)


def sample(name: str, dtype: Any, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return points of the function's domain: uniform where it bends, over all exponents, and random bit patterns."""
    rng = np.random.default_rng(seed)
    entry, third = REFERENCES[name], count // 3
    wide = np.dtype(dtype).itemsize == 8
    columns = []
    for _ in range(entry.operands):
        bottom, top = (-1074, 1024) if wide else (-149, 128)
        bend = rng.uniform(*entry.bends(wide), third)
        powers = 2.0 ** rng.uniform(bottom, top, third) * rng.choice([-1.0, 1.0], third)
        noise = np.frombuffer(rng.bytes(third * np.dtype(dtype).itemsize), dtype)
        columns.append([bend, powers, noise])
    if entry.points is not None:  # where the function is hard
        for column, points in zip(columns, entry.points(rng, third, wide), strict=True):
            column.append(points)
    if entry.operands == 2:  # all kinds meet
        columns[1] = [column[rng.permutation(third)] if len(column) == third else column for column in columns[1]]
        columns = [c + [c[0], c[1]] if i == 0 else c + [c[1], c[0]] for i, c in enumerate(columns)]
    with np.errstate(over="ignore"):
        x = [np.concatenate([part.astype(dtype) for part in column]) for column in columns]
    usable = np.all([np.isfinite(each) for each in x], axis=0) & entry.inside(*x)
    return tuple(each[usable] for each in x)


def special_values(dtype: Any) -> np.ndarray:
    """Return zeros, infinities, NaN, the ends of all ranges and the borders of the forms, and neighbours."""
    info = np.finfo(dtype)
    values = [
        0.0, np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max, info.eps, 1, 2, 3, 0.5, 1.5,
        7, 10, 20, 22, 40, 4097, 5.93, 3.95, 0.921875, 0.126, 709.782712893384, 709.7827128933841,
        745.1332191019412, 88.72283, 88.722839, 103.97207, 103.9721, 2.0**27, 2.0**47, 2.0**53, 2.0**54,
        2.0**60, 2.0**-13, 2.0**-28, 1e9, 1e22, 1e30, 3e38, np.pi, np.pi / 2, np.pi / 4, np.sqrt(0.5),
        np.sqrt(2.0), 0.75, 1.4616321449683622, 26.543, 27.226, 10.05, 9.19,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        positive = np.array(values, dtype)
        below, above = np.nextafter(positive, dtype(0)), np.nextafter(positive, dtype(np.inf))
        neighbours = np.concatenate([positive, below, above])
    return np.concatenate([neighbours, -neighbours])


def _suspects(entry: Reference, values: np.ndarray, points: tuple[np.ndarray, ...], count: int) -> list[int]:
    """Return where the error seems largest, by a quick function in more digits or, for float64, in as many."""
    wide = values.dtype.itemsize == 8
    quick = entry.quick
    if quick is None or (wide and np.finfo(np.longdouble).nmant < 60):
        return []
    kind = np.float64 if entry.only_double or not wide else np.longdouble
    with np.errstate(all="ignore"):
        exact = quick(*(p.astype(kind) for p in points))
        digits, lowest = _precision(values.dtype)
        size = np.maximum(np.abs(exact), entry.floor)
        unit = np.ldexp(kind(1), np.maximum(np.frexp(size)[1] - digits, lowest))
        error = np.abs(values - exact) / unit
    return [int(i) for i in np.argsort(np.where(np.isfinite(error), error, 0))[-count:]]


def worst_error(name: str, values: np.ndarray, points: tuple[np.ndarray, ...], checked: int) -> tuple[float, Any]:
    """Return the largest error found, in ulp, and the point it was found at.

    Every value is compared with a quick function, in extended precision where numpy has it; the ``checked`` worst of
    those and as many others are compared with mpmath, and only those count.
    """
    entry, dtype = REFERENCES[name], values.dtype
    stride = max(1, len(values) // checked)
    candidates = [*range(0, len(values), stride), *_suspects(entry, values, points, checked)]
    errors = [
        (ulp_error(values[i], reference(name, *(float(p[i]) for p in points)), dtype, entry.floor), i)
        for i in candidates
    ]
    worst, index = max(errors)
    return worst, tuple(p[index] for p in points)
