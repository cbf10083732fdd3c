"""Nested tuples, lists, dictionaries, None and registered classes around leaves, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from common.core.errors import ArgumentError
from common.core.int_arguments import is_nested, shown
from common.core.size_tuples import Size

Structure = Any
"""A hashable description of the nesting: None, a leaf marker, or (type, ..., parts)."""

LEAF = "*"
MAPS = frozenset([dict, OrderedDict, defaultdict])
"""Dictionaries: ``(type, keys, parts)``, with what makes missing values before the parts of a defaultdict."""


class Node(NamedTuple):
    """How objects of a registered class are taken apart and made: ``(type, data, parts)``.

    Attributes
    ----------
    children : of an object: what it holds, in order, and hashable data about it.
    made : of the data and the children: an object.
    """

    children: Callable[[Any], tuple[Iterable[Any], Hashable]]
    made: Callable[[Any, Any], Any]


NODES: dict[type, Node | None] = dict.fromkeys(MAPS)
"""Classes whose objects are no leaves, besides tuples and lists; None for dictionaries."""


def register(cls: Any, node: Node) -> None:
    """Make objects of a class nodes.

    Raises
    ------
    ArgumentError : it is no class, or its objects are nodes already.
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"a class is registered, not {shown(cls)}")
    if cls in (tuple, list, type(None)) or cls in NODES or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise ArgumentError(f"Duplicate custom PyTreeDef type registration for {cls.__name__}: it is a node already")
    NODES[cls] = node


register(Size, Node(lambda sizes: (sizes, None), lambda _, sizes: Size(sizes)))


def apart(node: Node, tree: Any) -> tuple[tuple[Any, ...], Hashable]:
    """The children of an object of a registered class, and the data about it.

    Raises
    ------
    ArgumentError : its class was registered with a function that returns something else.
    """
    try:
        children, data = node.children(tree)
        hash(data)
        return tuple(children), data
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{type(tree).__name__}: a registered class is taken apart by a function that returns a pair (children, "
            f"hashable data): {error}"
        ) from error


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` in order, and its structure.

    Examples
    --------
    >>> flatten({"a": (1, 2), "b": None})
    ([1, 2], (<class 'dict'>, ('a', 'b'), ((<class 'tuple'>, ('*', '*')), None)))
    """
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves)
    except RecursionError:
        if not is_nested(tree):
            raise
    raise ArgumentError(f"a {type(tree).__name__}: structures that contain themselves, or are too deep, are refused")


_NO_ITEMS: Structure = (dict, (), ())


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return None
    kind = type(tree)
    if kind is tuple or kind is list or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return (kind, tuple([_flatten(x, leaves) for x in tree]) if tree else ())
    if kind is dict:
        return (dict, tuple(tree), tuple([_flatten(x, leaves) for x in tree.values()])) if tree else _NO_ITEMS
    if kind in NODES:
        if (node := NODES[kind]) is not None:
            children, data = apart(node, tree)
            return (kind, data, tuple([_flatten(x, leaves) for x in children]))
        extra = (tree.default_factory,) if kind is defaultdict else ()
        return (kind, tuple(tree), *extra, tuple([_flatten(x, leaves) for x in tree.values()]))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure is None:
        return None
    if type(structure) is str:
        return next(leaves)
    built = [next(leaves) if type(part) is str else _unflatten(part, leaves) for part in structure[-1]]
    return nest(structure, built)


def nest(structure: Structure, parts: Sequence[Any]) -> Any:
    """One level of a structure around its parts."""
    kind = structure[0]
    if kind is tuple or kind is list:
        return kind(parts)
    if kind is dict:
        return dict(zip(structure[1], parts, strict=True)) if parts else {}
    if kind in MAPS:
        return maker(structure)(zip(structure[1], parts, strict=True))
    node = NODES.get(kind)
    return kind(*parts) if node is None else node.made(structure[1], tuple(parts))


def parts_of(tree: Any, structure: Structure) -> Sequence[Any] | None:
    """The members of a tree's outermost level, if it fits a structure; keys in the structure's order."""
    if not isinstance(structure, tuple) or type(tree) is not structure[0]:
        return None
    node, size = NODES.get(type(tree)), len(structure[-1])
    if node is not None:
        children, data = apart(node, tree)
        return children if data == structure[1] and len(children) == size else None
    if type(tree) in MAPS:
        return [tree[key] for key in structure[1]] if set(tree) == set(structure[1]) else None
    parts: Sequence[Any] = tree
    return parts if len(parts) == size else None


def ordered(tree: Any, structure: Structure) -> Any:
    """`tree` with the keys of its dictionaries in the order of a structure."""
    parts = parts_of(tree, structure)
    return tree if parts is None else nest(structure, [ordered(x, p) for x, p in zip(parts, structure[-1])])


def maker(structure: Structure) -> Callable[[Any], Any]:
    """The constructor of a structure's dictionaries."""
    return partial(defaultdict, structure[2]) if structure[0] is defaultdict else structure[0]


def text(structure: Structure, leaves: Iterator[str]) -> str:
    """A tree in words, with these for its leaves.

    Examples
    --------
    >>> text(flatten({"a": (1, None), "b": [2]})[1], iter("xy"))
    "{'a': (x, None), 'b': [y]}"
    """
    if structure is None or structure == LEAF:
        return "None" if structure is None else next(leaves)
    kind, parts = structure[0], [text(part, leaves) for part in structure[-1]]
    if kind is tuple:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind in MAPS:
        items = f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(structure[1], parts))}}}"
        return items if kind is dict else f"{kind.__name__}({items})"
    if hasattr(kind, "_fields"):
        parts = [f"{name}={part}" for name, part in zip(kind._fields, parts)]
        return f"{kind.__name__}({', '.join(parts)})"
    return f"{kind.__name__}[{structure[1]!r}]({', '.join(parts)})"


def count_leaves(structure: Structure) -> int:
    """How many leaves a tree of this structure has."""
    if structure is None or structure == LEAF:
        return int(structure == LEAF)
    return sum(map(count_leaves, structure[-1]))


def taker(structure: Structure) -> Callable[[Any], tuple[Any, ...] | None] | None:
    """A function, made for one structure, that returns the leaves of a tree, or None for a tree of another structure.

    It takes a tenth of the time of `flatten`, which works a structure out; None if the tree is a tuple of leaves.

    Examples
    --------
    >>> _, structure = flatten(({"a": 1, "b": (2, None)}, 3))
    >>> take = taker(structure)
    >>> take(({"a": 4, "b": (5, None)}, 6)), take(({"b": 4, "a": (5, None)}, 6))
    ((4, 5, 6), None)
    """
    if structure is not None and structure != LEAF and set(structure[-1]) <= {LEAF}:
        return None
    scope: dict[str, Any] = {}
    lines, leaves = ["def take(x):"], list[str]()
    _taking(structure, "x", lines, leaves, scope)
    exec("\n".join([*lines, f"    return ({''.join(f'{x}, ' for x in leaves)})"]), scope)
    take: Callable[[Any], Any] = scope["take"]
    return take


def _differ(keys: tuple[Any, ...], found: Iterable[Any]) -> bool:
    """Whether keys are others, or cannot say."""
    own = tuple(found)
    try:
        return len(own) != len(keys) or not all(a is b or bool(a == b) for a, b in zip(own, keys, strict=True))
    except Exception:
        return True


def _taking(structure: Structure, name: str, lines: list[str], leaves: list[str], scope: dict[str, Any]) -> None:
    """Add what checks and takes apart the variable `name`."""
    if structure is None:
        lines.append(f"    if {name} is not None: return None")
        return
    if structure == LEAF:
        leaves.append(name)
        return
    kind, parts = structure[0], structure[-1]
    scope[f"kind_{name}"] = kind
    if (node := NODES.get(kind)) is not None:
        scope[f"apart_{name}"], scope[f"data_{name}"] = partial(apart, node), structure[1]
        lines.append(f"    if type({name}) is not kind_{name}: return None")
        lines.append(f"    {name}, {name}_data = apart_{name}({name})")
        lines.append(f"    if len({name}) != {len(parts)} or {name}_data != data_{name}: return None")
        _taking_parts(name, name, parts, lines, leaves, scope)
        return
    other = f"len({name}) != {len(parts)}"
    if kind in MAPS:
        scope[f"keys_{name}"] = structure[1]
        other = f"tuple({name}) != keys_{name}"
        if not all(isinstance(key, (str, int)) for key in structure[1]):  # what == means is for others to say
            scope[f"differ_{name}"] = partial(_differ, structure[1])
            other = f"differ_{name}({name})"
    if kind is defaultdict:
        scope[f"factory_{name}"] = structure[2]
        other += f" or {name}.default_factory is not factory_{name}"
    lines.append(f"    if type({name}) is not kind_{name} or {other}: return None")
    _taking_parts(name, f"{name}.values()" if kind in MAPS else name, parts, lines, leaves, scope)


def _taking_parts(
    name: str, values: str, parts: Sequence[Structure], lines: list[str], leaves: list[str], scope: dict[str, Any]
) -> None:
    if parts and set(parts) == {LEAF}:
        leaves.append(f"*{values}")
        return
    names = [f"{name}_{i}" for i in range(len(parts))]
    if names:
        lines.append(f"    {', '.join(names)}, = {values}")
    for part, own in zip(parts, names, strict=True):
        _taking(part, own, lines, leaves, scope)


def nester(
    structure: Structure, constants: Sequence[Any], places: Sequence[int] | None = None
) -> Callable[[tuple[Any, ...]], Any]:
    """A function, made for one structure, of the leaves that are None among the constants: it returns the tree.

    Parameters
    ----------
    places : where each of these leaves is among what the function is given; by default in order, each once.

    Examples
    --------
    >>> _, structure = flatten({"a": 1, "b": [2, 3]})
    >>> nester(structure, [None, "two", None])((1, 3))
    {'a': 1, 'b': ['two', 3]}
    >>> nester(structure, [None, "two", None], [0, 0])((1,))
    {'a': 1, 'b': ['two', 1]}
    """
    scope: dict[str, Any] = {f"c{i}": x for i, x in enumerate(constants) if x is not None}
    at = count() if places is None else iter(places)
    names = [f"v[{next(at)}]" if x is None else f"c{i}" for i, x in enumerate(constants)]
    exec(f"def nest(v): return {_nesting(structure, iter(names), scope)}", scope)
    nest: Callable[[tuple[Any, ...]], Any] = scope["nest"]
    return nest


def _nesting(structure: Structure, names: Iterator[str], scope: dict[str, Any]) -> str:
    """The expression of a tree."""
    if structure is None:
        return "None"
    if structure == LEAF:
        return next(names)
    kind, parts = structure[0], [_nesting(part, names, scope) for part in structure[-1]]
    place = f"k{len(scope)}"
    scope[place] = structure[1] if kind is dict else kind
    if kind in MAPS and kind is not dict:
        scope[place], scope[f"{place}_keys"] = maker(structure), structure[1]
        return f"{place}(zip({place}_keys, ({''.join(f'{x}, ' for x in parts)})))"
    if (node := NODES.get(kind)) is not None:
        scope[place] = partial(node.made, structure[1])
        return f"{place}(({''.join(f'{x}, ' for x in parts)}))"
    leaves = len(parts) > 1 and set(structure[-1]) == {LEAF}
    first = int(parts[0][2:-1]) if leaves and parts[0][0] == "v" else 0
    if leaves and parts == [f"v[{first + i}]" for i in range(len(parts))]:
        run = f"v[{first}:{first + len(parts)}]"
        return {tuple: run, list: f"[*{run}]", dict: f"dict(zip({place}, {run}))"}.get(kind, f"{place}(*{run})")
    if kind is dict:
        return f"{{{', '.join(f'{place}[{i}]: {x}' for i, x in enumerate(parts))}}}"
    listed = "".join(f"{x}, " for x in parts)
    return {tuple: f"({listed})", list: f"[{listed}]"}.get(kind, f"{place}({listed})")
