"""Trees with the signatures of PyTorch's ``utils._pytree``, which many libraries use: None is a leaf there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common.core import pytrees
from common.core.pytrees import TreeDef as TreeSpec

Function = Callable[..., Any]
Test = Callable[[Any], bool]


def _is_leaf(test: Test | None) -> Test:
    return lambda x: x is None or (test is not None and test(x))


def tree_flatten(tree: Any, is_leaf: Test | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and its structure.

    Examples
    --------
    >>> leaves, spec = tree_flatten({"a": (1, None), "b": [2]})
    >>> leaves, tree_unflatten([3, 4, 5], spec)
    ([1, None, 2], {'a': (3, 4), 'b': [5]})
    """
    return pytrees.tree_flatten(tree, _is_leaf(is_leaf))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of leaves and a structure.

    Raises
    ------
    ArgumentError : there are more or fewer leaves than places.
    """
    return pytrees.tree_unflatten(treespec, leaves)


def tree_leaves(tree: Any, is_leaf: Test | None = None) -> list[Any]:
    """The leaves of a tree."""
    return pytrees.tree_leaves(tree, _is_leaf(is_leaf))


def tree_structure(tree: Any, is_leaf: Test | None = None) -> TreeSpec:
    """The structure of a tree."""
    return pytrees.tree_structure(tree, _is_leaf(is_leaf))


def tree_map(func: Function, tree: Any, *rests: Any, is_leaf: Test | None = None) -> Any:
    """A tree of what a function gives for the leaves of one, and for what stands there in further ones.

    Examples
    --------
    >>> tree_map(lambda x, y: (x or 0) + y, [1, None], [10, 20])
    [11, 20]
    """
    return pytrees.tree_map(func, tree, *rests, is_leaf=_is_leaf(is_leaf))


def tree_map_only(kinds: Any, func: Function, tree: Any, is_leaf: Test | None = None) -> Any:
    """A tree with what a function gives for the leaves of some classes, and the other leaves.

    Parameters
    ----------
    kinds : a class, or a tuple of classes.

    Examples
    --------
    >>> tree_map_only(int, lambda x: x + 1, (1, "a", None))
    (2, 'a', None)
    """
    return tree_map(lambda x: func(x) if isinstance(x, kinds) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Whether all leaves pass."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Whether a leaf passes."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


class _Context:
    """What a class tells about its objects, which PyTorch need not hash: a list of names, for example."""

    __slots__ = ("told",)

    def __init__(self, told: Any) -> None:
        self.told = told

    def __eq__(self, other: object) -> bool:
        return type(other) is _Context and bool(self.told == other.told)

    def __hash__(self) -> int:
        return hash(_Context)


def register_pytree_node(cls: type, flatten_fn: Function, unflatten_fn: Function, **details: Any) -> None:
    """Make objects of a class nodes of trees, wherever this project takes trees.

    Parameters
    ----------
    cls : the class; its subclasses are not meant.
    flatten_fn : of an object; returns ``(children, context)``, what differs from object to object and what is equal.
    unflatten_fn : of ``(children, context)``; returns an object.
    details : PyTorch's, for trees in files and paths of leaves, accepted: the structure counts.

    Raises
    ------
    ArgumentError : something that is no class, or objects of the class are nodes already.
    """

    def flatten(tree: Any) -> tuple[list[Any], _Context]:
        children, context = flatten_fn(tree)
        return list(children), _Context(context)

    pytrees.register_pytree_node(cls, flatten, lambda context, children: unflatten_fn(list(children), context.told))


@dataclass(frozen=True)
class MappingKey:
    """The place of a child in a mapping.

    Parameters
    ----------
    key : of the mapping.
    """

    key: Any


def _dict_flatten(d: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of a mapping and its keys; classes of libraries that are mappings register by these three."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Mapping[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """The same, each value with its place."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    """A dictionary of values and keys."""
    return dict(zip(context, values, strict=True))


__all__ = [
    "MappingKey", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_leaves",
    "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip
