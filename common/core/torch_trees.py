"""Trees with the signatures of PyTorch's ``utils._pytree``, which many libraries use: None is a leaf there."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from common.core import pytrees
from common.core.pytrees import TreeDef
from common.core.tree import LEAF, MAPS, NODES, Structure

Function = Callable[..., Any]
Test = Callable[[Any], bool]
PyTree = Any


class PyTreeSpec(TreeDef):
    """The structure of a tree, level by level.

    Parameters
    ----------
    type : the class of the outermost node; `collections.namedtuple` for all named tuples, None for a leaf.
    context : what `SUPPORTED_NODES` tells about the node besides its children.
    children_specs : the structures of the children.
    """

    __slots__ = ()

    def __init__(self, type: Any, context: Any = None, children_specs: Iterable[PyTreeSpec] = ()) -> None:
        parts = tuple([child._structure for child in children_specs])
        if type is None:
            super().__init__(LEAF)
        elif type is namedtuple:
            super().__init__((context, parts))
        elif type in (tuple, list):
            super().__init__((type, parts))
        elif type is defaultdict:
            super().__init__((type, tuple(context[1]), context[0], parts))
        elif type in MAPS:
            super().__init__((type, tuple(context), parts))
        else:
            super().__init__((type, _Context(context) if type in _REGISTERED else context, parts))

    @property
    def type(self) -> Any:
        """The class of the outermost node; `collections.namedtuple` for all named tuples, None for a leaf."""
        if self.is_leaf():
            return None
        kind = self._structure[0]
        return kind if kind is tuple or not _is_named(kind) else namedtuple

    @property
    def context(self) -> Any:
        """What `SUPPORTED_NODES` tells about the node besides its children."""
        if self.is_leaf() or self.type in (tuple, list):
            return None
        kind, *data, _ = self._structure
        if self.type is namedtuple:
            return kind
        if kind in MAPS:
            return [data[1], list(data[0])] if kind is defaultdict else list(data[0])
        return data[0].told if kind in _REGISTERED else data[0]

    @property
    def children_specs(self) -> list[PyTreeSpec]:
        """The structures of the children."""
        return [] if self.is_leaf() else [_spec(part) for part in self._structure[-1]]

    def is_leaf(self) -> bool:
        """Whether it is that of a leaf."""
        return not isinstance(self._structure, tuple)


TreeSpec = PyTreeSpec


class LeafSpec(PyTreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)


def _spec(structure: Structure) -> PyTreeSpec:
    made = object.__new__(PyTreeSpec if isinstance(structure, tuple) else LeafSpec)
    TreeDef.__init__(made, structure)
    return made


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _get_node_type(tree: Any) -> Any:
    """The class of an object as `SUPPORTED_NODES` has it."""
    return namedtuple if _is_named(type(tree)) else type(tree)


class NodeDef(NamedTuple):
    """How objects of a class are taken apart, into ``(children, context)``, and made of the two."""

    type: Any
    flatten_fn: Function
    unflatten_fn: Function


class _SupportedNodes(Mapping[Any, NodeDef]):
    """The classes whose objects are nodes of trees."""

    def __getitem__(self, kind: Any) -> NodeDef:
        if kind not in tuple(self):
            raise KeyError(kind)

        def flatten_fn(tree: Any) -> tuple[list[Any], Any]:
            children, spec = tree_flatten(tree, lambda x: x is not tree)
            return children, spec.context

        def unflatten_fn(children: Iterable[Any], context: Any) -> Any:
            parts = list(children)
            return tree_unflatten(parts, PyTreeSpec(kind, context, [LeafSpec()] * len(parts)))

        return NodeDef(kind, flatten_fn, unflatten_fn)

    def __iter__(self) -> Iterator[Any]:
        return iter((tuple, list, namedtuple, *NODES))

    def __len__(self) -> int:
        return 3 + len(NODES)


SUPPORTED_NODES = _SupportedNodes()


def _is_leaf(test: Test | None) -> Test:
    return lambda x: x is None or (test is not None and test(x))


def tree_flatten(tree: Any, is_leaf: Test | None = None) -> tuple[list[Any], PyTreeSpec]:
    """The leaves of a tree, and its structure.

    Examples
    --------
    >>> leaves, spec = tree_flatten({"a": (1, None), "b": [2]})
    >>> leaves, tree_unflatten([3, 4, 5], spec)
    ([1, None, 2], {'a': (3, 4), 'b': [5]})
    """
    leaves, spec = pytrees.tree_flatten(tree, _is_leaf(is_leaf))
    return leaves, _spec(spec._structure)


def tree_unflatten(leaves: Iterable[Any], treespec: PyTreeSpec) -> Any:
    """A tree of leaves and a structure.

    Raises
    ------
    ArgumentError : there are more or fewer leaves than places.
    """
    return pytrees.tree_unflatten(treespec, leaves)


def tree_leaves(tree: Any, is_leaf: Test | None = None) -> list[Any]:
    """The leaves of a tree."""
    return pytrees.tree_leaves(tree, _is_leaf(is_leaf))


def tree_structure(tree: Any, is_leaf: Test | None = None) -> PyTreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


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


_REGISTERED: set[Any] = set()


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

    _REGISTERED.add(cls)
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
    "SUPPORTED_NODES", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "TreeSpec",
    "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_leaves",
    "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip
