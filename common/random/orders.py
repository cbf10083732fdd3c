"""The order in which uniform numbers are sorted, which is a random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.evaluate.kernels import compiled
from common.kernels.arrays.sorting import uniform_order_source
from common.ops.functional import argsort
from common.tensor.create import lift

_MOST = 1 << 17
"""Numbers up to which buckets stay in the cache."""


def order_of(u: Any) -> Any:
    """The positions of a stable sort of numbers of `rand` in float64, (n,): an array's by buckets, without a trace."""
    if type(u) is not np.ndarray or u.size > _MOST:
        return argsort(lift(u), stable=True)
    buckets = 2 << u.size.bit_length()
    order, keys, ends = np.empty(u.size, np.int64), np.empty(u.size), np.empty(buckets, np.int64)
    compiled(uniform_order_source(), "uniform_order")(u, order, keys, ends, u.size, buckets)
    return lift(order)
