"""Tensors from sizes and data, as the array API standard makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.api.offered import bind_creation
from common.core import devices
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError
from common.ops import functional
from common.ops.create import creation, spaced
from common.ops.create import like as alike
from common.tensor import create
from common.tensor.arrays import known_dtype
from common.tensor.base import TensorBase
from common.tensor.create import operand

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace",
           "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]  # fmt: skip


#: Functions that give tensors, in a trace and outside.
MADE = bind_creation(
    {name: getattr(creation, name) for name in ("arange", "empty", "eye", "full", "ones", "zeros")}
    | {"linspace": spaced.linspace}
)


def _dtype(dtype: Any, device: Any, name: str) -> Any:
    devices.on_cpu(device, name)
    return None if dtype is None else known_dtype(dtype)


def _sizes(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """start, start + step, ... before `stop`; nothing if `stop` lies on the other side.

    Parameters
    ----------
    start, stop, step : numbers; ``arange(n)`` counts from 0 to n.
    dtype : int64 by default, float32 if any number is a float.
    device : "cpu" or None.
    """
    kind = _dtype(dtype, device, "arange")
    first, last = (0, start) if stop is None else (start, stop)
    if step != 0 and (last - first) * step <= 0:
        first, last = 0 * first, 0 * last
        step = abs(step)
    return MADE["arange"](first, last, step, dtype=kind)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Data as a tensor.

    Parameters
    ----------
    obj : number, nested list, array, buffer or tensor.
    dtype : of the result; by default that of an array, float32 for floats, int64 for ints.
    device : "cpu" or None.
    copy : True for memory of its own, False to share that of `obj`, None to share it where that is possible.

    Raises
    ------
    ArgumentError : `copy` is False, and the memory cannot be shared.
    """
    kind = _dtype(dtype, device, "asarray")
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = np.asarray(obj)
    shares = isinstance(obj, (np.ndarray, TensorBase)) or hasattr(obj, "__dlpack__")
    if copy is False and (not shares or (kind is not None and obj.dtype != kind)):
        raise ArgumentError("asarray(): copy=False, but this cannot be had without a copy: leave copy out")
    made = create.as_tensor(obj, dtype=kind)
    return made.clone() if copy and shares else made


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A tensor to be written to; its elements are zeros.

    Parameters
    ----------
    shape : size, or tuple of sizes.
    dtype : float32 by default.
    device : "cpu" or None.
    """
    return MADE["empty"](_sizes(shape), dtype=_dtype(dtype, device, "empty"))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """`empty` in the shape of a tensor, and by default its dtype."""
    return alike.empty_like(operand(x, x), dtype=_dtype(dtype, device, "empty_like"))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Ones on a diagonal, zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : sizes; a square by default.
    k : the diagonal: positive above the main one.
    dtype : float32 by default.
    device : "cpu" or None.
    """
    kind = _dtype(dtype, device, "eye")
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return MADE["eye"](n_rows, n_cols, dtype=kind)
    rows, columns = MADE["arange"](n_rows), MADE["arange"](n_cols)
    k = max(-n_rows, min(k, n_cols))
    return functional.eq(functional.add(rows[:, None], k), columns).to(np.dtype(np.float32) if kind is None else kind)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor of another library's array, whose memory it shares.

    Parameters
    ----------
    x : an object with ``__dlpack__``.
    device : "cpu" or None.
    copy : True for memory of its own.
    """
    devices.on_cpu(device, "from_dlpack")
    made = create.from_dlpack(x)
    return made.clone() if copy else made


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """A number everywhere.

    Parameters
    ----------
    shape : size, or tuple of sizes.
    fill_value : the number.
    dtype : by default that of the number: bool, int64 or float32.
    device : "cpu" or None.
    """
    return MADE["full"](_sizes(shape), fill_value, dtype=_dtype(dtype, device, "full"))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """`full` in the shape of a tensor, and by default its dtype."""
    return alike.full_like(operand(x, x), fill_value, dtype=_dtype(dtype, device, "full_like"))


def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """Numbers at equal distances.

    Parameters
    ----------
    start, stop : the first number and the last.
    num : how many.
    dtype : float32 by default.
    device : "cpu" or None.
    endpoint : whether `stop` is the last one; else the one after it would be.
    """
    kind = _dtype(dtype, device, "linspace")
    if endpoint:
        return MADE["linspace"](start, stop, num, dtype=kind)
    return MADE["linspace"](start, stop, num + 1, dtype=kind)[:num]


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Coordinates of a grid, from those of its axes.

    Parameters
    ----------
    arrays : (n), (m), ...
    indexing : "xy": the first varies along the second dimension; "ij": along the first.
    """
    return list(functional.meshgrid(*map(operand, arrays), indexing=indexing))


@sections_of(empty)
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones."""
    return MADE["ones"](_sizes(shape), dtype=_dtype(dtype, device, "ones"))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """`ones` in the shape of a tensor, and by default its dtype."""
    return alike.ones_like(operand(x, x), dtype=_dtype(dtype, device, "ones_like"))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The triangle on and below a diagonal, zeros elsewhere.

    Parameters
    ----------
    x : (..., n, m).
    k : the diagonal: positive above the main one.
    """
    return functional.tril(operand(x), k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The triangle on and above a diagonal, zeros elsewhere.

    Parameters
    ----------
    x : (..., n, m).
    k : the diagonal: positive above the main one.
    """
    return functional.triu(operand(x), k)


@sections_of(empty)
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros."""
    return MADE["zeros"](_sizes(shape), dtype=_dtype(dtype, device, "zeros"))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """`zeros` in the shape of a tensor, and by default its dtype."""
    return alike.zeros_like(operand(x, x), dtype=_dtype(dtype, device, "zeros_like"))
