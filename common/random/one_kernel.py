"""Plans of draws whose numbers are scaled, cut to integers or compared in the kernel that draws them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from common.core.dtypes import float64, int64
from common.evaluate import kernels
from common.evaluate.kinds import number
from common.kernels.arrays import philox
from common.ops.create.creation import known_sizes


def range_numbers(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the plan "integers": how many there are between two bounds, and the first."""
    return number(last - first, float64), number(first, int64)


@lru_cache(maxsize=256)
def plan(name: str, dtype: np.dtype, count: int) -> tuple[Callable[..., Any], int]:
    """A draw to memory, ``run(key, offset, out, *numbers, count)``, and `count`.

    Parameters
    ----------
    name : "uniform" or "normal", of a factor and a summand; "integers", of `range_numbers`; "ones", of a probability.
    """
    scaled = f"{name}_{dtype}", "z * a + b", (dtype, dtype)  # -0 + 0 is +0, as in the functions
    draw, element, numbers = {
        "integers": ("uniform_float64", f"to_{dtype}(to_int64(z * a) + b)", (float64, int64)),
        "ones": ("uniform_float64", f"to_{dtype}(1 if z < a else 0)", (float64,)),
    }.get(name, scaled)
    return kernels.compiled(philox.written_source(draw, element, dtype, numbers), "written"), count


def drawn_integers(generator: Any, first: int, last: int, shape: tuple[Any, ...], dtype: np.dtype) -> np.ndarray:
    """The integers from [first, last) that `randint` draws; at most 2^53 of them."""
    y = np.empty(known_sizes(shape), int64 if dtype.kind == "b" else dtype)
    generator.take(plan("integers", y.dtype, y.size), y, *range_numbers(first, last), y.size)
    return y if y.dtype == dtype else y.astype(dtype)
