"""Trees of Python objects, with the signatures of `jax.tree_util`: own classes as nodes, and maps over leaves.

Tuples, named tuples, lists, dictionaries and None are nodes already; everything else is a leaf, until its class is
registered. Dictionaries keep the order of their keys, and are compared without it.

>>> import dynamic as tw
>>> @tw.tree_util.register_pytree_node_class
... class Interval:
...     def __init__(self, low, high):
...         self.low, self.high = low, high
...
...     def tree_flatten(self):
...         return (self.low, self.high), None
...
...     @classmethod
...     def tree_unflatten(cls, data, children):
...         return cls(*children)
>>> width = lambda i: i.high - i.low
>>> slopes = tw.grad(lambda i: width(i) ** 2)(Interval(tw.tensor(1.0), tw.tensor(4.0)))
>>> slopes.low, slopes.high
(tensor(-6.), tensor(6.))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from common.core.errors import ArgumentError
from common.core.int_arguments import shown
from common.core.tree import LEAF, NODES, Node, Structure, count_leaves, flatten, parts_of, register, text, unflatten

Class = TypeVar("Class", bound=type)
Function = Callable[..., Any]


class TreeDef:
    """The structure of a tree without its leaves; hashable, and equal for trees that are nested alike.

    Attributes
    ----------
    num_leaves : how many leaves such a tree has.
    """

    __slots__ = ("_structure",)

    def __init__(self, structure: Structure) -> None:
        self._structure = structure

    @property
    def num_leaves(self) -> int:
        """How many leaves such a tree has."""
        return count_leaves(self._structure)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves.

        Raises
        ------
        ArgumentError : there are more or fewer leaves than places.
        """
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ArgumentError(f"tree_unflatten: {self} has {self.num_leaves} leaves, {len(given)} are given")
        return unflatten(self._structure, given)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of a tree that stand where this structure has leaves.

        Raises
        ------
        ArgumentError : the tree is nested otherwise above them.
        """
        found: list[Any] = []
        _up_to(self._structure, tree, found)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeDef) and _sorted(self._structure) == _sorted(other._structure)

    def __hash__(self) -> int:
        return hash(_sorted(self._structure))

    def __repr__(self) -> str:
        return f"PyTreeDef({text(self._structure, iter(LEAF * self.num_leaves))})"


def _sorted(structure: Structure) -> Structure:
    """A structure whose dictionaries do not depend on the order of keys."""
    if not isinstance(structure, tuple):
        return structure
    kind, *data, parts = structure
    inner = tuple(map(_sorted, parts))
    if kind in NODES and NODES[kind] is None:
        return (kind, *data[1:], frozenset(zip(data[0], inner, strict=True)))
    return (kind, *data, inner)


def _up_to(structure: Structure, tree: Any, found: list[Any]) -> None:
    if structure == LEAF:
        found.append(tree)
        return
    parts = () if structure is None and tree is None else parts_of(tree, structure)
    if parts is None:
        raise ArgumentError(
            f"the trees are nested in different ways: expected {TreeDef(structure)}, got {shown(tree)} "
            f"({type(tree).__name__})"
        )
    for part, inner in zip(parts, () if structure is None else structure[-1], strict=True):
        _up_to(inner, part, found)


def register_pytree_node(nodetype: type, flatten_func: Function, unflatten_func: Function) -> None:
    """Make objects of a class nodes of trees, wherever this project takes trees.

    Parameters
    ----------
    nodetype : the class; its subclasses are not meant.
    flatten_func : of an object; returns ``(children, data)``: trees, and something hashable that compiled functions,
        loops and branches compare.
    unflatten_func : of ``(data, children)``; returns an object. It also meets children that stand for tensors in a
        trace, so it should not look at them.

    Raises
    ------
    ArgumentError : something that is no class, or objects of the class are nodes already.
    """
    register(nodetype, Node(flatten_func, unflatten_func))


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Function, unflatten_func: Function, flatten_func: Function | None = None
) -> None:
    """`register_pytree_node` for a function that returns ``((key, child), ...), data``; the keys are not used here.

    Parameters
    ----------
    flatten_func : if given, used in place of `flatten_with_keys`.
    nodetype, unflatten_func : see `register_pytree_node`.
    """

    def without_keys(tree: Any) -> tuple[list[Any], Hashable]:
        pairs, data = flatten_with_keys(tree)
        return [child for _, child in pairs], data

    register(nodetype, Node(flatten_func or without_keys, unflatten_func))


def register_pytree_node_class(cls: Class) -> Class:
    """A decorator: `register_pytree_node` by its methods ``tree_flatten()`` and ``tree_unflatten(data, children)``.

    Raises
    ------
    ArgumentError : the class lacks one of them.
    """
    for name in ("tree_flatten", "tree_unflatten"):
        if not callable(getattr(cls, name, None)):
            raise ArgumentError(f"register_pytree_node_class: {shown(cls)} has no method {name}")
    register(cls, Node(cls.tree_flatten, cls.tree_unflatten))  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make objects of a dataclass nodes of trees.

    Parameters
    ----------
    nodetype : the class.
    data_fields : names of the fields that are trees; by default all but those with ``metadata={"static": True}``.
    meta_fields : names of the fields that are hashable data; by default the others.
    drop_fields : names of fields that are left out, and have defaults.

    Returns
    -------
    class : so that it serves as a decorator.

    Raises
    ------
    ArgumentError : something that is no dataclass and no list of its fields, or the lists do not name each field once.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> import dynamic as tw
    >>> @tw.tree_util.register_dataclass
    ... @dataclass
    ... class Line:
    ...     slope: float
    ...     name: str = field(metadata={"static": True})
    >>> tw.tree_util.tree_map(lambda x: x * 2, Line(3.0, "first"))
    Line(slope=6.0, name='first')
    """
    if not isinstance(nodetype, type):
        raise ArgumentError(f"a class is registered, not {shown(nodetype)}")
    if (data_fields is None) is not (meta_fields is None):
        raise ArgumentError("register_dataclass: data_fields and meta_fields are given together, or both left out")
    known = fields(nodetype) if is_dataclass(nodetype) else ()
    if data_fields is None or meta_fields is None:
        if not is_dataclass(nodetype):
            raise ArgumentError(
                f"register_dataclass: data_fields and meta_fields are required: {nodetype.__name__} is no dataclass"
            )
        static = [f.name for f in known if f.init and f.metadata.get("static", False)]
        data_fields, meta_fields = [f.name for f in known if f.init and f.name not in static], static
    data, meta = tuple(data_fields), tuple(meta_fields)
    named, wanted = sorted([*data, *meta, *drop_fields]), sorted(f.name for f in known if f.init)
    if is_dataclass(nodetype) and named != wanted:
        raise ArgumentError(
            f"register_dataclass: data_fields and meta_fields must name each field of {nodetype.__name__} once: they "
            f"name {named}, the fields are {wanted}"
        )

    def children(tree: Any) -> tuple[list[Any], Hashable]:
        return [getattr(tree, name) for name in data], tuple([getattr(tree, name) for name in meta])

    def made(values: Any, parts: Any) -> Any:
        return nodetype(**dict(zip(meta, values, strict=True)), **dict(zip(data, parts, strict=True)))

    register(nodetype, Node(children, made))
    return nodetype


def _split(tree: Any, is_leaf: Function | None) -> tuple[list[Any], Structure]:
    """Leaves and structure, where objects for which `is_leaf` holds are leaves too."""
    if is_leaf is None:
        return flatten(tree)
    if is_leaf(tree):
        return [tree], LEAF
    _, structure = flatten(tree)
    if not isinstance(structure, tuple):
        return flatten(tree)
    split = [_split(part, is_leaf) for part in parts_of(tree, structure) or ()]
    return [x for leaves, _ in split for x in leaves], (*structure[:-1], tuple([inner for _, inner in split]))


def tree_flatten(tree: Any, is_leaf: Function | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree in order, and its structure.

    Parameters
    ----------
    tree : any tree.
    is_leaf : of an object; true where it is to be a leaf though it could be taken apart.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tree_util.tree_flatten({"a": (1, 2), "b": None})
    ([1, 2], PyTreeDef({'a': (*, *), 'b': None}))
    """
    leaves, structure = _split(tree, is_leaf)
    return leaves, TreeDef(structure)


def tree_unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The inverse of `tree_flatten`.

    Raises
    ------
    ArgumentError : something that is no structure, or the wrong number of leaves.
    """
    if not isinstance(treedef, TreeDef):
        raise ArgumentError(f"tree_unflatten: treedef must be what tree_structure returns, not {shown(treedef)}")
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Function | None = None) -> list[Any]:
    """The leaves of a tree in order."""
    return _split(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Function | None = None) -> TreeDef:
    """The structure of a tree."""
    return TreeDef(_split(tree, is_leaf)[1])


def tree_map(f: Function, tree: Any, *rest: Any, is_leaf: Function | None = None) -> Any:
    """The tree with ``f(leaf, ...)`` in place of each leaf, where `rest` give the further arguments.

    Parameters
    ----------
    f : of a leaf, and of what each tree of `rest` has in its place.
    tree : any tree.
    rest : trees that are nested as `tree`, or deeper.
    is_leaf : see `tree_flatten`.

    Raises
    ------
    ArgumentError : a tree of `rest` is nested otherwise.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tree_util.tree_map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": [2.0]}, {"b": [4.0], "w": 2.0})
    {'w': 0.0, 'b': [0.0]}
    """
    leaves, structure = _split(tree, is_leaf)
    columns = [TreeDef(structure).flatten_up_to(other) for other in rest]
    return unflatten(structure, [f(*row) for row in zip(leaves, *columns, strict=True)])


def tree_reduce(function: Function, tree: Any, *initializer: Any, is_leaf: Function | None = None) -> Any:
    """`functools.reduce` over the leaves of a tree, from `initializer` if that is given.

    Raises
    ------
    ArgumentError : a tree without leaves and no `initializer`, or more than one.
    """
    leaves = tree_leaves(tree, is_leaf)
    if len(initializer) > 1 or not (leaves or initializer):
        raise ArgumentError("tree_reduce: a tree without leaves needs one initializer")
    return functools.reduce(function, leaves, *initializer)


def tree_all(tree: Any, *, is_leaf: Function | None = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


__all__ = [
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys", "tree_all",
    "tree_flatten", "tree_leaves", "tree_map", "tree_reduce", "tree_structure", "tree_unflatten",
]  # fmt: skip
