"""The neutral form of a picture, for every engine that makes it and every format that draws it.

A diagram is a list of items in program order, which is a topological order: every item reads earlier ones. Items lie in
nested scopes (modules, functions, composites), and each knows the results it has, so that an edge can show a shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from common.core.errors import ArgumentError
from common.core.lazy import cached_property
from common.core.op import REGISTRY

#: Result of an item: its position in the picture, and which of its results it is.
Port = tuple[int, int]


class PictureItem(NamedTuple):
    """One thing in a picture.

    Attributes
    ----------
    label : what is written on it.
    kind : "op"; "input" for an argument or a leaf; "parameter" for state that a module or optimiser owns; "fixed" for
        what is made of nothing, such as a number; "output" and "write" for where values go; "scope" for several items
        drawn as one.
    operands : per operand the result that it reads, None for what is no item.
    results : shape and dtype of each result as text, "" where they are not known.
    scope : names of the scopes around it, outermost first.
    detail : attributes, and what else there is to say.
    line : file and line of the program, ``file:line``; "" where there is none.
    """

    label: str
    kind: str
    operands: tuple[Port | None, ...] = ()
    results: tuple[str, ...] = ("",)
    scope: tuple[str, ...] = ()
    detail: str = ""
    line: str = ""

    @property
    def is_source(self) -> bool:
        """Whether it only holds a value, and so belongs to whoever reads it."""
        return self.kind in ("parameter", "fixed")


class Diagram:
    """A graph to be drawn.

    Parameters
    ----------
    items : in program order.
    title : of what.
    legend : lines that explain names of sizes.
    """

    def __init__(self, items: Sequence[PictureItem], title: str = "", legend: Sequence[str] = ()) -> None:
        self.items, self.title, self.legend = list(items), title, list(legend)

    @property
    def edges(self) -> Iterator[tuple[Port, Port]]:
        """Pairs of a result and of (item, position of the operand) that reads it."""
        for position, item in enumerate(self.items):
            for i, port in enumerate(item.operands):
                if port is not None:
                    yield port, (position, i)

    @property
    def depth(self) -> int:
        """How deeply scopes are nested."""
        return max((len(item.scope) for item in self.items), default=0)

    def collapse(self, depth: int) -> Self:
        """The picture with every scope below `depth` levels drawn as one item.

        Parameters
        ----------
        depth : levels of scopes that stay open; 0 makes one item of each outermost scope.
        """
        groups: list[list[int]] = []
        last: tuple[str, ...] | None = None
        for position, item in enumerate(self.items):
            key = item.scope[: depth + 1] if len(item.scope) > depth else None
            if key is None or key != last:
                groups.append([])
            groups[-1].append(position)
            last = key
        outside = set(_outside(self, groups))
        place: dict[Port, Port] = {}
        items: list[PictureItem] = []
        for group in groups:
            first = self.items[group[0]]
            ports = [(p, i) for p in group for i in range(len(self.items[p].results))]
            if len(first.scope) <= depth:
                items.append(first._replace(operands=_moved(first.operands, place)))
            else:
                ports = [port for port in ports if port in outside]
                inner = set(group)
                read = [port for p in group for port in self.items[p].operands if port and port[0] not in inner]
                items.append(
                    PictureItem(
                        first.scope[depth], "scope", _moved(dict.fromkeys(read), place),
                        tuple(self.items[p].results[i] for p, i in ports), first.scope[:depth],
                        f"{len(group)} items", first.line,
                    )
                )  # fmt: skip
            place.update((port, (len(items) - 1, i)) for i, port in enumerate(ports))
        return type(self)(items, self.title, self.legend)

    def read_after(self, first: int, last: int) -> set[Port]:
        """Results of the items from `first` up to `last` that items after them read."""
        return {(p, i) for p in range(first, last) for i, reader in self._last_readers[p].items() if reader >= last}

    @cached_property
    def _last_readers(self) -> list[dict[int, int]]:
        """Per item the last reader of each result."""
        table: list[dict[int, int]] = [{} for _ in self.items]
        for (made, result), (reader, _) in self.edges:
            table[made][result] = reader
        return table

    def at_most(self, max_items: int) -> Self:
        """The picture, or if it has too many items the most detailed `collapse` of it that has not.

        Raises
        ------
        ArgumentError : there is none.
        """
        for depth in range(self.depth, -1, -1):
            smaller = self if depth == self.depth else self.collapse(depth)
            if len(smaller.items) <= max_items:
                break
        else:
            raise ArgumentError(
                f"a picture of {len(self.items)} items, {len(smaller.items)} with all scopes collapsed, is more than "
                f"max_items={max_items}: draw a part of the program, raise max_items, or use the text, DOT or networkx"
            )
        if smaller is not self:
            smaller.legend += [f"{len(self.items)} items: scopes are closed below level {depth}"]
        return smaller


def _moved(ports: Iterable[Port | None], place: dict[Port, Port]) -> tuple[Port | None, ...]:
    return tuple(None if port is None else place[port] for port in ports)


def _outside(picture: Diagram, groups: list[list[int]]) -> Iterator[Port]:
    """Results that are read outside the group that makes them."""
    group_of = {position: i for i, group in enumerate(groups) for position in group}
    return (port for port, (reader, _) in picture.edges if group_of[port[0]] != group_of[reader])


def settle(items: Sequence[PictureItem]) -> list[PictureItem]:
    """The items with sources moved to their first reader; sources that nothing reads are left out.

    A source lies in the scope that its readers share, of those in the outermost scope of the first one: a weight in the
    layer that uses it, also where an optimiser does later; a learning rate in the optimiser, not in one update.
    """
    readers: dict[int, list[int]] = {}
    for position, item in enumerate(items):
        for port in item.operands:
            if port is not None:
                readers.setdefault(port[0], []).append(position)
    before: dict[int, list[int]] = {}
    scopes: dict[int, tuple[str, ...]] = {}
    for position, item in enumerate(items):
        if item.is_source and position in readers:
            first = readers[position][0]
            scopes[position] = _shared(
                [s for r in readers[position] if (s := items[r].scope)[:1] == items[first].scope[:1]]
            )
            before.setdefault(_start(items, first, len(scopes[position])), []).append(position)
    order: list[int] = []
    for position, item in enumerate(items):
        order += before.get(position, ())
        if not item.is_source:
            order.append(position)
    place: dict[int, int] = {}
    settled: list[PictureItem] = []
    for position in order:
        place[position] = len(settled)
        item = items[position]
        operands = tuple(None if port is None else (place[port[0]], port[1]) for port in item.operands)
        settled.append(item._replace(operands=operands, scope=scopes.get(position, item.scope)))
    return settled


def _start(items: Sequence[PictureItem], reader: int, depth: int) -> int:
    """The first item of the scope at `depth` in which a reader lies: what belongs outside must not divide it."""
    scope = items[reader].scope[: depth + 1]
    start = reader
    while len(scope) > depth and reader:
        reader -= 1
        if items[reader].scope[: depth + 1] == scope:
            start = reader
        elif not items[reader].is_source:
            break
    return start


def _shared(scopes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The scope that several have in common, up to the first op that is made of others."""
    first, last = min(scopes), max(scopes)
    pairs = zip(first, last, strict=False)
    count = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1] and pair[0] not in REGISTRY, pairs))
    return first[:count]
