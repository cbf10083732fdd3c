"""Values that stand for one example of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import EscapedTracerError
from common.core.op import REGISTRY, Op
from common.core.operators import install
from common.core.spec import Spec, Specified
from common.tensor.base import TensorBase, spec_of

#: Numbers of values, in the order in which they are made.
number = count().__next__


class Batched(Specified):
    """One example of a batch, as an operand of ops.

    Attributes
    ----------
    value : tensor of whatever runs outside of `vmap`: all examples along dimension 0, or what they share.
    mapped : whether it has that dimension.
    spec : of one example.
    trace : the call of `vmap` to which it belongs.
    number : of the value: those that a loop's body makes have higher ones than what it captures.
    """

    __slots__ = ("value", "mapped", "spec", "trace", "number")

    def __init__(self, value: Any, mapped: bool, trace: Any) -> None:
        self.value, self.mapped, self.trace, self.number = value, mapped, trace, number()
        inner = value.payload if mapped else None
        self.spec = spec_of(value) if inner is None else Spec(inner.shape[1:], inner.dtype)

    @property
    def shared(self) -> np.ndarray | None:
        """The array, where all examples share it and it is known."""
        array = None if self.mapped else self.value.payload
        return getattr(array, "shared", array if isinstance(array, np.ndarray) else None)

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        trace = mode.current_trace()
        if trace is None:
            raise escaped()
        return trace.record(op, operands, attrs)


class BatchedTensor(TensorBase):
    """A tensor inside a mapped function: it has the shape of one example.

    Attributes
    ----------
    trace : the call of `vmap` that made it.
    """

    __slots__ = ("trace",)
    __op_priority__ = 3

    def __init__(self, payload: Batched) -> None:
        self.payload, self.trace = payload, payload.trace
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = None

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made it: inside, nor outside what it stands for."""
        return self.grad_fn is None and (not self._requires_grad or self.payload.value.is_leaf)

    def describe_escape(self) -> EscapedTracerError:
        """The error for such a tensor after the call."""
        return escaped()


def escaped() -> EscapedTracerError:
    """The error for what is used after the call of `vmap` in which it was made."""
    return EscapedTracerError(
        "vmap: a tensor from inside the mapped function is used after the call: your tensor may have escaped from "
        "inside a function being vmapped. It stands for one example of a batch: return it from the function instead of "
        "storing it in a global, an attribute or a list"
    )


install(Batched, REGISTRY, comparisons=False)
