"""State that programs read and write: parameters, which are differentiated, and buffers, which are not.

Both belong to neither engine. Outside a trace their operators run in the eager engine; inside a trace they are
captured by reference, so that a compiled program sees every later update and writes its own back.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from common.core.allocation import refuse_beyond_memory
from common.core.dtypes import SUPPORTED, default_float, unsupported
from common.core.errors import DTypeError, TraceError
from common.tensor.arrays import lent
from common.tensor.base import TensorBase


class Leaf(TensorBase):
    """A named tensor.

    Parameters
    ----------
    data : (...) tensor, whose memory this one shares, so that writes to either show in both; or an array or nested
        lists, which are copied.
    requires_grad : record operations on it.

    Raises
    ------
    DTypeError : a dtype without ops, or `requires_grad` for one that is not floating point.
    TraceError : `data` is a traced value: state is made before the program, not by it.
    """

    __slots__ = ("__dict__", "name")
    __guards_itself__ = True  # an engine's short paths are among its methods

    def __init__(self, data: Any, requires_grad: bool) -> None:
        self._hold(_memory_of(data), requires_grad)

    def _hold(self, array: np.ndarray, requires_grad: bool) -> None:
        if requires_grad and array.dtype.kind != "f":
            raise DTypeError(f"only Tensors of floating point dtype can require gradients; this one is {array.dtype}")
        self.payload, self.name = array, ""
        self._requires_grad = bool(requires_grad)
        self.grad_fn = None
        self.output_nr = 0
        self._grad = self._family = None

    @classmethod
    def over(cls, array: np.ndarray, requires_grad: bool = False) -> Self:
        """A leaf over an array that nothing else refers to, such as a compiled program's result: no copy."""
        leaf = object.__new__(cls)
        leaf._hold(array, requires_grad)
        return leaf

    def numpy(self) -> np.ndarray:
        """The present contents, (...) array that shares the memory; allowed although it requires grad.

        Raises
        ------
        TraceError : inside a traced function, where the contents are those of each later call.
        """
        return lent(self, "numpy()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None and not copy else np.array(array, dtype)


class Parameter(Leaf):
    """A tensor that training changes: a leaf with gradient, named by the module that holds it.

    Parameters
    ----------
    data : (...) tensor, whose memory it shares, or array or nested lists, which are copied; no elements by default.
    requires_grad : whether it is differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> Parameter(np.zeros((2, 3), np.float32)).requires_grad
    True
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        super().__init__(np.zeros(0, default_float()) if data is None else data, requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Leaf):
    """State without gradient: running sums, step counts, the state of a random generator.

    Parameters
    ----------
    data : (...) tensor, whose memory it shares, or array or nested lists, which are copied.
    persistent : whether the `state_dict` of a module has it.
    """

    __slots__ = ()
    persistent = True

    def __init__(self, data: Any, *, persistent: bool = True) -> None:
        super().__init__(data, False)
        if not persistent:
            self.persistent = False


def sharing(leaf: Leaf) -> Buffer:
    """A leaf without gradient that shares another one's memory."""
    shared = Buffer.over(leaf.payload)
    shared.name = leaf.name
    return shared


def _memory_of(data: Any) -> np.ndarray:
    if isinstance(data, TensorBase):
        payload = data.payload
        if not isinstance(payload, np.ndarray):
            raise TraceError(
                "a Parameter or Buffer cannot be made of a traced value: make it before the traced function runs, and "
                "write to it inside with copy_()"
            )
        return payload
    if isinstance(data, np.ndarray):
        refuse_beyond_memory("tensor", data.nbytes)
    array: np.ndarray = np.array(data, order="C")
    if not isinstance(data, (np.ndarray, np.generic)) and array.dtype == np.float64:
        array = array.astype(default_float())  # Python floats
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype not in SUPPORTED:
        raise unsupported(array.dtype)
    return array
