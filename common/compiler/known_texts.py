"""Texts of definitions that this machine has made: a ready-made entry of the cache for each definition."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from typing import Any

from common.compiler import disk_cache as disk


class KnownTexts:
    """What `common.compiler.module_text` knows of definitions: plain values, by what each was written for.

    Parameters
    ----------
    key : callable
        ``key(text)`` is the key of an entry, see `common.compiler.compile.make_key`. Without one nothing is stored, nor
        where ready-made entries belong to a program, whose file would hold texts that nothing reads.
    """

    def __init__(self, key: Callable[[str], str] | None = None) -> None:
        self._key = key
        self._known: dict[str, dict[Any, Any]] = {}
        self._grown: set[str] = set()

    def of(self, definition: str) -> Mapping[Any, Any]:
        """What is known of a definition."""
        if definition not in self._known:
            self._known[definition] = self._read(definition)
        return self._known[definition]

    def add(self, definition: str, form: Any, text: Any) -> None:
        """Make more known of it."""
        self._known[definition][form] = text
        self._grown.add(definition)

    def store(self) -> None:
        """Store what has been added, with what others have stored meanwhile."""
        grown, self._grown = self._grown, set()
        if self._key is not None and disk.is_apart():
            for definition in grown:
                known = self._read(definition) | self._known[definition]
                disk.write(self._key(f"texts {definition}"), disk.Entry("texts", (), marshal.dumps(known)), True)

    def _read(self, definition: str) -> dict[Any, Any]:
        if self._key is None or not disk.is_apart():
            return {}
        entry = disk.read(self._key(f"texts {definition}"), ready_made=True)
        known: dict[Any, Any] = {} if entry is None else marshal.loads(entry.code)
        return known
