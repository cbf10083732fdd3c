"""Writes into memory that a recorded op has saved: noticed at backward, free for programs without such writes.

Every in-place write takes a number from the tape's counter and is logged with its region and line. A node's
saved array is intact unless a write with a later number overlaps it, so writes to disjoint slices are no error,
and a backward pass compares one number when nothing was written since its oldest node was made.
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from common.errors import GradientError
from common.tape import Node, locate, next_number


class Write(NamedTuple):
    """One in-place write: its number, the array it went to (weakly), and the user's frame."""

    number: int
    array: Any
    code: CodeType | None
    lasti: int


_log: dict[int, dict[Any, Write]] = {}
_last = -1


def log_write(array: np.ndarray, code: CodeType | None, lasti: int) -> None:
    """Note that `array`'s memory is being overwritten."""
    global _last
    base = _base(array)
    key = id(base)
    writes = _log.get(key)
    if writes is None:
        writes = _log[key] = {}
        weakref.finalize(base, _log.pop, key, None)
    _last = next_number()
    place = (array.__array_interface__["data"][0], array.shape, array.strides)
    writes[place] = Write(_last, weakref.ref(array), code, lasti)


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
    if not nodes or _last < nodes[-1].number:
        return
    for node in nodes:
        if node.number > _last:
            continue
        for saved in node.saved or ():
            if isinstance(saved, np.ndarray):
                _check_array(node, saved)


def _check_array(node: Node, saved: np.ndarray) -> None:
    for write in _log.get(id(_base(saved)), {}).values():
        target = write.array()
        if write.number > node.number and (target is None or np.may_share_memory(saved, target)):
            made, written = node.source, locate(write.code, write.lasti)
            raise GradientError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"a value of shape {saved.shape} saved by {node.name()} at {made[0]}:{made[1]} was overwritten at "
                f"{written[0]}:{written[1]}. Write to a copy (.clone()) instead, or call backward before the write."
            )
