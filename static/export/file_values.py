"""Values in files of programs: nesting, sizes and numbers, as JSON with one meaning."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.polynomials import Guard
from common.core.tree import LEAF
from static.graph import serialize

_KINDS: dict[str, Any] = {"tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def structure_to_json(structure: Any, what: str) -> Any:
    """A nesting as JSON.

    Raises
    ------
    ArgumentError : it has objects of a class of the user's, which a file cannot hold.
    """
    if structure is None or structure == LEAF:
        return structure
    kind, *keys, parts = structure
    if kind not in _NAMES:
        raise ArgumentError(
            f"{what} hold a {kind.__name__}, a class of which a file can hold no object: use a tuple, list or dict"
        )
    found: dict[str, Any] = {"kind": _NAMES[kind], "parts": [structure_to_json(x, what) for x in parts]}
    if keys:
        found["keys"] = [value_to_json(key, what) for key in keys[0]]
    return found


def structure_of_json(data: Any) -> Any:
    """The nesting that `structure_to_json` wrote."""
    if data is None or data == LEAF:
        return data
    kind, parts = _KINDS[data["kind"]], tuple(structure_of_json(x) for x in data["parts"])
    if kind in (tuple, list):
        return kind, parts
    keys = tuple(value_of_json(key) for key in data["keys"])
    if len(keys) != len(parts):
        raise ValueError("a dict has as many keys as parts")
    return kind, keys, parts


def value_to_json(x: Any, what: str) -> Any:
    """A value that is no tensor as JSON.

    Raises
    ------
    ArgumentError : it is no plain data.
    """
    if isinstance(x, (np.bool_, np.number)):
        x = x.item()
    try:
        return serialize.plain(x)
    except ArgumentError:
        raise ArgumentError(f"{what} hold {x!r}, of which a file can hold no object: pass arrays and numbers") from None


def value_of_json(data: Any) -> Any:
    """The value that `value_to_json` wrote."""
    return serialize.GraphReader().read(data)


def guard_to_json(guard: Guard) -> Any:
    """A guard as JSON."""
    return [guard.relation, serialize.listed(guard.left), serialize.listed(guard.right), guard.holds]


def guard_of_json(data: Any) -> Guard:
    """The guard that `guard_to_json` wrote."""
    relation, left, right, holds = data
    if relation not in ("==", "<") or type(holds) is not bool:
        raise ValueError(f"there is no relation {relation!r}")
    return Guard(relation, serialize.tupled(left), serialize.tupled(right), holds)
