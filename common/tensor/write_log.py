"""Writes into memory that a recorded op has saved: noticed at backward, free for programs without such writes.

Every in-place write takes a number from the tape's counter and is logged with its range of bytes, its strides if that
range has gaps, and its line. A node's saved array is intact unless a write with a later number shares an element with
it, so writes to disjoint slices are no error, and a backward pass compares one number when nothing was written since
its oldest node was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from common.core.errors import EscapedTracerError, GradientError, ShapeError
from common.core.op import Op
from common.core.rule_code import rule_parameters
from common.core.shapes import overlapping
from common.core.source_lines import locate
from common.core.weak import Alive, WhileKeysLive, forgetting
from common.evaluate.native_results import overwrite
from common.runtime.tape_state import WriteLog
from common.tensor.node import Node, next_number

#: One in-place write: its number, its range of bytes, code and instruction of the user's frame.
Write = tuple[int, int, int, CodeType | None, int]
#: The bytes of a write: the range, and of an array that leaves gaps in it shape, strides and bytes per element.
Place = tuple[Any, ...]

Saved = Iterator[tuple[int, np.ndarray]]
"""Saved arrays with their positions."""

#: Number of the newest in-place write.
last_write = -1

#: How far numpy searches for an element of two arrays before one is assumed.
_SEARCH = 10_000
_END = 1 << 64
_EVERYTHING: Place = ()


class _Writes(dict[Place, Write]):
    """The latest write to each place in one memory.

    Attributes
    ----------
    count : of all writes, in a list of one: memories that one tensor had in turn share it.
    memory : a weak reference to what owns it, with which its log goes.
    """

    __slots__ = ("count", "memory")

    memory: ref[Any]

    def __init__(self) -> None:
        self.count = [0]


_log: dict[int, _Writes] = {}


def _extent(array: np.ndarray) -> Any:
    """The addresses between which an array lies; compiles at first use, then takes itself out of the way."""
    global _extent
    from common.core.dtypes import SUPPORTED
    from common.runtime.builtins import make_extent

    _extent = make_extent(SUPPORTED)
    return _extent(array)


def number_write() -> int:
    """A number for a write that happens now: that of a log entry, or of the run of a program that writes state."""
    global last_write
    last_write = number = next_number()
    return number


def log_write(array: np.ndarray, code: CodeType | None, lasti: int) -> None:
    """Note that `array`'s memory is being overwritten."""
    global last_write
    last_write = number = next_number()
    if array.base is None:
        writes = _log.get(id(array)) or _writes(array)
        writes[_EVERYTHING] = number, 0, _END, code, lasti
    else:
        writes = _writes(owner_of(array))
        low, high = place = _extent(array) or byte_bounds(array)
        if not array.flags.c_contiguous:
            place = low, high, array.shape, array.strides, array.itemsize
        writes[place] = number, low, high, code, lasti
    writes.count[0] += 1


def _writes(base: np.ndarray) -> _Writes:
    """The log of what owns a memory."""
    key = id(base)
    writes = _log.get(key)
    if writes is None:
        writes = _log[key] = _Writes()
        writes.memory = forgetting(base, _log, key)
    return writes


def share_count(new: np.ndarray, old: np.ndarray) -> None:
    """Count writes to two memories as one number: that of a tensor which has the new one in place of the old one."""
    if (base := owner_of(new)) is not (before := owner_of(old)):
        _writes(base).count = _writes(before).count


def count_write(array: np.ndarray) -> None:
    """Count a write that leaves the elements as they are, or of which another entry tells."""
    _writes(owner_of(array)).count[0] += 1


def postpone(array: np.ndarray, number: int) -> None:
    """Let the writes to an array since `number` count as later than everything recorded until now."""
    for place, (written, start, end, code, lasti) in list(_overlapping(array)):
        if written > number:
            now = number_write()
            _log[id(owner_of(array))][place] = (now, start, end, code, lasti)


def written_since(array: np.ndarray, number: int) -> bool:
    """Whether an array has been overwritten by a write later than that of a number."""
    return any(write[0] > number for _, write in _overlapping(array))


def writes_to(array: np.ndarray) -> int:
    """How many writes there have been to the memory of an array."""
    writes = _log.get(id(owner_of(array)))
    return 0 if writes is None else writes.count[0]


def _overlapping(array: np.ndarray) -> Iterator[tuple[Place, Write]]:
    """The logged writes to elements of an array, with their places."""
    writes = _log.get(id(owner_of(array)))
    if writes:
        low, high = byte_bounds(array)
        for place, write in writes.copy().items():
            if write[1] < high and low < write[2] and _shares_elements(array, place):
                yield place, write


def native_log() -> WriteLog:
    """The log for native code, see `common.runtime.write_text`."""
    return WriteLog(_log, globals(), "last_write", _EVERYTHING, _END, _Writes)


class _Written:
    """The bytes of a write, of which the log keeps no array, for numpy to compare with one."""

    def __init__(self, low: int, high: int, shape: Any = None, strides: Any = None, itemsize: int = 1) -> None:
        shape, strides = ((high - low,), (1,)) if shape is None else (shape, strides)
        before = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
        self.__array_interface__ = {
            "version": 3, "data": (low - before, True), "shape": shape, "strides": strides, "typestr": f"|V{itemsize}",
        }  # fmt: skip


def _shares_elements(array: np.ndarray, place: Place) -> bool:
    """Whether a write in the range of an array's bytes went to one of its elements: between them others may lie."""
    if place is _EVERYTHING or (len(place) == 2 and array.flags.forc):
        return True
    try:
        return np.shares_memory(array, np.asarray(_Written(*place)), max_work=_SEARCH)  # type: ignore[arg-type, unused-ignore]
    except np.exceptions.TooHardError:
        return True


def read_first(target: np.ndarray, source: np.ndarray) -> np.ndarray:
    """What numpy can read while it writes: a copy of a source that lies in other steps in the same memory.

    Of vectors in one direction numpy does not look for that.
    """
    if target.ndim == 1 and source.ndim and source.base is not None and source.strides[-1] != target.strides[0]:
        if np.may_share_memory(target, source):
            return source.copy()
    return source


def put(target: np.ndarray, source: Any, one_value: bool = False) -> None:
    """Write to the memory of a tensor.

    Parameters
    ----------
    one_value : elements of `source` that go to one element of memory are equal; a number always is one value.

    Raises
    ------
    ShapeError : several elements of the tensor are one element of memory.
    ValueError : the memory is that of a read-only array.
    """
    try:
        if type(source) is np.ndarray:
            overwrite(target, read_first(target, source))
        else:
            target[...] = source
    except TypeError:
        raise EscapedTracerError(
            "what is written exists only when its program runs: write inside the traced function, or inside a block of "
            "the graph (`with graph.as_default():`)"
        ) from None
    except ValueError:
        if target.flags.writeable:
            raise
        repeats = repeated(target.shape, target.strides)
        windows = overlapping(target.shape, target.strides)
        if repeats and not windows and (one_value or np.ndim(source) == 0):
            at = (*(slice(0, 1) if d in repeats else slice(None) for d in range(target.ndim)),)
            once = target[at]
            once.flags.writeable = True
            once[...] = source[at] if np.ndim(source) else source
            return
        if not target.size:  # what has no elements repeats none
            return
        if repeats or windows:
            raise ShapeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation"
            ) from None
        raise


def repeated(shape: Sequence[Any], strides: Sequence[Any]) -> tuple[int, ...]:
    """Dimensions along which all elements are one element of memory; none if there are no elements."""
    if any(isinstance(n, int) and n == 0 for n in shape):
        return ()
    pairs = enumerate(zip(shape, strides, strict=True))  # a product of sizes is 0 only where there are none
    return tuple([d for d, (n, s) in pairs if isinstance(s, int) and s == 0 and n != 1])


def is_shared(array: np.ndarray) -> bool:
    """Whether several elements of an array are one element of memory."""
    if array.flags.forc:
        return False
    return bool(repeated(array.shape, array.strides)) or overlapping(array.shape, array.strides)


def apart(x: Any, memory: np.ndarray) -> Any:
    """A copy of an array that shares memory with the one given; anything else as it is."""
    return np.array(x) if isinstance(x, np.ndarray) and np.may_share_memory(x, memory) else x


class WritingProgram(Protocol):
    """A compiled program that writes to state when it runs."""

    name: str
    written_at: int
    """Number of its last run, from the counter of the tape."""

    def written_arrays(self) -> list[np.ndarray]:
        """The memory that it writes."""
        ...


#: Every program that writes to state; they note their runs themselves, which costs less than a log entry.
programs: Alive[WritingProgram] = Alive()


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory; an array that was handed out (`common.tensor.external_writes`) has a
    memoryview.
    """
    base: Any = array.base
    while base is not None:
        if isinstance(base, memoryview):
            base = base.obj
        if not isinstance(base, np.ndarray):
            break
        array = base
        base = array.base
    return array


#: Per node the outputs whose tensors were detached in place, with the number of that.
_detached: WhileKeysLive[Node, dict[int, int]] = WhileKeysLive()


def note_detached(node: Node, output: int) -> None:
    """Note that the tensor which shows an output of a node forgets its history now."""
    (_detached.get(node) or _detached.put(node, {}))[output] = number_write()


def _check_attached(node: Node) -> None:
    """Refuse to read a saved operand whose tensor has been detached in place since."""
    for edge in _saved_edges(node):
        maker, output = edge if type(edge) is tuple else (edge, 0)
        outputs = _detached.get(maker) if isinstance(maker, Node) else None
        if outputs is not None and outputs.get(output, -1) > node.number:
            file, line, _ = node.source
            raise GradientError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not "
                f"supported, please use out-of-place `.detach()` instead. {node.name()} at {file}:{line} has saved it."
            )


def _saved_edges(node: Node) -> Iterator[Any]:
    """Where gradients of the operands go that a node has saved and will read."""
    op, saved = node.op, node.saved
    if op.kind == "function" and type(saved) is tuple:
        yield from (x.edge for x in saved if x is not None and x.output is None)
    elif op.kind not in ("region", "function", "compiled"):
        read = positions_read(op, op.rules, tuple([edge is not None for edge in node.edges]))
        yield from (node.edges[index] for i, index in enumerate(op.saved_inputs) if i in read)


def check(nodes: list[Node], read: Callable[[Node], Saved] | None = None) -> None:
    """Refuse to differentiate through saved arrays that were overwritten.

    Parameters
    ----------
    nodes : in descending number.
    read : what will be read of what a node saves; by default what its rule needs.

    Raises
    ------
    GradientError : names the op and both lines: where the value was saved and where it was overwritten.
    """
    for node in nodes:
        if node.number < last_write:
            if _detached:
                _check_attached(node)
            for _, saved in (read or needed)(node):
                _check_array(node, saved)


def needed(node: Node) -> Saved:
    """The saved arrays that a rule will read, with their positions: one whose operand gets no gradient does not run."""
    op, saved = node.op, node.saved
    if type(saved) is not tuple:
        return
    if op.kind == "region":
        yield from enumerate(op.arrays(saved))
        return
    if op.kind == "function":
        yield from ((i, x.payload) for i, x in enumerate(saved) if x is not None and isinstance(x.payload, np.ndarray))
        return
    if op.kind == "compiled":
        yield from op.reads(saved)
        return
    for position in positions_read(op, op.rules, tuple([edge is not None for edge in node.edges])):
        x = saved[position]
        if isinstance(x, np.ndarray):
            yield position, x
        elif isinstance(x, tuple):  # the outputs of an op with several; shapes hold no arrays
            yield from ((position, y) for y in x if isinstance(y, np.ndarray))


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
    for _, (number, _, _, code, lasti) in _overlapping(saved):
        if number > node.number and not _unchecked(code, lasti):
            file, line, _ = locate(code, lasti)
            raise overwritten(node, saved, f"at {file}:{line}")
    for program in programs:
        if program.written_at > node.number:
            if any(np.may_share_memory(saved, array) for array in program.written_arrays()):
                raise overwritten(node, saved, f"by the compiled {program.name}")


def _unchecked(code: CodeType | None, lasti: int) -> bool:
    from common.tensor.unchecked_writes import through_data

    return through_data(code, lasti)


def overwritten(node: Node, saved: np.ndarray, how: str) -> GradientError:
    """The error for a saved array that was overwritten; `how` says where or by whom."""
    file, line, _ = node.source
    return GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"a value of shape {saved.shape} saved by {node.name()} at {file}:{line} was overwritten {how}. Write to a "
        "copy (.clone()) instead, or call backward before the write."
    )
