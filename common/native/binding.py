"""A program bound to Python objects: where it finds its arguments, and where it leaves what it makes.

The native call of a bound program (`common.native.calls.make_step`) takes only what differs from call to call. It reads
state out of tensors itself and leaves gradients in them, which costs a few nanoseconds per tensor instead of a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.native import abi

if TYPE_CHECKING:
    from common.native.plan import Argument

GIVEN, HELD, HELD_GRAD, MADE, LEFT, LEFT_FRESH = range(6)
"""Sources of arguments:

- GIVEN by the caller;
- HELD: the payload of a tensor, or an array that stays the same object;
- HELD_GRAD: the payload of a tensor's gradient;
- MADE: an output, allocated by the call and returned;
- LEFT: an output that becomes a tensor's gradient, in the memory of the old one if nothing else refers to that;
- LEFT_FRESH: the same, always in new memory.
"""


class Place(NamedTuple):
    """Where an argument comes from, or goes to.

    Attributes
    ----------
    source : one of the sources.
    owner : the tensor or array.
    result : the position of the argument's array among the results; -1 if it is none of them.
    """

    source: int
    owner: Any = None
    result: int = -1


class Binding(NamedTuple):
    """The objects of a program.

    Attributes
    ----------
    places : one per argument of the plan.
    outputs : how many of the arguments, the last ones, are outputs.
    cleared : tensors whose gradient is None afterwards.
    template : a tensor without history, like those that gradients are to be.
    one : whether the result is a single array; otherwise it is a tuple of them.
    """

    places: Sequence[Place]
    outputs: int
    cleared: Sequence[Any]
    template: Any
    one: bool

    @property
    def results(self) -> int:
        """How many arrays the call returns."""
        return sum(place.result >= 0 for place in self.places)

    @property
    def left(self) -> list[Any]:
        """The tensors whose gradients the call sets, then those whose gradients it clears."""
        return [place.owner for place in self.places if place.source in (LEFT, LEFT_FRESH)] + list(self.cleared)


class Table:
    """The words of a binding, see `common.native.step_ir`."""

    def __init__(self, binding: Binding) -> None:
        self.binding, self.keep = binding, [*binding.places, *binding.cleared, binding.template]
        self._payload, self._grad = (_slot(binding.template, name) for name in ("payload", "_grad"))
        self.first = len(binding.places) - binding.outputs

    def records(self, arguments: Sequence[Argument]) -> list[tuple[int, int, int, int]]:
        """Source, address of a slot, target and address of the dtype for each argument."""
        rows, left = [], 0
        for place, argument in zip(self.binding.places, arguments, strict=True):
            cell, target = 0, place.result
            if place.source in (LEFT, LEFT_FRESH):
                target, left = left, left + 1
                cell = id(place.owner) + self._grad
            elif place.source == HELD_GRAD:
                cell = id(place.owner) + self._grad
            elif place.source == HELD:
                cell = payload_address(place.owner, self.keep)
            self.keep.append(argument.dtype)
            rows.append((place.source, cell, target, id(argument.dtype)))
        return rows

    def words(self, outputs: int) -> list[int]:
        """The words of the binding; `outputs` is where the record of the first output lies in the table."""
        binding = self.binding
        cells = [id(x) + self._grad for x in binding.left]
        size = type(binding.template).__basicsize__ // 8
        counts = [binding.results, len(cells), len(cells) - len(binding.cleared), int(binding.one)]
        return [*counts, id(binding.template), size, self._payload // 8, self.first, outputs, *cells]


def payload_address(owner: Any, keep: list[Any]) -> int:
    """Where the address of a tensor's payload stands, or that of an array; `keep` is given what must stay alive."""
    if not isinstance(owner, np.ndarray):
        return id(owner) + _slot(owner, "payload")
    cell = np.array([id(owner)], np.int64)
    keep.append(cell)
    return int(cell.__array_interface__["data"][0])


def _slot(owner: Any, name: str) -> int:
    kind = next(c for c in type(owner).__mro__ if name in c.__dict__)
    return abi.slot_offset(kind, name)
