"""The engine's functions outside a trace: each runs at once on arrays, and returns arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from common import mode
from common.eager.recipes import run
from common.errors import ArgumentError
from common.op import Op
from common.tensor.base import TensorBase
from common.tree import flatten, unflatten


class ArrayTensor(TensorBase):
    """An array while one function runs on it; never leaves that function.

    Parameters
    ----------
    data : (...) array, used as it is.
    """

    __slots__ = ()

    def __init__(self, data: np.ndarray) -> None:
        self.payload = data
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = None


class AtOnce:
    """What takes the place of a trace: operands are arrays, and ops run instead of being recorded."""

    inlines = False
    decide = None
    replays = False

    def __init__(self) -> None:
        self.families: dict[int, Any] = {}
        self.hooks = 0
        self.scope: list[str] = []

    def wrap(self, payload: Any) -> ArrayTensor:
        """A tensor over an array."""
        return ArrayTensor(np.asarray(payload))

    def payload(self, x: Any) -> Any:
        """The array behind a tensor; arrays and numbers as they are."""
        return x.payload if isinstance(x, TensorBase) else x

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Run an op on arrays."""
        return run(op, operands, attrs)

    def repeated(self, name: Any, given: Any, make: Callable[[], Any]) -> Any:
        """What ``make()`` returns: nothing is recorded."""
        return make()

    def note_views(self, *how: Any) -> None:
        """Nothing: what runs at once writes to no views."""

    def note_module(self, module: Any) -> None:
        """Nothing: no program relies on what the module is like."""

    def note_alias(self, *tensors: Any) -> None:
        """Nothing, for the same reason."""

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """Write to state, such as that of a random generator."""
        np.copyto(x.payload, self.payload(new))

    def refuse_value(self, x: TensorBase) -> None:
        """Nothing: arrays have elements."""

    def refuse_size(self, function: str, instead: str) -> None:
        """Nothing: sizes follow from the elements."""

    def refuse_data(self, x: TensorBase) -> None:
        """Nothing: what runs at once may replace arrays."""


def run_at_once(call: Callable[[], Any]) -> Any:
    """Run a call of one function whose operands are arrays; what it returns comes back as arrays.

    Raises
    ------
    ArgumentError : it made a tensor that requires grad, which an array cannot.
    """
    with mode.activate_trace(AtOnce()), mode.set_grad_enabled(False):
        leaves, structure = flatten(call())
    if any(isinstance(x, ArrayTensor) and x.requires_grad for x in leaves):
        raise ArgumentError(
            "outside a traced function this engine returns arrays, which cannot require grad: use grad or "
            "value_and_grad, an nn.Parameter, or a static.function"
        )
    return unflatten(structure, [x.payload if isinstance(x, TensorBase) else x for x in leaves])
