"""Loops over numbers in blocks of iterations: elementary functions of what is not carried go by vectors.

An exponential of a row alone is known before the iterations, and a logarithm that only a stack takes can wait until
they are done. So both are loops of their own, over a block whose values stay in the nearest cache::

    for c in range(count):
        t2 = exp(b1[first + c])
        b9[c] = t2
    while done < end:
        t4 = mul(b9[row - first], c0)
        b10[row - first] = t4
        ...
    for c in range(count):
        b3[first + c] = log(b10[c])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Let, Loop, Place, Repeat, Store, replaced
from common.core.op import REGISTRY

BLOCK_ITERATIONS = 256
MOST_KEPT = 8
"""Numbers of an iteration that are kept from one loop to the next."""

Statements = list[Any]


@dataclass(slots=True)
class Apart:
    """The statements of an iteration in three loops.

    Attributes
    ----------
    before, inside, behind : what needs nothing that is carried, the iteration, and what only stacks take.
    early, late : names, and dtypes, of what `before` gives, and of what `behind` gets from `inside`.
    """

    before: Statements
    inside: Statements
    behind: Statements
    early: dict[str, np.dtype[Any]]
    late: dict[str, np.dtype[Any]]

    @property
    def kept(self) -> dict[str, np.dtype[Any]]:
        """The names and dtypes of what one loop leaves for another."""
        return {**self.early, **self.late}


def apart(statements: Sequence[Any], carried: Mapping[str, np.dtype[Any]], known: Iterable[str]) -> Apart | None:
    """The statements in three loops; None if no elementary function leaves the iteration, or too much is kept.

    Parameters
    ----------
    carried : names and dtypes; the next value of ``c0`` is ``d0``.
    known : the names of what is the same in all iterations.
    """
    lets = {x.name: x for x in statements if isinstance(x, Let)}
    needed = _closure([f"d{name[1:]}" for name in carried], lets)
    free = set(known)
    for statement in lets.values():
        if names_of(statement.value) <= free:
            free.add(statement.name)
    free &= lets.keys()
    waits = lets.keys() - needed
    if not any(is_costly(lets[name]) for name in waits):
        waits = set()
    early: dict[str, Any] = {name: x.dtype for name in free & needed if is_costly(x := lets[name])}
    behind = [x for x in statements if (x.name in waits if isinstance(x, Let) else names_of(x.value) & waits)]
    if not early and not behind:
        return None
    wanted = _closure([name for x in behind for name in names_of(x.value)], lets, early) & free - early.keys() - waits
    given = [name for x in behind for name in names_of(x.value) if name not in waits | free and name not in known]
    late: dict[str, Any] = {name: _dtype(name, lets, carried) for name in given}
    if any(dtype is None for dtype in (*early.values(), *late.values())) or len(early) + len(late) > MOST_KEPT:
        return None
    first = _closure(early, lets)
    left = [x for x in statements if x not in behind and not (isinstance(x, Let) and x.name in early)]
    used = _closure([*(f"d{name[1:]}" for name in carried), *late, *_stored(left)], lets, early)
    return Apart(
        [x for x in lets.values() if x.name in first],
        [x for x in left if not isinstance(x, Let) or x.name in used],
        [x for x in statements if x in behind or (isinstance(x, Let) and x.name in wanted)],
        early,
        late,
    )


def blocks(parts: Apart, slots: Mapping[str, str], carry: Statements, backwards: bool) -> Repeat:
    """The loop over blocks; `slots` names the memory of what is kept, `carry` hands an iteration's numbers on."""
    begin: Statements = [
        Let("count", f"min({BLOCK_ITERATIONS}, stop - done)"),
        Let("first", "limit - done - count" if backwards else "done"),
        Let("start", "0 - first"),
        Let("end", "done + count"),
    ]
    bases: dict[str, str] = {}

    def based(place: Place) -> Place:
        """A place in the row of iteration c of the block."""
        if place.var != "row":
            return place
        text = " + ".join(filter(None, (f"first * {place.step}" if place.step else "first", place.base)))
        if text not in bases:
            bases[text] = text if text == "first" else f"e{len(bases)}"
            begin.append(Let(bases[text], text)) if text != "first" else None
        return Place(place.buffer, bases[text], "c", place.step, place.beside)

    kept = parts.kept
    within = {name: Place(slots[name], "start", "row") for name in kept}
    beside = {name: Place(slots[name], "", "c") for name in kept}
    before = [_moved(x, based) for x in parts.before]
    before += [Store(beside[name], name) for name in parts.early]
    inside: Statements = [Let(name, within[name]) for name in parts.early] + parts.inside
    inside = [*inside, *(Store(within[name], name) for name in parts.late)]
    used = {name for x in parts.behind for name in names_of(x.value)}
    behind = [Let(f"v{name}", beside[name]) for name in kept if name in used]
    renamed = {name: f"v{name}" for name in kept}
    behind += [_moved(x, based, renamed) for x in parts.behind]
    row = Let("row", "limit - 1 - done" if backwards else "done")
    iterations = Repeat("done < end", [row, *inside, *carry, Let("done", "done + 1")])
    return Repeat("done < stop", [*begin, Loop("c", "count", before), iterations, Loop("c", "count", behind)])


def _moved(statement: Any, place: Callable[[Place], Place], names: Mapping[str, str] | None = None) -> Any:
    """A statement with other places and names."""
    value = replaced(statement.value, place, lambda name: (names or {}).get(name, name))
    if isinstance(statement, Let):
        return Let(statement.name, value, statement.dtype)
    return Store(place(statement.place), value)


def names_of(value: Any) -> set[str]:
    """The names that a value is made of, but for that of the row."""
    if isinstance(value, Call):
        return set().union(*map(names_of, value.arguments))
    return {value} if isinstance(value, str) else set()


def _closure(names: Iterable[str], lets: Mapping[str, Let], stop: Iterable[str] = ()) -> set[str]:
    """The statements that names need, their own included, up to those of `stop`."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in lets and name not in found and name not in stop:
            found.add(name)
            waiting += names_of(lets[name].value)
    return found


def _dtype(name: str, lets: Mapping[str, Let], carried: Mapping[str, np.dtype[Any]]) -> Any:
    """The dtype of a value; None if it is not known."""
    while name in lets and isinstance(lets[name].value, str):
        name = lets[name].value  # another name
    return carried[name] if name in carried else lets[name].dtype if name in lets else None


def _stored(statements: Iterable[Any]) -> list[str]:
    return [name for x in statements if isinstance(x, Store) for name in names_of(x.value)]


def is_costly(statement: Let) -> bool:
    """Whether a statement computes an elementary function."""
    op = REGISTRY.get(statement.value.function) if isinstance(statement.value, Call) else None
    return op is not None and op.costly


__all__ = ["Apart", "apart", "blocks", "is_costly", "names_of"]
