"""Tensors from data: arrays become payloads of the running engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_float, int64
from common.core.errors import ArgumentError, TwingradError
from common.core.int_arguments import shown
from common.core.op import REGISTRY
from common.core.operators import as_operand
from common.core.python_numbers import is_foreign, taken
from common.core.sizes import Dim
from common.tensor.arrays import OWN_DTYPES, known_dtype, to_array
from common.tensor.base import NUMBERS, TensorBase, wrap
from common.tensor.external_writes import borrow

CONVERTED = (np.ndarray, np.generic, list, tuple)


def lift(x: Any) -> Any:
    """An array, of any library, as a tensor of the running engine, captured by reference in a trace; else as it is.

    Of an array that is not in native byte order it is a locked copy, since a write to it would be lost.
    """
    if type(x) is np.ndarray and not mode.tracing and x.dtype in OWN_DTYPES:
        return wrap(x)
    if not isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, (TensorBase, *NUMBERS)) or not is_foreign(x):
            return x
        x = taken(x)
    trace = mode.current_trace()
    if trace is not None:
        return wrap(trace.payload(np.asarray(x)))  # numpy's float64 is a float of Python's too
    array = to_array(x, copy=False)
    if not x.dtype.isnative:
        array.flags.writeable = False
    return wrap(array)


def operand(x: Any, *others: Any) -> Any:
    """An argument as an operand: arrays and lists become tensors, and a number does if all of `others` are numbers."""
    if isinstance(x, TensorBase):
        return _as_tensor(x) if _is_number(x) and all(map(_is_number, others)) else x
    if x is None:
        return x
    if isinstance(x, CONVERTED):
        return _shared(x, "the operand")
    if isinstance(x, Dim):
        return as_operand(x)
    if not isinstance(x, NUMBERS):
        if hasattr(type(x), "__op_priority__"):  # a value of a graph, in a rule that a user has written
            return x
        if is_foreign(x):
            return _shared(taken(x), "the operand")
        raise TypeError  # the public function names the argument, see `common.tensor.diagnose`
    return lift(to_array(x)) if all(map(_is_number, others)) else x


def _shared(data: Any, how: str, dtype: Any = None) -> Any:
    """A tensor of data whose memory the outside may write, if it is an array."""
    known = dtype is None and type(data) is np.ndarray and data.dtype in OWN_DTYPES and data.dtype.isnative
    array = data if known else to_array(data, dtype, copy=False)
    if array is data and mode.current_trace() is None:
        array = borrow(array, how)
    return lift(array)


def _is_number(x: Any) -> bool:
    """Whether `x` is a number, or in a trace stands for a number of the call that is not differentiated."""
    if isinstance(x, TensorBase):
        return getattr(getattr(x.payload, "spec", None), "weak", False) and not x.requires_grad
    return isinstance(x, NUMBERS)


def _as_tensor(x: Any, dtype: Any = None) -> Any:
    """A traced number in the dtype that `to_array` gives the number, no longer weak."""
    target = {"f": default_float(), "i": int64}.get(x.dtype.kind, x.dtype) if dtype is None else np.dtype(dtype)
    x = x if x.dtype == target else REGISTRY["to"](x, dtype=target, x_dtype=x.dtype)
    return REGISTRY["reshape"](x, new_shape=())


def operands(tensors: Any) -> list[Any]:
    """A sequence of operands."""
    if not isinstance(tensors, (tuple, list)):
        raise ArgumentError(f"expected a tuple or list of tensors, got {type(tensors).__name__} ({shown(tensors)})")
    return [operand(x) for x in tensors]


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A new tensor that copies `data`.

    Parameters
    ----------
    data : numbers, nested lists, an array or a tensor.
    dtype : by default that of an array, float32 for Python floats, int64 for Python ints.
    requires_grad : record operations on it.

    Raises
    ------
    DTypeError : a dtype without ops, or `requires_grad` for one that is not floating point.
    """
    if isinstance(data, Dim):
        data = wrap(as_operand(data))
    t = _as_tensor(data, dtype) if isinstance(data, TensorBase) and _is_number(data) else lift(to_array(data, dtype))
    return t.requires_grad_() if requires_grad else t


def as_tensor(data: Any, dtype: Any = None) -> Any:
    """`data` as a tensor; shares memory with an array or tensor that has the dtype already.

    Parameters
    ----------
    data : numbers, nested lists, an array or a tensor.
    dtype : by default as for `tensor`.

    Raises
    ------
    DTypeError : a dtype without ops.
    """
    if isinstance(data, TensorBase):
        return data if dtype is None else data.to(dtype)
    return tensor(data, dtype) if isinstance(data, Dim) else _shared(data, "as_tensor()", dtype)


def asarray(obj: Any, dtype: Any = None, *, copy: bool | None = None) -> Any:
    """`obj` as a tensor; shares memory with an array or tensor that has the dtype already, unless `copy`.

    Parameters
    ----------
    obj : numbers, nested lists, an array, a tensor, or a capsule of DLPack; or the bytes of elements: another object
        with Python's buffer protocol, such as a bytearray.
    dtype : by default as for `tensor`; of bytes float32.
    copy : whether to copy; None where it has to be.

    Raises
    ------
    DTypeError : a dtype without ops.
    ArgumentError : `copy` is False, and the memory cannot be shared.

    Examples
    --------
    >>> import numpy as np
    >>> import dynamic as tw
    >>> x = np.zeros(2, np.float32)
    >>> shared, copied = tw.asarray(x), tw.asarray(x, copy=True)
    >>> x += 1
    >>> shared, copied
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if type(obj) not in CONVERTED and not isinstance(obj, (*NUMBERS, TensorBase, *CONVERTED)):
        if type(obj).__name__ == "PyCapsule":
            obj = from_dlpack(obj)
        elif is_buffer(obj):
            obj = frombuffer(obj, dtype=default_float() if dtype is None else dtype)
    if copy:
        return as_tensor(obj, dtype).clone() if isinstance(obj, TensorBase) else tensor(obj, dtype)
    if copy is not None:
        own = obj.dtype if isinstance(obj, (TensorBase, np.ndarray)) else None
        if own is None or (dtype is not None and np.dtype(dtype) != own):
            raise ArgumentError(
                f"asarray(): copy=False, but a {type(obj).__name__} cannot share its memory"
                f"{'' if dtype is None else f' as {dtype}'}; leave copy out"
            )
    return as_tensor(obj, dtype)


def from_numpy(array: np.ndarray) -> Any:
    """A tensor that shares an array's memory.

    Parameters
    ----------
    array : (...) ndarray in native byte order.

    Raises
    ------
    ArgumentError : not an array, or one of the other byte order.
    DTypeError : a dtype without ops.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise ArgumentError(
            "given numpy array has byte order different from the native byte order, so its memory cannot be shared; "
            "convert it first, for example with tensor(array)"
        )
    return _shared(array, "from_numpy()")


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """A tensor of one dimension that shares the memory of an object: bytes, a bytearray, an array.

    Parameters
    ----------
    buffer : with Python's buffer protocol. Memory that cannot be written to is copied.
    dtype : of the elements.
    count : how many; -1 for all.
    offset : bytes before the first.
    requires_grad : whether operations on it are recorded.

    Raises
    ------
    ArgumentError : no such object, or not as much memory.
    DTypeError : a dtype without ops.
    """
    try:
        array = np.frombuffer(buffer, known_dtype(dtype), count, offset)
    except (ValueError, TypeError, AttributeError) as error:
        raise ArgumentError(f"frombuffer(): {error}") from error
    made = _shared(array if array.flags.writeable else array.copy(), "frombuffer()")
    return made.requires_grad_() if requires_grad else made


def is_buffer(x: Any) -> bool:
    """Whether an object lends its bytes."""
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


class _Capsule:
    """A capsule of DLPack as an object that gives it: numpy takes no bare one."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU


def to_dlpack(tensor: Any) -> Any:
    """The capsule of a tensor's memory, for libraries that do not take the tensor itself, in version 1.0.

    Parameters
    ----------
    tensor : (...) tensor that requires no grad.

    Raises
    ------
    ArgumentError : it is no tensor.
    GradientError : a tensor that requires grad.
    TraceError : a traced tensor, which has no memory yet.
    """
    if not hasattr(tensor, "__dlpack__"):
        raise ArgumentError(f"to_dlpack(): a tensor is needed, not {type(tensor).__name__}")
    return tensor.__dlpack__(max_version=(1, 0))  # without a version, what numpy makes of it cannot be written


def from_dlpack(ext_tensor: Any) -> Any:
    """A tensor that shares the memory of another library's, through the DLPack protocol.

    Parameters
    ----------
    ext_tensor : (...) an object with ``__dlpack__``, such as a torch.Tensor or a jax.Array, or a capsule that
        ``__dlpack__()`` gave and nobody has used, on the CPU.

    Raises
    ------
    ArgumentError : it has no ``__dlpack__``, is on another device, or its library refuses.
    DTypeError : a dtype without ops.
    GradientError : a tensor that requires grad.
    TraceError : a traced tensor, which has no memory yet.
    """
    if isinstance(ext_tensor, np.ndarray):
        return from_numpy(ext_tensor)
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise ArgumentError(f"expected an object with __dlpack__, got {type(ext_tensor).__name__}")
    try:
        array = np.from_dlpack(ext_tensor)
    except TwingradError:
        raise  # of a tensor of ours, which says what it needs
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # the last for a capsule that is used up
        raise ArgumentError(f"from_dlpack(): a {type(ext_tensor).__name__} cannot be shared: {error}") from error
    return _shared(array, "from_dlpack()")
