"""The recursion of `ctc_loss` as one kernel with the bits of `scan`, see `common.control.loop_kernel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.control.loop_kernel import is_recorded, results_of
from common.core import mode
from common.evaluate import kernels
from common.kernels.arrays import alignments
from common.tensor.base import TensorBase

#: The logarithm of a probability of 0: finite, so that no gradient is nan, and far below every sum of logarithms.
NEVER = -1e30


def is_one_kernel(*operands: Any) -> bool:
    """Whether what is emitted, the skips, the frames and the start are arrays that the kernels take."""
    return not mode.tracing and all(type(x.payload) is np.ndarray for x in operands) and operands[0].shape[0] > 0


def last_reached(emitted: Any, skips: Any, frames: Any, start: Any, loop: Callable[..., Any]) -> TensorBase:
    """Logarithms of the probabilities of the states after all frames, (batch, count).

    Parameters
    ----------
    emitted : (steps, batch, count), floating point.
    skips : (batch, count), bool.
    frames : (batch,) int64.
    start : (batch, count), of the dtype of `emitted`, without a gradient.
    loop : ``loop(emitted)`` gives the same by ops.
    """
    keep = is_recorded([emitted])
    x, masks, ends, first = (np.ascontiguousarray(a.payload) for a in (emitted, skips, frames, start))
    steps, batch, count = x.shape
    last = np.empty_like(first)
    kept = np.empty((steps + 1 if keep else 2, batch, count + 2), x.dtype)
    sums = np.empty((steps if keep else 1, batch, count), x.dtype)
    run = kernels.compiled(alignments.forward_source(x.dtype, NEVER), "alignments")
    run(x, masks, ends, first, last, kept, sums, steps, batch, count, int(keep))
    back = partial(_back, masks, ends, kept, sums) if keep else None
    return results_of("scan", [last], [emitted], back, loop)[0]


def _back(
    masks: np.ndarray, ends: np.ndarray, kept: np.ndarray, sums: np.ndarray, g: Sequence[Any], needs: Sequence[Any]
) -> tuple[Any, ...]:
    """The contribution to what is emitted."""
    carried, found = np.array(g[0], sums.dtype, order="C"), np.empty_like(sums)
    run = kernels.compiled(alignments.backward_source(sums.dtype, NEVER), "alignments_back")
    steps, batch, count = sums.shape
    scratch = kernels.scratch(2 * (count + 2) * sums.dtype.itemsize)
    run(carried, masks, ends, kept, sums, found, scratch, steps, batch, count)
    return (found,)


__all__ = ["NEVER", "is_one_kernel", "last_reached"]
