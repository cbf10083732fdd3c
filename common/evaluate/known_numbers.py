"""Rules for numbers that come again: an exponent, a threshold, a slope are part of the kernel's text.

A number that is another one in every call, such as a learning rate that decays, stays an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Backward = Callable[..., tuple[Any, ...]]

_OFTEN, _KERNELS, _COUNTED = 3, 16, 64
"""Calls with a number before lines are written for it, most numbers with lines of their own, most that are counted."""


def by_values(
    write: Callable[[Sequence[Any]], Backward | None], places: Sequence[int], otherwise: Backward
) -> Backward:
    """A gradient that has lines of its own for the numbers that it meets often.

    Parameters
    ----------
    write : lines for values of the numbers, or None.
    places : of the numbers among what is saved.
    otherwise : for all others.
    """
    known: dict[Any, Backward] = {}
    calls: dict[Any, int] = {}

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        values = tuple([saved[i] for i in places])
        key = values if all(values) else repr(values)  # 0.0 and -0.0 are equal
        lines = known.get(key)
        if lines is None:
            lines = otherwise
            if len(known) < _KERNELS:
                calls[key] = calls.get(key, 0) + 1
                if calls[key] == _OFTEN:
                    lines = known[key] = write(values) or otherwise
                elif len(calls) > _COUNTED:
                    calls.clear()
        return lines(saved, attrs, g, needs)

    return backward
