"""Random orders: those in which uniform numbers are sorted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import float64, int64
from common.core.op import REGISTRY, NativeCall
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate.native_results import in_a_row
from common.kernels.arrays.random_orders import random_keys_source, random_order_scratch, random_order_source
from common.ops.create.creation import known_sizes
from common.ops.functional import argsort
from common.random.generator import DrawPlan, Generator, default_generator, draw
from common.tensor.arrays import dtype_or
from common.tensor.create import lift

_MOST = 1 << 17
"""Numbers up to which buckets stay in the cache."""


def randperm(n: Any, dtype: Any = None, generator: Generator | None = None) -> Any:
    """Draw an order of the ints from 0 to n - 1: that in which n numbers of `rand` in float64 are sorted.

    Parameters
    ----------
    n : how many.
    dtype : int64 by default.
    generator : where from; the default generator if None.

    Raises
    ------
    ShapeError, ArgumentError : a negative number, or something that is no int.
    """
    wanted = int64 if dtype is None else dtype_or(dtype, int64)
    of = generator or default_generator
    if type(n) is int and 0 <= n <= _MOST and type(of) is Generator and mode.current_trace() is None:
        y = lift(of.take(_plan(n)))
    else:
        y = argsort(lift(draw("rand", known_sizes((n,)), float64, generator)), stable=True)
    return y if wanted == int64 else REGISTRY["to"](y, dtype=wanted, x_dtype=int64)


@lru_cache(maxsize=256)
def _plan(n: int) -> DrawPlan:
    """What draws an order of n ints by two kernels."""
    places = max(1, (n - 1).bit_length())
    digits = max(1, places - 1)
    ints, held = (n, digits, places), random_order_scratch(n, digits)
    calls = [
        NativeCall(random_keys_source(), "random_keys", ints, (0, 1), held),
        NativeCall(random_order_source(), "random_order", ints, None, held),
    ]
    state = (), int64
    builtin = in_a_row(calls, (state, state), [Spec((n,), int64)])
    if builtin is not None:
        return DrawPlan(builtin, n)
    keys, order = [kernels.compiled(call.source, call.name) for call in calls]

    def run(key: np.ndarray, offset: np.ndarray) -> np.ndarray:
        y, scratch = np.empty(n, int64), kernels.scratch(held)
        keys(key, offset, scratch, *ints)
        order(key, offset, y, scratch, *ints)
        return y

    return DrawPlan(run, n)
