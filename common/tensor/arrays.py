"""Arrays from users' data: numbers, nested lists, arrays, tensors."""

from __future__ import annotations

import functools
from itertools import chain
from typing import Any

import numpy as np

from common.core import mode
from common.core.allocation import allocation_error, refuse_beyond_memory
from common.core.dispatch import known_attrs
from common.core.dtypes import SUPPORTED, AbsentDType, default_float, int64, promote, unsupported
from common.core.errors import ArgumentError, DTypeError, GradientError
from common.core.int_arguments import is_nested
from common.core.op import REGISTRY
from common.core.python_numbers import OF_NUMPY, is_foreign, require_held, taken
from common.core.sizes import Dim
from common.core.unbroadcast import is_tensor
from common.evaluate.specialise import run
from common.tensor.external_writes import lend

#: The dtypes with ops, to look one up.
OWN_DTYPES = frozenset(SUPPORTED)
#: Numbers between which numpy rounds as `to` does, in every mode.
_LEAST, _MOST = 1e-37, 1e38
#: More dimensions than an array of numpy's has.
_DEEPEST = 65


def known_dtype(dtype: Any) -> np.dtype:
    """The dtype that numpy makes of `dtype`.

    Raises
    ------
    DTypeError : it is none.
    """
    try:
        return np.dtype(dtype)
    except TypeError:
        if isinstance(dtype, AbsentDType):
            raise unsupported(dtype) from None
        raise DTypeError(f"{dtype!r} is no dtype; supported are {[d.name for d in SUPPORTED]}") from None


def to_array(data: Any, dtype: Any = None, *, copy: bool = True) -> np.ndarray:
    """Numbers, nested lists, arrays or tensors as an array in native byte order.

    Python floats become float32, Python ints int64; arrays keep their dtype.

    Raises
    ------
    DTypeError : a dtype without ops.
    ArgumentError : nested lists of unequal lengths, or no numbers at all.
    """
    if type(data) is float and dtype is None and (_LEAST < abs(data) < _MOST or data == 0):
        return np.array(data, default_float())
    if is_tensor(data):
        data = concrete(data)
    elif not isinstance(data, (np.ndarray, list, tuple, bool, int, float)) and is_foreign(data):
        data = taken(data)
    first = _first(data)
    if is_tensor(first):
        data, dtype = _numbers(data), _promoted(data) if dtype is None else dtype
    try:
        array: np.ndarray = np.array(data) if copy or not isinstance(data, np.ndarray) else data
    except (ValueError, GradientError) as error:  # GradientError: a tensor after a number
        if is_nested(data):
            raise ArgumentError("expected numbers: lists are nested too deeply, or one contains itself") from None
        if _holds_tensors(data):
            return to_array(_numbers(data), _promoted(data) if dtype is None else dtype)
        raise ArgumentError(f"expected numbers in equally long sequences: {error}") from None
    except MemoryError as error:
        raise allocation_error("tensor", error) from error
    if dtype is not None:
        wanted = known_dtype(dtype)
    elif isinstance(data, (list, tuple)) and not _are_plain(data) and array.dtype.kind in "bif":
        wanted = _promoted(data)
    elif array.dtype.kind not in "fi" or isinstance(first, (np.ndarray, np.generic)):  # numpy's dtype is meant
        wanted = array.dtype.newbyteorder("=")
    else:
        wanted = default_float() if array.dtype.kind == "f" else int64
    kind = array.dtype.kind
    if kind == "O" and any(isinstance(x, Dim) for x in array.flat):
        raise DTypeError("a list holds sizes that are open in a trace; use stack([tensor(n), ...])")
    if kind == "O":
        raise DTypeError(f"Could not infer dtype of {type(first).__name__}: give a number, an array or nested lists")
    if wanted not in OWN_DTYPES or kind not in "biuf":
        raise unsupported(array.dtype if kind not in "biuf" else wanted)
    if array.dtype == wanted and array.dtype.isnative:
        return array
    if wanted.kind in "iu" and array.size and type(first) in (int, float) and kind in "iuf":
        require_held("tensor", wanted, array.min().item(), array.max().item())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.dtype == wanted else run(REGISTRY["to"], (array,), known_attrs(None, dtype=wanted))


def refuse_copied_rows(name: str, values: Any) -> None:
    """Refuse rows, each of which is copied, of an expanded array if there is no memory for them.

    Raises
    ------
    AllocationError : there is not.
    """
    if isinstance(data := getattr(values, "payload", values), np.ndarray):
        refuse_beyond_memory(name, data.nbytes)


def _first(data: Any) -> Any:
    """A value, or the first inside nested lists, of which one may contain itself."""
    for _ in range(_DEEPEST):
        if not isinstance(data, (list, tuple)) or not data:
            break
        data = data[0]
    return data


def _holds_tensors(data: Any) -> bool:
    """Whether there are tensors in nested lists."""
    return isinstance(data, (list, tuple)) and any(is_tensor(x) or _holds_tensors(x) for x in data)


def _numbers(data: Any) -> Any:
    """Nested lists in which a tensor of one element, whatever its shape, is a number, as in PyTorch."""
    if isinstance(data, (list, tuple)):
        return [_numbers(x) for x in data]
    if not is_tensor(data):
        return data
    array = concrete(data)
    return array.reshape(()) if array.size == 1 else array


def _promoted(data: Any) -> np.dtype:
    """The dtype of numbers, arrays and tensors in nested lists together."""
    return functools.reduce(promote, found) if (found := _dtypes(data)) else default_float()


def _dtypes(data: Any) -> set[np.dtype]:
    if isinstance(data, (list, tuple)):
        return set().union(*map(_dtypes, data))
    if isinstance(data, (bool, int, float)) and not isinstance(data, np.generic):
        return {np.dtype(bool) if isinstance(data, bool) else int64 if isinstance(data, int) else default_float()}
    if isinstance(data, Dim):
        return {int64}
    return {data.dtype.newbyteorder("=")} if hasattr(data, "dtype") else set()


_PLAIN, _ROWS = {bool, int, float}, {list, tuple}


def _are_plain(data: Any) -> bool:
    """Whether lists of one depth hold only Python numbers, or only numbers of one of numpy's types."""
    while (kinds := set(map(type, data))) <= _ROWS and kinds:
        data = list(chain.from_iterable(data))
    return kinds <= _PLAIN or (len(kinds) == 1 and kinds <= OF_NUMPY)


def concrete(self: Any) -> np.ndarray:
    """The array behind a tensor; a tracer explains why it has none."""
    trace = mode.current_trace()
    if trace is not None:
        trace.refuse_value(self)
    if not isinstance(self.payload, np.ndarray):
        raise self.describe_escape()
    array: np.ndarray = self.payload
    return array


def lent(self: Any, how: str) -> np.ndarray:
    """The array behind a tensor for the outside, whose writes to it are noticed."""
    concrete(self)
    return lend(self.payload, how)


def dtype_or(dtype: Any, default: Any) -> np.dtype:
    """`dtype` if it is given and supported, else the default.

    Raises
    ------
    DTypeError : a dtype without ops.
    """
    wanted = default if dtype is None else dtype
    if isinstance(wanted, np.dtype) and wanted in OWN_DTYPES:
        return wanted
    wanted = known_dtype(wanted)
    if wanted not in SUPPORTED:
        raise unsupported(wanted)
    return wanted


_SHORT, _MANY = 8, 4096
"""Elements of a row that repeats one, up to which, and of a copy, from which on, the copy is written by columns."""


def reshaped_array(x: np.ndarray, new_shape: Any) -> np.ndarray:
    """numpy's reshape; it is slow where each element comes several times in a row."""
    if x.ndim and x.strides[-1] == 0 and 1 < x.shape[-1] <= _SHORT and x.size >= _MANY:
        out = np.empty(x.shape, x.dtype)
        for column in range(x.shape[-1]):
            out[..., column] = x[..., 0]
        return out.reshape(new_shape)
    return x.reshape(new_shape)
