"""Memory that the outside can write: saved values are compared when a backward pass begins.

A tensor's own methods log their writes (`mutation`). Nobody logs a write through an array that `numpy()`, `__array__`
or DLPack handed out, or of which `from_numpy`, `as_tensor` or `from_dlpack` made a tensor. Such memory is *exposed*,
from then on until nobody outside can reach it. What a node saves of exposed memory is given a checksum
(`common.kernels.arrays.checksum`). What nodes may have saved before is copied when the memory is handed out, if
anything but the tensor refers to it; the copy goes after the array that was handed out. Memory of the outside's own
that nothing else refers to any more, as of ``from_numpy(x.copy())``, is exposed no longer when a node is about to save
it. Tensors that never met the outside cost nothing. Values that compiled functions keep are not looked at.

An array that goes is noted by a builtin, and dealt with when somebody asks for what is exposed: an interrupt that a
callback of Python's raises is lost.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import islice
from types import CodeType
from typing import Any
from weakref import ref

import numpy as np

from common.core.locks import make_lock
from common.core.source_lines import locate, user_frame
from common.core.weak import forgetting
from common.kernels.arrays.checksum import checksum_source
from common.tensor.node import Node, next_number
from common.tensor.write_log import Saved, needed, overwritten, owner_of


class Exposure:
    """Memory that the outside can write.

    Attributes
    ----------
    owner : weak reference to the array that owns the memory.
    number : position in program order at which the outside first got hold of it.
    how, code, lasti : by which call, and the user's frame.
    before : a copy of the memory at that point, None if no node can have saved it.
    lent : weak references to arrays that were handed out and have not been seen to be gone, by identity.
    own : whether the memory is the outside's own: then any other reference to the owner is a way to it.
    """

    __slots__ = ("before", "code", "how", "lasti", "lent", "number", "own", "owner")

    def __init__(self, owner: np.ndarray, how: str, own: bool) -> None:
        key = id(owner)
        self.owner = forgetting(owner, exposed, key)
        self.number = next_number()
        self.how = how
        self.code: CodeType | None
        self.code, self.lasti = user_frame(3)
        self.before: np.ndarray | None = None
        self.lent: dict[int, Lent] = {}
        self.own = own
        exposed[key] = self

    def told(self) -> str:
        """How the outside got hold of it."""
        file, line, _ = locate(self.code, self.lasti)
        return f"from outside, through memory that {self.how} shares since {file}:{line}"

    def over(self) -> bool:
        """Whether nobody outside can reach memory of its own any more, as of ``from_numpy(x.copy())``."""
        return self.own and not self.lent and _held(self.owner) == _held_behind()


class Lent(ref[np.ndarray]):
    """A weak reference to an array that was handed out.

    Attributes
    ----------
    key : identity of the owner of the memory.
    """

    __slots__ = ("exposure", "key")

    exposure: Exposure
    key: int


#: Arrays that were handed out and are gone, see `settle`.
returned: deque[Lent] = deque()

#: Exposed memory, by the identity of the array that owns it.
exposed: dict[int, Exposure] = {}

#: Checksums of saved values by number of node, and copies of exposed memory by the identity of its owner; each with
#: what takes it out.
seals: dict[int, Any] = {}
copies: dict[int, tuple[ref[Any], np.ndarray]] = {}
#: Number of the newest exposure of which there is a copy: nodes made later saved what the outside could reach already.
newest_copy = -1
_lending = make_lock()


_FEW = 4

_BY_BYTES = 4096
"""Bytes of arrays up to which it is faster to compare copies as bytes than to make views of words."""


def _drop(key: int) -> None:
    exposed.pop(key, None)
    copies.pop(key, None)


def lend(array: np.ndarray, how: str) -> np.ndarray:
    """An array for the outside that shares the memory. To be called as ``lend(tensor.payload, how)``."""
    global newest_copy
    settle()
    owner = owner_of(array)
    key = id(owner)
    exposure = exposed.get(key)
    if exposure is None:
        exposure = Exposure(owner, how, own=False)
        if owner is not array or sys.getrefcount(array) > _alone():
            before = owner.copy("K")
            if before.strides == owner.strides:
                exposure.before = before
                with _lending:
                    newest_copy = max(newest_copy, exposure.number)
                copies[key] = forgetting(owner, copies, key), before
    # derived views keep what was handed out alive, because a memoryview ends numpy's search for the owner
    whole: Any = array
    lent: np.ndarray = np.asarray(memoryview(whole))
    held = Lent(lent, returned.append)
    held.key, held.exposure = key, exposure
    exposure.lent[id(held)] = held
    return lent


@cache
def _alone() -> int:
    """References to an array that only a tensor's slot and a call of `lend` hold."""

    class Holder:
        __slots__ = ("payload",)

    holder = Holder()
    holder.payload = np.zeros(1)  # type: ignore[attr-defined]
    return _references(holder.payload)  # type: ignore[attr-defined]


def _references(array: np.ndarray) -> int:
    owner = array
    return sys.getrefcount(owner)


def settle() -> None:
    """Forget arrays that were handed out and are gone, and with the last one of an owner the way to its memory."""
    while returned:
        try:
            gone = returned.popleft()
        except IndexError:  # another thread was faster
            return
        exposure = gone.exposure
        owner = exposure.owner()
        exposure.lent.pop(id(gone), None)
        if exposure.lent or exposure.own or owner is None or exposed.get(gone.key) is not exposure:
            continue
        if exposure.before is None or _same(exposure.before, owner):
            _drop(gone.key)


def borrow(array: Any, how: str) -> Any:
    """Note that memory which a tensor is about to use belongs to the outside, and return an array of it for the tensor.

    That array refers to an owner once, by a memoryview. So what else refers to the owner is outside.
    """
    if type(array) is not np.ndarray:
        return array
    owner = owner_of(array)
    exposure = exposed.get(id(owner))
    if exposure is None:
        Exposure(owner, how, own=True)
    return np.asarray(memoryview(array)) if array.base is None else array  # type: ignore[arg-type, unused-ignore]


def _held(owner: ref[Any]) -> int:
    """References to an array; one of a part of other memory never has as few as one that owns its own."""
    array = owner()
    return sys.getrefcount(array) if array is not None and array.base is None else 0


@cache
def _held_behind() -> int:
    """References to an array that nothing but a tensor's array of its memory holds."""
    held: Any = np.asarray(memoryview(np.zeros(1)))  # type: ignore[arg-type, unused-ignore]
    return _held(ref(held.base.obj))


# ------------------------------------------------------------------ what is saved


def seal(node: Node) -> None:
    """Keep checksums of what a node has saved of exposed memory. To be called where `exposed` is not empty."""
    saved = node.saved
    if type(saved) is not tuple:
        return
    settle()
    found = []
    for position, x in needed(node) if node.op.kind == "region" else enumerate(saved):
        array = x if type(x) is np.ndarray else getattr(x, "payload", None)
        if type(array) is np.ndarray:
            exposure = exposed.get(id(owner_of(array)))
            if exposure is not None and exposure.over():
                _drop(id(exposure.owner()))
            elif exposure is not None:
                found.append((position, _checksum(array), exposure))
    if found:
        number = node.number
        seals[number] = (forgetting(node, seals, number), found)
        return
    few: list[Exposure] = []
    with suppress(RuntimeError):  # another thread changed the dict meanwhile; the next node looks again
        few = list(islice(exposed.values(), _FEW))
    for exposure in few:  # where nothing is exposed, nobody asks any more
        if exposure.over():
            _drop(id(exposure.owner()))


def _checksum(array: np.ndarray) -> int:
    from common.evaluate.kernels import compiled

    total = np.empty(1, np.int64)
    compiled(checksum_source(array.dtype), "checksum")(np.ascontiguousarray(array), total, array.size)
    return int(total[0])


def may_matter(nodes: list[Node]) -> bool:
    """Whether `check` can find something in nodes, in descending number."""
    return bool(seals or (copies and newest_copy > nodes[-1].number))


def check(nodes: list[Node], reads: Callable[[Node], Saved] = needed) -> None:
    """Refuse to differentiate through what the outside has changed.

    Parameters
    ----------
    nodes : in descending number.
    reads : what will be read of what a node saves.

    Raises
    ------
    GradientError : names the op, where its value was saved, and where the outside got hold of the memory.
    """
    settle()
    for node in nodes:
        found = seals.get(node.number)
        if found is not None and found[0]() is node:
            read = dict(reads(node))
            for position, total, exposure in found[1]:
                array = read.get(position)
                if array is not None and _checksum(array) != total:
                    raise overwritten(node, array, exposure.told())
        if copies and newest_copy > node.number:
            for _, array in reads(node):
                exposure = exposed.get(id(owner_of(array)))
                if exposure is not None and exposure.number > node.number and not _unchanged(exposure, array):
                    raise overwritten(node, array, exposure.told())


def _unchanged(exposure: Exposure, array: np.ndarray) -> bool:
    """Whether a part of the memory is as it was when it was handed out."""
    owner, before = exposure.owner(), exposure.before
    if owner is None or before is None:
        return True
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    memory: Any = before.reshape(-1, order="A").view(np.uint8)
    return _same(np.ndarray(array.shape, array.dtype, memory, offset, array.strides), array)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one form hold the same bits."""
    if a.nbytes <= _BY_BYTES:
        return a.tobytes() == b.tobytes()
    if a.strides == b.strides and (a.flags.forc and b.flags.forc) and a.nbytes % 8 == 0:
        words, others = (x.reshape(-1, order="A").view(np.int64) for x in (a, b))  # without copies
        return np.array_equal(words, others)
    return a.tobytes() == b.tobytes()
