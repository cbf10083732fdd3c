"""``python -m benchmarks.reduction_times``: reductions and scans of a million elements, beside numpy, PyTorch and JAX.

Nanoseconds per element on one core and one thread, the fastest of interleaved rounds, because a machine that others use
only ever adds time; the engines' bits are compared first. The last column is the slower engine over the fastest other
library. Options choose functions and dtypes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks import measure
from benchmarks.bits import difference
from benchmarks.peers import peer_reductions as peers
from benchmarks.stats import Samples

SHAPES: dict[str, tuple[tuple[int, ...], int | None]] = {
    "flat": ((1_000_000,), None),
    "last": ((1000, 1000), 1),
    "first": ((1000, 1000), 0),
    "middle": ((100, 100, 100), 1),
}
"""Operands: shape and dimension."""

OURS = ("dynamic", "static")


class DifferentBits(AssertionError):
    """The engines disagree; nothing is timed then."""


def operand(where: str, dtype: str) -> tuple[np.ndarray, int | None]:
    """Return what is reduced, normal numbers, and the dimension."""
    shape, dim = SHAPES[where]
    return np.random.default_rng(0).standard_normal(shape).astype(dtype), dim


def samples(name: str, where: str, dtype: str, libraries: Sequence[str], seconds: float = 0.3) -> dict[str, Samples]:
    """Return seconds per call by library.

    Raises
    ------
    DifferentBits : the engines disagree.
    """
    x, dim = operand(where, dtype)
    found = {library: peers.call(library, name, x, dim) for library in libraries}
    calls = {library: (run, [()]) for library, run in found.items() if run is not None}
    results = [_arrays(calls[library][0]()) for library in OURS]
    for ours, compiled in zip(*results, strict=True):
        wrong = difference(ours, compiled)
        if wrong:
            raise DifferentBits(f"{name} {where} {dtype}: {wrong}")
    return measure.interleave(calls, seconds, batch_seconds=0.002)


def _arrays(result: object) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.numpy() if hasattr(part, "numpy") else np.asarray(part) for part in parts]


def row(name: str, where: str, dtype: str, libraries: Sequence[str]) -> tuple[str, float]:
    """Return one line of the table, and the ratio in its last column (nan without another library)."""
    found = samples(name, where, dtype, libraries)
    size = float(np.prod(SHAPES[where][0]))
    times = {library: float(np.min(found[library])) / size * 1e9 for library in found}
    others = [times[library] for library in times if library not in OURS]
    ratio = max(times[library] for library in OURS) / min(others) if others else float("nan")
    cells = "".join(f"{times[library]:9.3f}" if library in times else f"{'-':>9}" for library in libraries)
    return f"{name:<14}{where:<8}{dtype:<9}{cells}{ratio:9.2f}", ratio


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reduction_times", description=__doc__)
    parser.add_argument("-k", nargs="*", choices=peers.NAMES, default=peers.NAMES, help="functions")
    parser.add_argument("--dtype", nargs="*", choices=("float32", "float64"), default=("float32", "float64"))
    parser.add_argument("--where", nargs="*", choices=tuple(SHAPES), default=tuple(SHAPES))
    options = parser.parse_args(arguments)
    measure.single_core()
    libraries = peers.installed()
    print(f"{'function':<14}{'over':<8}{'dtype':<9}{''.join(f'{library:>9}' for library in libraries)}{'ratio':>9}")
    for name in options.k:
        for dtype in options.dtype:
            for where in options.where:
                print(row(name, where, dtype, libraries)[0], flush=True)


if __name__ == "__main__":
    main()
