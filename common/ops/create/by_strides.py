"""Tensors to be written to whose elements lie in memory in an order of the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integers
from common.core.spec import numel
from common.ops.create.creation import known_sizes, zeros
from common.tensor.arrays import dtype_or
from common.tensor.create import lift


def empty_strided(size: Any, stride: Any, *, dtype: Any = None) -> Any:
    """A tensor to be written to, by sizes and strides. Its elements are zeros; in a trace they lie in C order.

    Parameters
    ----------
    size : a tuple of sizes.
    stride : steps in elements, of each dimension.
    dtype : float32 by default.

    Returns
    -------
    tensor : where elements lie in the same place it cannot be written.

    Raises
    ------
    ShapeError : a negative size or stride, or not as many strides as sizes.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    sizes, steps = known_sizes((), size), integers(stride, "empty_strided", "stride")
    if len(sizes) != len(steps):
        raise ShapeError(f"mismatch in length of strides and shape: {list(steps)} and {list(sizes)}")
    if any(s < 0 for s in steps):
        raise ShapeError(f"empty_strided(): Negative strides are not supported at the moment, got strides: {steps}")
    if mode.current_trace() is not None:
        return zeros(sizes, dtype=dtype)
    known, covered, apart = dtype_or(dtype, default_float()), 1, True
    for s, n in sorted((s, n) for n, s in zip(sizes, steps, strict=True) if n > 1):
        apart, covered = apart and s >= covered, covered + (n - 1) * s
    memory = zeros(covered if numel(sizes) else 0, dtype=known)
    places = tuple(s * known.itemsize for s in steps)
    return lift(np.lib.stride_tricks.as_strided(np.asarray(memory), sizes, places, writeable=apart))


def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None) -> Any:
    """A tensor to be written to whose dimensions lie in memory in another order. Its elements are zeros.

    Parameters
    ----------
    size : a tuple of sizes.
    physical_layout : the dimensions, from the outermost in memory to the innermost.
    dtype : float32 by default.

    Raises
    ------
    ShapeError : a negative size, or not as many dimensions as sizes.
    ArgumentError : something that is no int, or no order of all dimensions.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
    (4, 8, 1)
    """
    sizes, order = known_sizes((), size), integers(physical_layout, "empty_permuted", "physical_layout")
    if len(sizes) != len(order):
        raise ShapeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(sizes)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(range(len(sizes))):
        wrong = "Duplicate dim not allowed" if all(0 <= d < len(sizes) for d in order) else "Dimension out of range"
        raise ArgumentError(f"empty_permuted(): {wrong}: physical_layout is {order} for {len(sizes)} dimensions")
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d], step = step, step * (sizes[d] or 1)
    return empty_strided(sizes, strides, dtype=dtype)


__all__ = ["empty_permuted", "empty_strided"]
