"""The numbers of reductions, with which losses of users call functions that take them."""

from __future__ import annotations

from common.core.aliases import older_reduction
from common.core.errors import ArgumentError

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum".

    Raises
    ------
    ArgumentError : another name.

    Examples
    --------
    >>> get_enum("mean")
    1
    """
    if reduction not in _NUMBERS:
        raise ArgumentError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The name of the reduction that two older arguments mean."""
    return older_reduction(size_average, reduce)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that two older arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce))
