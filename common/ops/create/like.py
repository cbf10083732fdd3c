"""Constants in the shape of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import NO_ATTRS
from common.core.docstrings import sections_of
from common.core.op import Op
from common.evaluate import specialise
from common.ops.create.creation import full
from common.ops.math.arithmetic import ones_like as ones_like_
from common.ops.math.arithmetic import zeros_like as zeros_like_
from common.ops.math.cast import to
from common.tensor.arrays import dtype_or
from common.tensor.base import TensorBase, wrap


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A number everywhere, in the shape of a tensor.

    Parameters
    ----------
    x : (...), whose shape is taken.
    fill_value : bool, int or float.
    dtype : by default that of `x`.

    Raises
    ------
    ArgumentError : `fill_value` is not a number.
    DTypeError : a dtype without ops.
    """
    from common.tensor.create import lift

    return lift(full(tuple(x.shape), fill_value, dtype_or(dtype, x.dtype)))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of a tensor.

    Parameters
    ----------
    x : (...), whose shape is taken.
    dtype : by default that of `x`.

    Raises
    ------
    DTypeError : a dtype without ops.
    """
    return _like(zeros_like_, x, dtype)


@sections_of(zeros_like)
def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of a tensor."""
    return _like(ones_like_, x, dtype)


@sections_of(zeros_like)
def empty_like(x: Any, dtype: Any = None) -> Any:
    """A tensor to be written to, in the shape of another; zeros, see `empty`."""
    return zeros_like(x, dtype)


def fill(x: Any, value: Any) -> Any:
    """A tensor like `x`, with one value everywhere.

    Parameters
    ----------
    x : (...)
    value : a number, or a 0-d tensor, to which a gradient goes.

    Raises
    ------
    ShapeError : the value has dimensions.
    DTypeError : a float that the integers of `x` cannot hold.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.fill(tw.zeros(2), 3)
    tensor([3., 3.])
    """
    from common.ops.index.written_values import number_like
    from common.ops.shape.slice_scatter import overwrite
    from common.ops.shape.view import expand

    return overwrite(x, expand(number_like(value, x, "fill"), x.shape))


def _like(op: Op, x: Any, dtype: Any) -> Any:
    if dtype is None and isinstance(x, TensorBase) and type(array := x.payload) is np.ndarray:
        if not (mode.tracing or mode.inference_seen):  # the commonest case, by itself
            if not array.flags.c_contiguous:
                array = np.empty(array.shape, array.dtype)  # of which only the form counts
            found = specialise.find(op, NO_ATTRS, array) or specialise.prepare(op, (array,), NO_ATTRS)
            return wrap(found.run(array))
    y = op(x.detach() if isinstance(x, TensorBase) else x)  # a constant has no gradient
    wanted = dtype_or(dtype, y.dtype)
    return y if wanted == y.dtype else to(y, dtype=wanted, x_dtype=y.dtype)


__all__ = ["empty_like", "fill", "full_like", "ones_like", "zeros_like"]
