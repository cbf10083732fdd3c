"""Weak collections that forget what is gone without running Python code.

The collector reports what a callback of Python's raises, and goes on. So a Ctrl-C that arrives while it works, and is
raised at the first line of Python code that follows, would be lost in the callbacks of `weakref.WeakSet` and of its
kind; the callbacks here are builtins. Objects are told apart by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")
V = TypeVar("V")


def forgetting(x: T, entries: dict[int, Any], key: int) -> ref[T]:
    """A weak reference to `x` with whose death `entries` loses `key`."""
    return ref(x, partial(entries.pop, key))  # the reference itself, which the call adds, is what is given for nothing


class Alive(Generic[T]):
    """A set of objects while they live."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, ref[T]] = {}

    def add(self, x: T) -> None:
        """Put an object in."""
        self._entries[id(x)] = forgetting(x, self._entries, id(x))

    def __contains__(self, x: object) -> bool:
        return id(x) in self._entries

    def __iter__(self) -> Iterator[T]:
        return iter([x for reference in list(self._entries.values()) if (x := reference()) is not None])

    def __len__(self) -> int:
        return len(self._entries)


class WhileKeysLive(Generic[T, V]):
    """Facts about objects, kept while they live."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[T], V]] = {}

    def get(self, key: T) -> V | None:
        """The fact about an object; None if there is none."""
        found = self._entries.get(id(key))
        return None if found is None else found[1]

    def put(self, key: T, value: V) -> V:
        """Note something of an object, and return it."""
        self._entries[id(key)] = forgetting(key, self._entries, id(key)), value
        return value

    def __len__(self) -> int:
        return len(self._entries)


class WhileValuesLive(Generic[V]):
    """Objects by a number, or another key, while they live.

    Attributes
    ----------
    clear : forget all.
    """

    __slots__ = ("_entries", "clear")

    def __init__(self) -> None:
        self._entries: dict[Any, ref[V]] = {}
        self.clear: Callable[[], None] = self._entries.clear

    def get(self, key: Any) -> V | None:
        """The object of a number; None if there is none."""
        found = self._entries.get(key)
        return None if found is None else found()

    def put(self, key: Any, value: V) -> V:
        """Give an object a number, and return the object."""
        self._entries[key] = forgetting(value, self._entries, key)
        return value

    def items(self) -> list[tuple[Any, V]]:
        """Pairs of key and object, of those that live."""
        found = [(key, entry()) for key, entry in self._entries.copy().items()]
        return [(key, value) for key, value in found if value is not None]

    def __len__(self) -> int:
        return len(self._entries)


__all__ = ["Alive", "WhileKeysLive", "WhileValuesLive", "forgetting"]
