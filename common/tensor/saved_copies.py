"""Copies of what ops save, for programs that may overwrite it: one copy of each state of a tensor."""

from __future__ import annotations

from typing import Any
from weakref import ref

from common.core.weak import WhileValuesLive
from common.tensor.write_log import owner_of, writes_to


class SavedCopy:
    """A copy of a tensor as it was when an op saved it.

    Parameters
    ----------
    x : the tensor, of the eager engine.

    Attributes
    ----------
    tensor : the copy.
    """

    __slots__ = ("__weakref__", "_owner", "_writes", "tensor")

    def __init__(self, x: Any) -> None:
        self.tensor = x.clone()
        self._owner, self._writes = ref(owner_of(x.payload)), writes_to(x.payload)

    def shows(self, x: Any) -> bool:
        """Whether the memory is still that of `x`: the address of memory that was freed is given out again."""
        return self._owner() is owner_of(x.payload)

    @property
    def differs(self) -> bool:
        """Whether the memory of the original has been written since."""
        owner = self._owner()
        return owner is not None and writes_to(owner) != self._writes


def copy_of_state(copies: WhileValuesLive[SavedCopy], x: Any) -> SavedCopy:
    """The copy of a tensor's present elements among `copies`, or a new one."""
    array = x.payload
    key = (array.ctypes.data, array.shape, array.strides, array.dtype.str, writes_to(array))
    copy = copies.get(key)
    if copy is None or not copy.shows(x):
        copy = copies.put(key, SavedCopy(x))
    return copy
