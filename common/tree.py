"""Nested tuples, lists, dicts and None around leaves, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Structure = Any
"""A hashable description of the nesting: None, a leaf marker, or (type, parts...)."""

LEAF = "*"


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` in order, and its structure.

    Examples
    --------
    >>> flatten({"a": (1, 2), "b": None})
    ([1, 2], (<class 'dict'>, ('a', 'b'), ((<class 'tuple'>, ('*', '*')), None)))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return None
    kind = type(tree)
    if kind is tuple or kind is list or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return (kind, tuple(_flatten(x, leaves) for x in tree))
    if kind is dict:
        return (dict, tuple(tree), tuple(_flatten(x, leaves) for x in tree.values()))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure is None:
        return None
    if structure == LEAF:
        return next(leaves)
    kind, parts = structure[0], structure[-1]
    built = [_unflatten(part, leaves) for part in parts]
    if kind is dict:
        return dict(zip(structure[1], built, strict=True))
    return kind(*built) if hasattr(kind, "_fields") else kind(built)
