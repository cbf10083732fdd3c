"""Arguments that are one number for all dimensions, or one per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats one value `n` times in a tuple; several values become a tuple as they are.

    Examples
    --------
    >>> _ntuple(3)(2), _ntuple(3)([1, 2, 3])
    ((2, 2, 2), (1, 2, 3))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
