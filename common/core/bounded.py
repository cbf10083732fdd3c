"""Dicts of at most so many entries, of which the oldest go first, without a lock."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def put_within(entries: dict[K, V], key: K, value: V, most: int) -> V:
    """Put in an entry, and take out the oldest ones where there are `most`; return the value.

    Several threads may do so at once: another one can change the dict between the two steps that find its first key.

    Examples
    --------
    >>> entries = {"a": 1, "b": 2}
    >>> put_within(entries, "c", 3, most=2), entries
    (3, {'b': 2, 'c': 3})
    """
    while len(entries) >= most and key not in entries:
        with suppress(RuntimeError, StopIteration):
            entries.pop(next(iter(entries)), None)  # type: ignore[call-overload, unused-ignore]
    entries[key] = value
    return value
