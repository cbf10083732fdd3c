"""How fast the machine is just now: fixed work in Python and in numpy, timed in the same rounds as the programs.

Two runs on different days, clocks or loads differ in these too; `benchmarks.lab.comparing` divides by them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PREFIX = "probe: "


def probes() -> dict[str, tuple[Callable[[], Any], list[tuple[Any, ...]]]]:
    """Return the probes, as `benchmarks.measure.interleave` takes programs."""
    x = np.linspace(-1, 1, 4096, dtype=np.float32)
    out = np.empty_like(x)

    def python() -> int:
        total = 0
        for i in range(500):
            total += i & 7
        return total

    return {f"{PREFIX}python": (python, [()]), f"{PREFIX}numpy": (lambda: np.exp(x, out=out), [()])}
