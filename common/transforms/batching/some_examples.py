"""A branch that runs for all examples, and is taken by some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.core.op import REGISTRY
from common.transforms.batching.batch_operands import aligned
from common.transforms.batching.batched import Batched


class BranchOfSome:
    """The outside values of a branch, cut so that examples which do not take it have no part in derivatives.

    Their derivatives would be multiplied by zero, which is no zero where they are infinite: ``cond(x > 0, sqrt, ...)``
    at 0. So the branch reads ``where(taken, x, x.detach())``.

    Parameters
    ----------
    taken : per example whether it takes the branch.
    outside : context of what runs around the mapped function.
    """

    def __init__(self, taken: Batched, outside: Any) -> None:
        self.taken, self._outside = taken, outside
        self._made: dict[int, Batched] = {}
        self._read: dict[int, tuple[Batched, Batched]] = {}

    def note(self, values: Iterable[Batched]) -> None:
        """Note what the branch has made, which it reads as it is."""
        self._made.update((id(x), x) for x in values)

    def read(self, value: Batched) -> Batched:
        """A value as the branch reads it."""
        tensor = value.value
        if tensor.edge is None or id(value) in self._made:
            return value
        if id(tensor) not in self._read:
            with self._outside:
                if value.mapped:
                    taken = aligned(self.taken, tensor.ndim - 1, self.taken.value.shape[0])
                else:
                    taken = REGISTRY["any"](self.taken.value, dim=(0,), keepdim=False)
                own = Batched(REGISTRY["where"](taken, tensor, tensor.detach()), value.mapped, value.trace)
            self._read[id(tensor)] = own, value
            self.note([own])
        return self._read[id(tensor)][0]

    def origin(self, value: Batched) -> Batched:
        """The value outside that a value is, if it has been read only."""
        return next((was for own, was in self._read.values() if own is value), value)
