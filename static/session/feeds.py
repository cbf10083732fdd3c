"""Values that are fed for tensors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.tensor.base import TensorBase
from common.tensor.fitting import converted, misfit
from static.session.graph_tensor import GraphTensor


def feed(x: GraphTensor, value: Any) -> np.ndarray:
    """The array that is fed for a tensor.

    Raises
    ------
    ArgumentError : it is no array, number or list. DTypeError : it would lose what it is. ShapeError : another shape.
    """
    if isinstance(value, TensorBase):
        if isinstance(value, GraphTensor):
            raise ArgumentError(f"the value of a feed cannot be a tensor of a graph: {value!r} is given for {x!r}")
        value = value.payload
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"cannot feed {type(value).__name__} for {x!r}: {error}") from None
    if array.dtype != x.dtype:
        if array.dtype.kind not in "fiub" or not np.can_cast(array.dtype, x.dtype, "same_kind"):
            raise DTypeError(f"cannot feed {array.dtype} for {x!r}: convert it first")
        cast = converted(array, x.dtype)
        if cast is None:
            raise DTypeError(f"cannot feed {array.dtype} for {x!r}: numbers are out of its range, "
                             f"{misfit(array, x.dtype)}")  # fmt: skip
        array = cast
    shape = x.shape
    if len(shape) != array.ndim or any(map(operator.ne, *_fixed(shape, array.shape))):
        text = ", ".join("?" if not isinstance(n, int) else str(n) for n in shape)
        raise ShapeError(f"cannot feed an array of shape {array.shape} for {x!r}, which has shape ({text})")
    return array


def _fixed(shape: tuple[Any, ...], given: tuple[int, ...]) -> tuple[list[int], list[int]]:
    pairs = [(n, m) for n, m in zip(shape, given) if isinstance(n, int)]
    return [n for n, _ in pairs], [m for _, m in pairs]
