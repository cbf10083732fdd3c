"""A program bound to Python objects: the places of its arguments and results.

The native call of a bound program (`common.runtime.builtins.make_step`) takes only what differs from call to call. It
reads state out of tensors itself and leaves gradients in them, which costs a few nanoseconds per tensor instead of a
hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from common.runtime import cpython_abi

if TYPE_CHECKING:
    from common.runtime.argument_checks import ArgumentCheck

GIVEN, HELD, HELD_GRAD, MADE, LEFT, LEFT_FRESH = range(6)
"""Sources of arguments:

- GIVEN by the caller;
- HELD: the payload of a tensor, or an array that stays the same object;
- HELD_GRAD: the payload of a tensor's gradient;
- MADE: an output, allocated by the call and returned;
- LEFT: an output that becomes a tensor's gradient, in the memory of the old one if nothing else refers to that;
- LEFT_FRESH: the same, always in new memory.
"""


class ArgumentPlace(NamedTuple):
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


class Binding:
    """The objects of a program, and the words of the native table that name them, see `common.runtime.binding_text`.

    Parameters
    ----------
    places : one per argument of the plan.
    outputs : how many of the arguments, the last ones, are outputs.
    cleared : tensors whose gradient is None afterwards.
    template : a tensor without history, like those that gradients are to be.
    one : whether there is a single result; otherwise it is a tuple of them.
    tensors : whether results are tensors like the template, and arguments may be if they do not require grad; otherwise
        both are arrays.

    Attributes
    ----------
    results : how many arrays or tensors the call returns.
    left : the tensors whose gradients the call sets, then those whose gradients it clears.
    first : which argument is the first output.
    tables : per program the native table, as far as it is the same for all sizes.
    """

    def __init__(
        self,
        places: Sequence[ArgumentPlace],
        outputs: int,
        cleared: Sequence[Any],
        template: Any,
        one: bool,
        tensors: bool = False,
    ) -> None:
        self.tensors = tensors
        self.places, self.cleared, self.template, self.one = places, cleared, template, one
        self.results = sum(place.result >= 0 for place in places)
        self.left = [*(place.owner for place in places if place.source in (LEFT, LEFT_FRESH)), *cleared]
        self.first = len(places) - outputs
        self.tables: dict[Any, Any] = {}
        self._keep: list[Any] = []

    def records(self, arguments: Sequence[ArgumentCheck]) -> list[tuple[int, int, int, int]]:
        """Source, address of a slot, target and address of the dtype for each argument."""
        rows, left, grad = [], 0, slot(self.template, "_grad")
        for place, argument in zip(self.places, arguments, strict=True):
            cell, target = 0, place.result
            if place.source in (LEFT, LEFT_FRESH):
                target, left = left, left + 1
                cell = id(place.owner) + grad
            elif place.source == HELD_GRAD:
                cell = id(place.owner) + grad
            elif place.source == HELD:
                cell = payload_address(place.owner, self._keep)
            self._keep.append(argument.dtype)
            rows.append((place.source, cell, target, id(argument.dtype)))
        return rows

    def words(self, outputs: int) -> list[int]:
        """The words of the binding; `outputs` is where the record of the first output lies in the table."""
        template, grad = self.template, slot(self.template, "_grad")
        counts = [self.results, len(self.left), len(self.left) - len(self.cleared), int(self.one), id(template)]
        form = [type(template).__basicsize__ // 8, slot(template, "payload") // 8]
        weak = type(template).__weakrefoffset__ // 8
        wants = slot(template, "_requires_grad") // 8 if self.tensors else 0
        return [*counts, *form, self.first, outputs, weak, wants, *(id(x) + grad for x in self.left)]


def payload_address(owner: Any, keep: list[Any]) -> int:
    """Where the address of a tensor's payload stands, or that of an array; `keep` is given what must stay alive."""
    if not isinstance(owner, np.ndarray):
        return id(owner) + slot(owner, "payload")
    cell = np.array([id(owner)], np.int64)
    keep.append(cell)
    return int(cell.__array_interface__["data"][0])


def slot(owner: Any, name: str) -> int:
    """Where in an object a slot is, in bytes."""
    key = type(owner), name
    if key not in _slots:
        _slots[key] = cpython_abi.slot_offset(next(c for c in key[0].__mro__ if name in c.__dict__), name)
    return _slots[key]


_slots: dict[tuple[type, str], int] = {}
