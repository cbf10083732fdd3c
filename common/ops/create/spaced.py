"""Numbers at equal distances, and the indices of triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core import mode
from common.core.allocation import refuse_beyond_memory
from common.core.dtypes import default_float, float64, int64
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.sizes import Dim
from common.evaluate.kernels import compiled
from common.kernels.arrays import copying, triangles
from common.ops.create.creation import arange, arange_, known_sizes, made, of_usual_size
from common.ops.math.arithmetic import pow
from common.ops.math.cast import to
from common.ops.math.compare import where
from common.ops.math.rounding import trunc
from common.tensor.arrays import dtype_or


def _number(x: Any, op: str, name: str) -> Any:
    """A number in float64: of Python, or what stands for one in a trace."""
    from common.tensor.base import TensorBase
    from common.tensor.create import _as_tensor

    if isinstance(x, Dim):
        x = x.scope.number(x)
    if isinstance(x, TensorBase) and x.ndim == 0:
        return _as_tensor(x, float64)
    if not isinstance(x, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"{op}(): argument '{name}' must be a number, not {type(x).__name__}")
    return float(x)


def _spaced(start: Any, end: Any, steps: Any, op: str, dtype: np.dtype) -> Any:
    """`steps` numbers from `start` to `end` in float64, each half counted from its own end; ints between whole ends."""
    from common.tensor.create import lift

    count = integer(steps, op, "steps")
    if count < 0:
        raise ShapeError(f"{op}(): number of steps must be non-negative, got {count}")
    first, last = _number(start, op, "start"), _number(end, op, "end")
    if dtype.kind in "iu":
        first, last = (float(math.trunc(x)) if isinstance(x, float) and math.isfinite(x) else x if isinstance(x, float)
                       else trunc(x) for x in (first, last))  # fmt: skip
    i = lift(made(arange_, start=0, step=1, count=count))
    place = to(i, dtype=float64, x_dtype=int64)
    if count < 2:
        return place + first
    most = _number(count - 1, op, "steps")
    step = (last - first) / most
    return where(i < count // 2, place * step + first, last - (most - place) * step)


def _halves(start: Any, end: Any, steps: Any, dtype: np.dtype) -> Any:
    """`linspace` as an array without an op for each of its steps; None where arguments or numbers are unusual."""
    if not (start.__class__ in (int, float) and end.__class__ in (int, float) and steps.__class__ is int):
        return None
    if not (dtype.kind == "f" and steps > 1 and of_usual_size(start) and of_usual_size(end)):
        return None
    first, last, half = float(start), float(end), steps // 2
    step = (last - first) / float(steps - 1)
    if step == 0 or not of_usual_size(step):
        return None
    y, bits = np.empty(steps, dtype), [copying.value_bits(x, float64) for x in (first, last, step)]
    compiled(copying.halves_source(dtype), "halves")(y, steps, half, *bits)
    return y


def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> Any:
    """`steps` numbers from `start` to `end`, both included, at equal distances.

    Computed in float64 and rounded once: ``start + i d`` in the first half, ``end - (steps - 1 - i) d`` in the second,
    where ``d = (end - start) / (steps - 1)``.

    Parameters
    ----------
    start, end : numbers.
    steps : how many.
    dtype : float32 by default; for one of integers `start` and `end` are rounded towards zero first.

    Raises
    ------
    ShapeError : a negative number of steps.
    ArgumentError : something that is no number.
    DTypeError : a dtype without ops.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    wanted = dtype_or(dtype, default_float())
    if mode.current_trace() is None and (y := _halves(start, end, steps, wanted)) is not None:
        return y
    return to(_spaced(start, end, steps, "linspace", wanted), dtype=wanted, x_dtype=float64)


def logspace(start: Any, end: Any, steps: int, base: Any = 10.0, dtype: Any = None) -> Any:
    """Powers of `base` whose exponents are those of `linspace`.

    Computed in float64 and rounded once.

    Parameters
    ----------
    start, end : the first and the last exponent.
    steps : how many.
    base : a number.
    dtype : float32 by default; for one of integers `start` and `end` are rounded towards zero first.

    Raises
    ------
    ShapeError : a negative number of steps.
    ArgumentError : something that is no number.
    DTypeError : a dtype without ops.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])
    """
    wanted = dtype_or(dtype, default_float())
    return to(pow(base, _spaced(start, end, steps, "logspace", wanted)), dtype=wanted, x_dtype=float64)


def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Any:
    """Rows and columns of the elements that `tril` keeps of a (row, col) matrix; (2, n) int64.

    Parameters
    ----------
    row, col : sizes of the matrix.
    offset : the last diagonal that is kept.
    dtype : int64 by default.

    Raises
    ------
    ShapeError, ArgumentError : a negative size, or something that is no int.
    """
    return _indices(True, row, col, offset, "tril_indices", dtype)


def triu_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Any:
    """Rows and columns of the elements that `triu` keeps of a (row, col) matrix; (2, n) int64.

    Parameters
    ----------
    row, col : sizes of the matrix.
    offset : the first diagonal that is kept.
    dtype : int64 by default.

    Raises
    ------
    ShapeError, ArgumentError : a negative size, or something that is no int.
    """
    return _indices(False, row, col, offset, "triu_indices", dtype)


def _indices(lower: bool, row: Any, col: Any, offset: Any, op: str, dtype: Any) -> Any:
    from common.tensor.create import lift

    rows, columns = (int(n) for n in known_sizes((row, col)))
    diagonal = min(max(int(integer(offset, op, "offset")), -rows - 1), columns)
    within = _within(rows, columns, diagonal + lower)
    count = within if lower else rows * columns - within
    refuse_beyond_memory(op, 16 * count)
    found = np.empty((2, count), np.int64)
    if count:
        first, end = (max(0, -diagonal), rows) if lower else (0, min(rows, columns - diagonal))
        kernel = compiled(triangles.triangle_indices_source(lower), "triangle_indices")
        kernel(found, first, end, columns, diagonal, count)
    return lift(found.astype(dtype_or(dtype, int64), copy=False))


def _within(rows: int, columns: int, diagonal: int) -> int:
    """The sum over all rows i of i + diagonal, cut to 0 ... columns."""
    first = min(max(-diagonal, 0), rows)
    whole = max(first, min(rows, columns - diagonal))
    return (whole - first) * (first + whole - 1 + 2 * diagonal) // 2 + (rows - whole) * columns


def range(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """start, start + step, ... up to `end`, which is one of them if the steps meet it: the older way of `arange`.

    Parameters
    ----------
    start, end, step : numbers; ``range(end)`` starts at 0.
    dtype : float32 by default.

    Raises
    ------
    ArgumentError : `step` is 0, or its sign leads away from `end`; a number that is not finite.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    first, last = (0, start) if end is None else (start, end)
    numbers = [_number(x, "range", name) for x, name in ((first, "start"), (last, "end"), (step, "step"))]
    if not all(isinstance(x, float) and math.isfinite(x) for x in numbers):
        raise ArgumentError(f"range(): start, end and step must be finite numbers, got {first}, {last} and {step}")
    low, high, by = numbers
    if by == 0 or (high - low) / by < 0:
        raise ArgumentError(f"range(): upper bound and lower bound inconsistent with step sign: step {step} does not "
                            f"lead from {first} to {last}")  # fmt: skip
    count = math.floor((high - low) / by) + 1
    numbers_of = arange(low, low + (count - 0.5) * by, by, dtype=float64)
    return to(numbers_of, dtype=dtype_or(dtype, default_float()), x_dtype=float64)
