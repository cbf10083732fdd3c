"""Arrays for results: always fresh, large ones from memory that nothing refers to any more."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np

from common.core.allocation import LARGE, refuse_beyond_memory
from common.core.bounded import put_within
from static.lowering.fusion.size_only import KEPT_BYTES as KEPT_PER_PLAN
from static.lowering.memory.arena import ALIGNMENT
from static.running.python_calls import Exclusive

POOLED_BYTES = 1 << 16
"""From this size on memory is used again: a fresh 8 MB array costs more in page faults than most kernels."""
POOLED_ARRAYS = 3
KEPT_ALLOCATORS = 512
KEPT_BYTES = 1 << 23
"""What the plans of a program keep at most of what depends on sizes only."""
_UNUSED = 2  # references: the variable, getrefcount's argument


def make_allocator(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], np.ndarray]:
    """A function that returns an uninitialised array which shares memory with nothing that is still referred to.

    Parameters
    ----------
    shape : sizes
    dtype : dtype
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < POOLED_BYTES:
        return partial(np.empty, shape, dtype)
    pool: list[np.ndarray] = []

    def allocate() -> np.ndarray:
        seen: list[np.ndarray] = []
        array = None
        while array is None:
            try:
                memory = pool.pop()  # out of the pool while it is looked at: other threads allocate too
            except IndexError:
                break
            # Every view of an array, however it was made, holds a reference to the array that owns the memory.
            if sys.getrefcount(memory) == _UNUSED:
                array = _array(memory)
            seen.append(memory)
        pool.extend(seen)  # the newest is last and taken first, while caches hold it
        del pool[:-POOLED_ARRAYS]
        if array is not None:
            return array
        if nbytes >= LARGE:
            refuse_beyond_memory("compiled function", nbytes)
        try:
            memory = np.empty(nbytes + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):
            return np.empty(shape, dtype)  # so that the error tells of these
        if len(pool) < POOLED_ARRAYS:
            pool.append(memory)
        return _array(memory)

    def _array(memory: np.ndarray) -> np.ndarray:
        return np.ndarray(shape, dtype, memory, _padding(memory))

    return allocate


def _padding(memory: np.ndarray) -> int:
    """Bytes in front of the first aligned one."""
    return int(-memory.__array_interface__["data"][0] % ALIGNMENT)


class ResultMemory:
    """Memory that a program's plans share: a call holds the interpreter's lock, so no two of them run at once."""

    def __init__(self) -> None:
        self.lock = Exclusive()
        self._arena = np.empty(0, np.uint8)
        self._allocators: dict[Any, Callable[[], np.ndarray]] = {}
        self._kept = 0

    def arena(self, nbytes: int) -> np.ndarray:
        """Memory for the temporaries of a plan; (n,) bytes, n at least `nbytes`.

        It is that of the plan before, if that is large enough. What is larger is larger by half, so that plans for
        ever longer inputs keep no more than 4.5 times what the last one needs.

        Raises
        ------
        MemoryError : there is not as much.
        """
        if len(self._arena) < nbytes:
            refuse_beyond_memory("compiled function", nbytes)
            try:
                self._arena = np.empty(max(nbytes, len(self._arena) * 3 // 2), np.uint8)
            except (MemoryError, ValueError) as error:
                raise MemoryError(f"temporaries take {nbytes / 2**30:.4g} GiB") from error
        return self._arena

    @property
    def may_keep(self) -> int:
        """How many bytes another plan may keep of what depends on its sizes only."""
        return min(KEPT_PER_PLAN, KEPT_BYTES - self._kept)

    def keep(self, nbytes: int) -> np.ndarray:
        """Memory of a plan alone; (nbytes,) bytes, which count until they are freed."""
        memory = np.ndarray((nbytes,), np.uint8, owner := np.empty(nbytes + ALIGNMENT, np.uint8), _padding(owner))
        self._kept += nbytes
        finalize(owner, self._free, nbytes).atexit = False
        return memory

    def _free(self, nbytes: int) -> None:
        self._kept -= nbytes

    def allocator(self, position: int, shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], np.ndarray]:
        """The result of `make_allocator`, one per output and shape."""
        key = position, shape, dtype
        known = self._allocators.get(key)
        return known or put_within(self._allocators, key, make_allocator(shape, dtype), KEPT_ALLOCATORS)
