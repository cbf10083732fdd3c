"""Plain data as keys: numbers, strings, dtypes, and tuples of them."""

from __future__ import annotations

from typing import Any

from common.core.aliases import ABSENT
from common.core.dtypes import SUPPORTED
from common.core.size_tuples import Size

_ATOMS: frozenset[Any] = frozenset((bool, int, str, type(None), type(ABSENT), *map(type, SUPPORTED)))
_TUPLES = (tuple, Size)


class NotPlainError(Exception):
    """Something is no plain data, or not equal to itself."""


def identity(x: Any) -> Any:
    """A hash key that only the same plain data has: equality does not tell 1 from 1.0 and True, nor 0.0 from -0.0.

    Raises
    ------
    NotPlainError : for all else: a traced size, a tensor, a list; and NaN.

    Examples
    --------
    >>> identity(1) == identity(True), identity((0.0, 1)) == identity((-0.0, 1))
    (False, False)
    """
    kind = type(x)
    if kind in _ATOMS:
        return kind, x
    if kind is float and x == x:
        return kind, x or repr(x)
    if kind in _TUPLES:
        return kind, *[identity(part) for part in x]
    raise NotPlainError
