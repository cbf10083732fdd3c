"""Values to be written: converted to a dtype and broadcast to a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.operators import as_operand
from common.core.python_numbers import as_array, require_held
from common.core.shapes import broadcast_shapes
from common.core.sizes import Dim, same, same_shape
from common.ops.create.creation import full_
from common.ops.math.cast import to
from common.ops.shape.view import expand, reshape
from common.tensor.arrays import to_array
from common.tensor.base import NUMBERS, TensorBase, wrap
from common.tensor.create import lift, operand


def of_dtype(v: Any, dtype: Any) -> Any:
    """`v` converted where it has another dtype."""
    return v if v.dtype == dtype else to(v, dtype=np.dtype(dtype), x_dtype=v.dtype)


def without_history(x: Any) -> Any:
    """`x` as data of which nothing is differentiated."""
    return x.detach() if hasattr(x, "detach") else x


def as_value(value: Any, dtype: np.dtype) -> Any:
    """A value as a tensor of a dtype; a number as a constant of the program.

    Raises
    ------
    ArgumentError : it is neither a number nor a tensor, array or nested list.
    DTypeError : a numpy number of a dtype without ops.
    """
    if isinstance(value, Dim) or (hasattr(value, "spec") and not isinstance(value, TensorBase)):
        value = wrap(as_operand(value))  # a size of a trace, or the value that stands for it
    if isinstance(value, (*NUMBERS, np.generic)):
        trace = mode.current_trace()
        array = to_array(as_array(value) if isinstance(value, np.generic) else value, dtype)
        if trace is None:
            return lift(array)
        return trace.wrap(trace.record(full_, (), {"shape": (), "value": array.item(), "dtype": dtype}))
    if isinstance(value, TensorBase) and getattr(getattr(value.payload, "spec", None), "weak", False):
        return to(value, dtype=np.dtype(dtype), x_dtype=value.dtype)  # a traced number: rounded once
    if not isinstance(value, (TensorBase, np.ndarray, list, tuple)):
        raise ArgumentError(f"can't assign a {type(value).__name__} to a tensor of {dtype}")
    return of_dtype(operand(value), dtype)


def number_like(value: Any, x: Any, op: str) -> Any:
    """A number or 0-d tensor in the dtype of `x`; a float loses its fraction where `x` holds integers.

    Raises
    ------
    ShapeError : it has dimensions.
    ArgumentError : a number that integers of the dtype cannot hold, or nan.
    """
    if getattr(value, "ndim", 0) != 0:
        raise ShapeError(
            f"{op}() only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)"
        )
    if isinstance(value, float) and x.dtype.kind in "iu":
        require_held(op, x.dtype, value)
        value = int(value)
    return as_value(value, x.dtype)


def same_dtype(op: str, x: Any, source: Any) -> None:
    """Refuse a source of another dtype, as PyTorch does.

    Raises
    ------
    DTypeError : it has one.
    """
    if source.dtype != x.dtype:
        raise DTypeError(
            f"{op}() requires the source and destination dtypes match: Expected self.dtype to be equal to src.dtype, "
            f"got {x.dtype} for the destination and {source.dtype} for the source; convert with .to()"
        )


def fitted(v: Any, shape: tuple[Any, ...]) -> Any:
    """`v` without the leading dimensions of size 1 that `shape` does not have.

    Raises
    ------
    ShapeError : it does not broadcast to `shape`.
    """
    extra = v.ndim - len(shape)
    if extra > 0 and all(isinstance(n, int) and n == 1 for n in v.shape[:extra]):
        v = reshape(v, tuple(v.shape[extra:]))
    lead = len(shape) - v.ndim
    pairs = zip(v.shape, shape[max(lead, 0) :])
    if lead < 0 or any(not (isinstance(m, int) and m == 1) and not same(m, n) and m != n for m, n in pairs):
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(v.shape)} cannot be broadcast to indexing result of shape "
            f"{list(shape)}"
        )
    return v


def at_indices(shape: tuple[Any, ...], indices: Sequence[Any], dim: int, v: Any) -> Any:
    """`v` as `index_set` takes it: 0-d, or of the shape that indices from `dim` on select of `shape`.

    Raises
    ------
    ShapeError : it does not broadcast to that shape.
    """
    b = broadcast_shapes(*(i.shape for i in indices))
    selected = (*shape[:dim], *b, *shape[dim + len(indices) :])
    if same_shape(v.shape, selected):
        return v
    v = fitted(v, selected)
    if all(isinstance(n, int) and n == 1 for n in v.shape):
        return reshape(v, ())
    return expand(v, selected)
