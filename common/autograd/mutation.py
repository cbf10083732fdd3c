"""Writes into memory that a recorded op has saved: noticed at backward, free for programs without such writes.

Every in-place write takes a number from the tape's counter and is logged with its range of bytes and line. A
node's saved array is intact unless a write with a later number overlaps it, so writes to disjoint slices are no
error, and a backward pass compares one number when nothing was written since its oldest node was made.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from common.autograd import tape
from common.autograd.tape import Node, next_number
from common.errors import GradientError
from common.frames import locate
from common.op import Op, rule_parameters


class Write(NamedTuple):
    """One in-place write: its number, its range of bytes, and the user's frame."""

    number: int
    low: int
    high: int
    code: CodeType | None
    lasti: int


_EVERYTHING = (0, 1 << 64)
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
    low, high = _EVERYTHING if array is base else byte_bounds(array)
    writes[low, high] = Write(tape.last_write, low, high, code, lasti)


class WritingProgram(Protocol):
    """A compiled program that writes to state when it runs."""

    name: str
    written_at: int
    """Number of its last run, from the counter of the tape."""

    def written_arrays(self) -> list[np.ndarray]:
        """The memory that it writes."""
        ...


#: Every program that writes to state; they note their runs themselves, which costs less than a log entry.
programs: weakref.WeakSet[WritingProgram] = weakref.WeakSet()


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
            for saved in _needed(node):
                _check_array(node, saved)


def _needed(node: Node) -> Iterator[np.ndarray]:
    """The saved arrays that a rule will read: a rule whose operand gets no gradient does not run."""
    op, saved = node.op, node.saved
    if type(saved) is not tuple or op.kind == "region":
        return
    if op.kind == "function":
        yield from (x.payload for x in saved if x is not None and isinstance(x.payload, np.ndarray))
        return
    needed = positions_read(op, op.rules, tuple([edge is not None for edge in node.edges]))
    for position in needed:
        x = saved[position]
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, tuple):  # the outputs of an op with several; shapes hold no arrays
            yield from (y for y in x if isinstance(y, np.ndarray))


@cache
def positions_read(op: Op, rules: tuple[Any, ...], wanted: tuple[bool, ...]) -> tuple[int, ...]:
    """Positions among the saved values that the rules of the wanted operands name.

    Parameters
    ----------
    rules : the op's present rules: part of the key, so that a changed rule is seen.
    """
    named: set[str] = set()
    for want, rule in zip(wanted, rules, strict=True):
        if want and rule is not None:
            named.update(rule_parameters(rule))
    return tuple(i for i, name in enumerate(op.saves) if name in named)


def _check_array(node: Node, saved: np.ndarray) -> None:
    writes = _log.get(id(_base(saved)))
    low, high = byte_bounds(saved) if writes else (0, 0)
    for write in writes.values() if writes else ():
        if write.number > node.number and write.low < high and low < write.high:
            file, line, _ = locate(write.code, write.lasti)
            raise _overwritten(node, saved, f"at {file}:{line}")
    for program in programs:
        if program.written_at > node.number:
            if any(np.may_share_memory(saved, array) for array in program.written_arrays()):
                raise _overwritten(node, saved, f"by the compiled {program.name}")


def _overwritten(node: Node, saved: np.ndarray, how: str) -> GradientError:
    file, line, _ = node.source
    return GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"a value of shape {saved.shape} saved by {node.name()} at {file}:{line} was overwritten {how}. Write to a "
        "copy (.clone()) instead, or call backward before the write."
    )
