"""Elements for functions whose results have sizes that depend on the data, and which no trace can hold."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.allocation import allocation_error, refuse_beyond_memory, refuse_endless
from common.evaluate.kernels import compiled
from common.tensor.base import TensorBase

_FEW = 1024
"""Elements for which room is made before they are counted."""


def elements(x: Any, function: str, instead: str) -> np.ndarray:
    """The array behind an operand.

    Parameters
    ----------
    function : name of the function that needs it.
    instead : what to do in a traced program, as the end of a sentence.

    Raises
    ------
    TraceError : a program is being traced, in which sizes are fixed before there are elements.
    """
    trace = mode.current_trace()
    if trace is not None:
        shared = getattr(trace.payload(x), "shared", None)
        if shared is None:
            trace.refuse_size(function, instead)
        x = shared
    array = x.payload if isinstance(x, TensorBase) else x
    refuse_endless(function, array.shape if isinstance(array, np.ndarray) else np.shape(array))
    return array


def known_elements(x: Any) -> np.ndarray | None:
    """The array behind an operand; None where it exists only when a traced program runs."""
    trace = mode.current_trace()
    data = x if not isinstance(x, TensorBase) else x.payload if trace is None else trace.payload(x)
    return data if isinstance(data, np.ndarray) else None


def positions(x: np.ndarray, apart: bool = True) -> np.ndarray:
    """Where the elements of an array of one dimension or more are not zero, in C order; nan is not zero.

    Returns
    -------
    array : (x.ndim, count) int64, or (count, x.ndim) if the dimensions are not to be `apart`.
    """
    mask = x if x.dtype == bool else x != 0
    if not mask.flags.c_contiguous:
        mask = mask.copy()
    dims, size, shape = mask.ndim, mask.size, mask.shape
    if size == 0:
        return np.empty((dims, 0) if apart else (0, dims), np.int64)
    count = int(np.count_nonzero(mask)) if apart or size > _FEW else size
    out = np.empty(dims * (count + 1), np.int64)
    distances = (1, count) if apart else (dims, 1)
    count = _positions_kernel()(mask, out, size // shape[-1], shape[-1], dims, *distances, *shape[:-1])
    out.resize((dims, count) if apart else (count, dims), refcheck=False)
    return out


def places_of(lengths: np.ndarray, function: str) -> np.ndarray | None:
    """The number of each of several runs as often as its length says, int64; None if a length is negative.

    Parameters
    ----------
    function : name of the function that needs it.

    Raises
    ------
    AllocationError : so many do not fit into memory.
    """
    from common.kernels.arrays import runs

    lengths, found = np.ascontiguousarray(lengths, np.int64), np.empty(2, np.int64)
    compiled(runs.LENGTHS, "all_lengths")(lengths, found, lengths.size)
    total, least = found.tolist()
    if least < 0:
        return None
    if total >= runs.MOST:
        raise allocation_error(function, MemoryError(f"it has at least {total} elements along one dimension"))
    refuse_beyond_memory(function, 8 * total)
    out = np.empty(total, np.int64)
    compiled(runs.PLACES, "places")(lengths, out, lengths.size)
    return out


@cache
def _positions_kernel() -> Any:
    from common.kernels.arrays.indexing import positions_source

    return compiled(positions_source(), "positions")
