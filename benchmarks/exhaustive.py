"""Largest error of the float32 functions over all 2^32 arguments.

``python -m benchmarks.exhaustive [name ...]``, about a minute per function. Values are compared with float64
functions of numpy and scipy, whose own error is 2^-29 ulp of a float32; the worst argument is then checked
with mpmath. Arguments of sin, cos and tan beyond the range of their accuracy are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.elementary_reference import reference, ulp_error
from benchmarks.scalar_loop import compile_loop
from common.kernels import elementary
from common.kernels.trigonometric import LIMIT

__all__ = ["main", "worst_argument"]

CHUNK = 2**20


def _references() -> dict[str, Callable[[Any], Any]]:
    from scipy import special

    names = ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh")
    return {name: getattr(np, name) for name in names} | {
        "erf": special.erf,
        "sigmoid": special.expit,
        "rsqrt": lambda x: 1 / np.sqrt(x),
    }


def _arguments(name: str) -> Iterator[np.ndarray]:
    limit = LIMIT[np.dtype(np.float32)] if name in ("sin", "cos", "tan") else np.inf
    for start in range(0, 2**32, CHUNK):
        x = np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)
        yield x[~(np.abs(x) > limit)]


def worst_argument(name: str) -> float:
    """Return the argument with the largest error.

    Raises
    ------
    AssertionError
        A value is NaN where the reference is not, or the other way round.
    """
    loop = compile_loop(f"{name}_float32", getattr(elementary, name), np.float32)
    exact_function = _references()[name]
    worst, argument = -1.0, 0.0
    for x in _arguments(name):
        values = loop(x)
        with np.errstate(all="ignore"):
            exact = exact_function(x.astype(np.float64))
            wrong = values != exact.astype(np.float32)
            unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
            error = np.where(wrong, np.abs(values - exact) / unit, 0.0)
        if not np.array_equal(np.isnan(values), np.isnan(exact)):
            raise AssertionError(f"{name}: NaN in the wrong place")
        error[np.isnan(error)] = 0.0
        if error.size and error.max() > worst:
            worst, argument = float(error.max()), float(x[error.argmax()])
    return argument


def main(names: list[str]) -> None:
    """Print one line per function."""
    for name in names or _references():
        argument = worst_argument(name)
        loop = compile_loop(f"{name}_float32", getattr(elementary, name), np.float32)
        value = float(loop(np.array([argument], np.float32))[0])
        print(
            f"{name} {ulp_error(value, reference(name, argument), np.float32):.4f} at {argument!r}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
