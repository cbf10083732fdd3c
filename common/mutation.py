"""Writes into memory that a recorded op has saved: noticed at backward, free for programs without such writes.

Every in-place write takes a number from the tape's counter and is logged with its range of bytes and line. A
node's saved array is intact unless a write with a later number overlaps it, so writes to disjoint slices are no
error, and a backward pass compares one number when nothing was written since its oldest node was made.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from common import tape
from common.errors import GradientError
from common.tape import Node, locate, next_number


class Write(NamedTuple):
    """One in-place write: its number, its range of bytes, and the user's frame."""

    number: int
    low: int
    high: int
    code: CodeType | None
    lasti: int


_log: dict[int, dict[tuple[int, int], Write]] = {}


def log_write(array: np.ndarray, code: CodeType | None, lasti: int) -> None:
    """Note that `array`'s memory is being overwritten."""
    base = _base(array)
    key = id(base)
    writes = _log.get(key)
    if writes is None:
        writes = _log[key] = {}
        weakref.finalize(base, _log.pop, key, None).atexit = False
    tape.last_write = next_number()
    low, high = byte_bounds(array)
    writes[low, high] = Write(tape.last_write, low, high, code, lasti)


def _base(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def check(nodes: list[Node]) -> None:
    """Refuse to differentiate through saved arrays that were overwritten.

    Parameters
    ----------
    nodes : in descending number.

    Raises
    ------
    GradientError : names the op and both lines: where the value was saved and where it was overwritten.
    """
    for node in nodes:
        if node.number < tape.last_write:
            for saved in _arrays(node.saved):
                _check_array(node, saved)


def _arrays(saved: Any) -> Iterator[np.ndarray]:
    for x in saved or ():
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, tuple):  # the outputs of an op with several; shapes hold no arrays
            yield from (y for y in x if isinstance(y, np.ndarray))


def _check_array(node: Node, saved: np.ndarray) -> None:
    writes = _log.get(id(_base(saved)))
    if not writes:
        return
    low, high = byte_bounds(saved)
    for write in writes.values():
        if write.number > node.number and write.low < high and low < write.high:
            made, written = node.source, locate(write.code, write.lasti)
            raise GradientError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"a value of shape {saved.shape} saved by {node.name()} at {made[0]}:{made[1]} was overwritten at "
                f"{written[0]}:{written[1]}. Write to a copy (.clone()) instead, or call backward before the write."
            )
