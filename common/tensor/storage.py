"""The memory that tensors show, as PyTorch's storages: to be compared, measured and looked at."""

from __future__ import annotations

from typing import Any

import numpy as np


class Storage:
    """The memory of a tensor, with all that shares it; `storage()` counts its elements, `untyped_storage()` its bytes.

    It is made anew by each call, so two are compared by `data_ptr`.

    Parameters
    ----------
    owner : the array that owns the memory.
    dtype : of the elements that are counted.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.zeros(5)
    >>> len(x[1:3].storage()), x[1:3].storage().data_ptr() == x.storage().data_ptr()
    (5, True)
    """

    __slots__ = ("_owner", "dtype")

    def __init__(self, owner: np.ndarray, dtype: np.dtype[Any]) -> None:
        self._owner, self.dtype = owner, dtype

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._owner.ctypes.data if self._owner.size else 0

    def nbytes(self) -> int:
        """Bytes of all of it."""
        return self._owner.nbytes

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def elements(self, dtype: np.dtype[Any]) -> np.ndarray:
        """All of the memory as (n,) elements of a dtype, shared if they lie one after the other."""
        return self._owner.ravel("K").view(dtype)

    def tolist(self) -> list[Any]:
        """The elements, in the order of the memory."""
        return np.frombuffer(self._owner.tobytes("A"), self.dtype).tolist()

    def __getitem__(self, index: int) -> Any:
        return self.tolist()[index]

    def __repr__(self) -> str:
        return f"Storage of {self.size()} elements of {self.dtype}"
