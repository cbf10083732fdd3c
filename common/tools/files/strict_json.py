"""JSON of files that may come from anybody: a name that stands twice in one object is refused, not decided."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError : it is no JSON, or an object has a name twice, of which every reader could believe another one.

    Examples
    --------
    >>> parsed('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    return json.loads(text, object_pairs_hook=_named_once)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Pairs as a dictionary.

    Raises
    ------
    ValueError : two of them have one name.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found
