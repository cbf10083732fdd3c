"""Elements as Python's numbers; refusals, or a trace's decisions, for traced tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import AllocationError, ArgumentError, NumberRangeError, ShapeError
from common.tensor.arrays import concrete
from common.tensor.base import TensorBase

#: Elements of one call of `tolist`: each is an object of 32 bytes.
MOST_NUMBERS = 1 << 27


def _decisions() -> Any:
    """The interpreter that decides about elements which a trace does not have; None if there is none."""
    trace = mode.current_trace()
    return None if trace is None else trace.decide


def item(self: TensorBase) -> Any:
    """The element; of a tensor that is traced for decisions, a traced number."""
    array = self.payload
    if mode.tracing or not isinstance(array, np.ndarray):
        if (decide := _decisions()) is not None:
            return decide.item(self)
        array = concrete(self)
    if array.size != 1:
        raise ShapeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    return array.item()


def number_of(self: TensorBase) -> Any:
    """The element as Python's own number."""
    if mode.tracing and (decide := _decisions()) is not None:
        return decide.number(self)
    return item(self)


def whole(self: TensorBase) -> int:
    """The element without what is behind the point."""
    if mode.tracing and (decide := _decisions()) is not None:
        answer: int = decide.whole(self)
        return answer
    element = item(self)
    try:
        return int(element)
    except OverflowError as error:
        raise NumberRangeError(f"{error}: the element is {element}") from error


def tolist(self: TensorBase) -> Any:
    """Elements as nested lists of numbers."""
    if mode.tracing and (decide := _decisions()) is not None:
        return decide.nested(self)
    array = concrete(self)
    if array.size > MOST_NUMBERS:
        raise AllocationError(f"tolist(): {array.size} elements would be as many Python numbers, of which there can be "
                              f"{MOST_NUMBERS}; use numpy(), or parts")  # fmt: skip
    return array.tolist()


def truth(self: TensorBase) -> bool:
    """Whether the element is not 0."""
    if mode.tracing and (decide := _decisions()) is not None:
        answer: bool = decide.truth(self)
        return answer
    if mode.tracing and (trace := mode.current_trace()) is not None:
        trace.refuse_value(self)
    array = concrete(self)
    if array.size != 1:
        raise ShapeError(
            f"Boolean value of Tensor with {array.size} values is ambiguous; reduce it to one, for example with .sum()"
        )
    return bool(array.item())


def index(self: TensorBase) -> int:
    """The element of an integer tensor, for Python's own use."""
    if self.dtype.kind not in "iub":
        raise ArgumentError("only integer tensors of a single element can be converted to an index")
    return int(number_of(self))
