"""Trees with the signatures of PyTorch's ``utils._pytree``, which many libraries use: None is a leaf there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


__all__ = [
    "TreeSpec", "tree_all", "tree_any", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure",
    "tree_unflatten",
]  # fmt: skip
