"""Tensors from nothing but sizes: arrays outside a trace, traced values inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.allocation import LARGE, refuse_beyond_memory
from common.core.docstrings import sections_of
from common.core.dtypes import bool_, default_changed, default_float, int64
from common.core.errors import AllocationError, ArgumentError, ShapeError
from common.core.int_arguments import gathered, integer, lengths, number
from common.core.op import NativeCall, Op
from common.core.python_numbers import require_held
from common.core.sizes import Dim, meant
from common.core.spec import Spec, numel
from common.evaluate import kernels
from common.ops._define import kernel
from common.ops._samples import fixed, join, nothing
from common.tensor.arrays import dtype_or
from common.tensor.base import TensorBase


def _full_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    bits = copying.value_bits(attrs["value"], outs[0].dtype)
    return [NativeCall(copying.fill_source(outs[0].dtype), "fill", (numel(outs[0].shape), bits))]


def _arange_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    return [NativeCall(copying.arange_source(int64), "arange", (attrs["count"], attrs["start"], attrs["step"]))]


def _eye_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    return [NativeCall(copying.eye_source(outs[0].dtype), "eye", (attrs["rows"], attrs["columns"]))]


_OFTEN, _LIMIT, _CACHED = 3, 256, 4 << 20
_fills: dict[Any, Any] = {}
"""Per shape, number and dtype of arrays that stay in the cache how often one was made, or the builtin that makes it."""


def _filled_array(shape: Any, value: Any, dtype: Any) -> np.ndarray:
    key = shape, value.__class__, value or repr(value), dtype  # 0.0 and -0.0 are equal
    made_so = _fills.get(key)
    if made_so.__class__ is not int and made_so is not None:
        found: np.ndarray = made_so()
        return found
    filled = _by_numpy(shape, value, dtype)
    if filled.size >= kernels.MANY and filled.nbytes <= _CACHED:
        if len(_fills) >= _LIMIT:
            _fills.clear()
        count = _fills[key] = (made_so or 0) + 1
        if count == _OFTEN:
            from common.evaluate.native_results import in_a_row

            spec = Spec(filled.shape, filled.dtype)
            attrs = {"value": value}
            _fills[key] = in_a_row(_full_native((), (spec,), attrs), (), [spec]) or -(1 << 60)
    return filled


def _by_numpy(shape: Any, value: Any, dtype: Any) -> np.ndarray:
    if value.__class__ is int and value == 0:
        return np.zeros(shape, dtype)
    filled = np.empty(shape, dtype)
    if filled.nbytes >= LARGE:
        refuse_beyond_memory("full", filled.nbytes)
    if filled.size < kernels.MANY or not kernels.filled(filled, np.asarray(value, dtype)):
        filled.fill(value)
    return filled


full_ = kernel(
    "full", (), lambda *, shape, value, dtype: Spec(tuple(shape), np.dtype(dtype)), _full_native,
    _filled_array,
    samples=join(nothing(shape=(3, 4), value=1.5), nothing(shape=(), value=-0.0)),
    doc="A number everywhere.",
    attrs=("shape", "value", "dtype"), fill="value",
)  # fmt: skip

def _counted(start: int, step: int, count: int) -> np.ndarray:
    refuse_beyond_memory("arange", 8 * count)
    numbers = np.arange(count, dtype=np.int64)
    if step != 1:
        numbers *= step
    if start:
        numbers += start
    return numbers


arange_ = kernel(
    "arange", (), lambda *, start, step, count: Spec((count,), int64), _arange_native,
    _counted,
    samples=fixed({"start": 2, "step": 3, "count": 7}, {"start": 5, "step": -2, "count": 0}),
    doc="start + i step in int64, for i below count.", attrs=("start", "step", "count"),
)  # fmt: skip

def _identity(rows: int, columns: int, dtype: Any) -> np.ndarray:
    matrix = np.zeros((rows, columns), dtype)
    matrix.reshape(-1)[: rows * columns if rows <= columns else columns * columns : columns + 1] = 1
    return matrix


eye_ = kernel(
    "eye", (), lambda *, rows, columns, dtype: Spec((rows, columns), np.dtype(dtype)), _eye_native,
    _identity, samples=nothing(rows=3, columns=5),
    doc="The identity matrix.",
    attrs=("rows", "columns", "dtype"),
)  # fmt: skip


def made(op: Op, **attrs: Any) -> Any:
    """The result of an op without operands: an array outside a trace, a traced tensor inside."""
    trace = mode.current_trace()
    return op.oracle(**attrs) if trace is None else trace.wrap(trace.record(op, (), attrs))


def known_sizes(size: tuple[Any, ...], named: Any = None) -> tuple[Any, ...]:
    """Sizes given one by one, as one tuple or by name; refuses negative ones.

    Raises
    ------
    ShapeError : a negative size.
    ArgumentError : something that is not a size.
    """
    if named is not None:
        size = gathered(size, named, "creation", "size")
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for n in size:
        if type(n) is not int:
            size = tuple([n if type(n) is int else meant(integer(n, "size", "size")) for n in size])
            break
    return lengths(size, "size")


def zeros(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """Zeros of one tuple of sizes or several ints, dtype float32 by default.

    Parameters
    ----------
    sizes, size : sizes, or one tuple of them.
    dtype : float32 by default.

    Raises
    ------
    ShapeError, ArgumentError : a negative size, or something that is not a size.
    DTypeError : a dtype without ops.
    """
    return made(full_, shape=known_sizes(sizes, size), value=0, dtype=dtype_or(dtype, default_float()))


@sections_of(zeros)
def ones(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """Ones of one tuple of sizes or several ints, dtype float32 by default."""
    return made(full_, shape=known_sizes(sizes, size), value=1, dtype=dtype_or(dtype, default_float()))


def full(size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A number everywhere; the dtype follows the number: bool, int64 or float32.

    Parameters
    ----------
    size : a tuple of sizes, or one.
    fill_value : bool, int or float, or a tensor of one element without dimensions.
    dtype : by default as the number.

    Raises
    ------
    ArgumentError : `fill_value` is not a number, or not one that the dtype can hold.
    """
    plain = fill_value.__class__ in _NUMBERS and isinstance(size, tuple) and mode.current_trace() is None
    if not plain or not all(n.__class__ is int for n in size):
        return _full(size, fill_value, dtype)
    key = size, fill_value.__class__, fill_value or repr(fill_value), dtype
    try:
        known = _fulls.get(key)
    except TypeError:  # a dtype that has no hash, which is none
        return _full(size, fill_value, dtype)
    if known is None:
        y = _full(size, fill_value, dtype)
        if len(_fulls) >= _LIMIT:
            _fulls.clear()
        _fulls[key] = y.shape, held(fill_value, y.dtype), y.dtype
        return y
    return _filled_array(*known)


_NUMBERS = frozenset((bool, int, float))
_fulls: dict[Any, Any] = {}
"""Shape, number and dtype of results of `full`, by its arguments."""
default_changed.append(_fulls.clear)


def _full(size: Any, fill_value: Any, dtype: Any) -> Any:
    if type(fill_value) not in (bool, int, float):
        if isinstance(fill_value, np.generic):
            fill_value = fill_value.item()
        if isinstance(fill_value, Dim):
            fill_value = fill_value.scope.number(fill_value)
        if getattr(fill_value, "ndim", None) == 0:
            return _filled(fill_value, size, dtype)
    if not isinstance(fill_value, (bool, int, float)):
        raise ArgumentError(f"full(): fill_value must be a number, got {type(fill_value).__name__}")
    by_value = bool_ if isinstance(fill_value, bool) else int64 if isinstance(fill_value, int) else default_float()
    shape = known_sizes(tuple(size) if isinstance(size, (tuple, list)) else (size,))
    wanted = dtype_or(dtype, by_value)
    return made(full_, shape=shape, value=held(fill_value, wanted), dtype=wanted)


@cache
def _largest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).max)


def held(value: bool | int | float, dtype: np.dtype, op: str = "full") -> Any:
    """A number as elements of a dtype hold it: floats are cut, negative ints wrap in unsigned ones.

    Raises
    ------
    ArgumentError : the dtype cannot hold it.
    """
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind == "f":
        if not ((isinstance(value, float) and not math.isfinite(value)) or abs(value) <= _largest(dtype)):
            raise ArgumentError(f"{op}(): value cannot be converted to type {dtype} without overflow: {value}")
        return float(value) if isinstance(value, float) else value
    require_held(op, dtype, value)
    return int(value) % (int(np.iinfo(dtype).max) + 1) if dtype.kind == "u" else int(value)


def _filled(value: Any, size: Any, dtype: Any) -> Any:
    """`full` of what a program computes: a 0-d tensor, or a number of a traced call."""
    from common.ops.math.cast import clone
    from common.ops.shape.view import expand_
    from common.tensor.create import _as_tensor, lift

    number = _as_tensor(lift(value), None if dtype is None else dtype_or(dtype, None))
    shape = known_sizes(tuple(size) if isinstance(size, (tuple, list)) else (size,))
    return clone(expand_(number, new_shape=shape))


@sections_of(zeros)
def empty(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """A tensor to be written to. Its elements are zeros: what was in memory before is no result of a program."""
    return zeros(*sizes, size=size, dtype=dtype)


def _endless(start: Any, end: Any, step: Any) -> ArgumentError:
    """The error of a step that does not lead from `start` to `end`."""
    wrong = "step must be nonzero" if step == 0 else "upper bound and lower bound inconsistent with step sign"
    return ArgumentError(f"arange(): {wrong}: step {step} does not lead from {start} to {end}")


def _counted_by(x: Any) -> Any:
    """A number of `arange` as Python's; a traced one is decided now."""
    one = isinstance(x, (np.generic, np.ndarray, TensorBase)) and len(x.shape) == 0
    return number(x.item() if one else x)


def arange(start: Any = None, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """start, start + step, ... below `end`; ``arange(end)`` starts at 0.

    Floats are computed in float64 as start + i step and rounded once. The dtype is int64, or float32 if any
    argument is a float.

    Parameters
    ----------
    start, end, step : ints or floats, or 0-d tensors of such.
    dtype : int64 or float32 by default; for one of integers the arguments are rounded towards zero first, for other
        ones than int64 after the elements were counted.

    Raises
    ------
    ArgumentError : `step` is 0, or its sign leads away from `end`; or there is no `end`.
    AllocationError : so many elements that their bytes cannot be counted.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.arange(0, 1, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    from common.ops.math.cast import to

    if end is None:
        start, end = None, start
    if end is None:
        raise ArgumentError("arange(): argument 'end' is missing")
    start = 0 if start is None else start
    plain = start.__class__ is end.__class__ is step.__class__ is int
    if plain and dtype is None and step > 0 and 0 <= end - start < 1 << 32:
        return made(arange_, start=start, step=step, count=-((start - end) // step))
    start, end, step = map(_counted_by, (start, end, step))
    for name, x in (("start", start), ("end", end), ("step", step)):
        if isinstance(x, float) and not math.isfinite(x):
            raise ArgumentError(
                f"arange(): argument '{name}' must be finite, got {x}; unsupported range: {start} -> {end}"
            )
    wanted = None if dtype is None else dtype_or(dtype, None)
    if wanted is not None and wanted.kind in "iu":  # as in PyTorch: the arguments are cut, not the elements
        cut = [int(x) if isinstance(x, float) else x for x in (start, end, step)]
        if wanted != int64 and any(isinstance(x, float) for x in (start, end, step)):  # but they are counted before
            if step == 0 or (end < start if step > 0 else end > start):
                raise _endless(start, end, step)
            count = math.ceil((float(end) - float(start)) / float(step))
            counted = made(arange_, start=0, step=1, count=count) * cut[2] + cut[0]
            return to(counted, dtype=wanted, x_dtype=int64)
        start, end, step = cut
    fractional = any(isinstance(x, float) for x in (start, end, step))
    if step == 0 or (end < start if step > 0 else end > start):
        raise _endless(start, end, step)
    wanted = wanted or dtype_or(None, default_float() if fractional else int64)
    count = math.ceil((float(end) - float(start)) / float(step)) if fractional else -((start - end) // step)
    if isinstance(count, int) and count >= 1 << 60:
        raise AllocationError(f"arange(): {count} elements have more bytes than 64 bits can count")
    if fractional and mode.current_trace() is None:
        y = _counted_floats(count, float(start), float(step), wanted)
        if y is not None:
            return y
    if fractional:
        counted = made(arange_, start=0, step=1, count=count)
        counted = to(counted, dtype=np.dtype(np.float64), x_dtype=int64) * float(step) + float(start)
    else:
        counted = made(arange_, start=start, step=step, count=count)
    return counted if counted.dtype == wanted else to(counted, dtype=wanted, x_dtype=counted.dtype)


def of_usual_size(x: float) -> bool:
    """Whether sums and products of a few such numbers are so, too: in numpy they neither warn nor raise errors."""
    return x == 0 or 1e-20 < abs(x) < 1e20


def _counted_floats(count: int, start: float, step: float, dtype: np.dtype) -> Any:
    """start + i step for i below `count`, as an array of a floating dtype; None if numbers might over- or underflow."""
    if dtype.kind != "f" or not step or not all(map(of_usual_size, (start, step, count * step))):
        return None
    if count < kernels.MANY:
        y = np.arange(count, dtype=np.float64)
        y *= step
        y += start
        return y.astype(dtype, copy=False)
    from common.kernels.arrays import copying

    call, y = copying.arange(dtype, count, start, step), np.empty(count, dtype)
    refuse_beyond_memory("arange", y.nbytes)
    kernels.compiled(call.source, call.name)(y, *call.ints)
    return y


def eye(n: Any, m: Any = None, dtype: Any = None) -> Any:
    """The identity matrix, (n, n) or (n, m), float32 by default.

    Parameters
    ----------
    n, m : rows and columns; as many by default.
    dtype : float32 by default.

    Raises
    ------
    ShapeError, ArgumentError : a negative size, or something that is not a size.
    """
    for name, size in (("n", n), ("m", m)):
        if type(size) is int and size < 0:
            raise ShapeError(f"eye(): {name} must be greater or equal to 0, got {size}")
    rows, columns = known_sizes((n, n if m is None else m))
    return made(eye_, rows=rows, columns=columns, dtype=dtype_or(dtype, default_float()))
