"""Rows in blocks of sixteen: elementary functions of numbers of a row go by vectors.

The logarithm of a row's sum is one number, which everything behind it waits for: of a row of 100 elements, the number
takes half of the time. So the loops over columns before it are done for all rows of a block, then the logarithms of
these, then what needs them::

    for m0 in range(0, n0, 16):
        m1 = min(m0 + 16, n0)
        for r0 in range(m0, m1):
            ...
            b5[h] = t5
            b6[g + c] = t4
        for j in range(16):
            vt5 = b5[j]
            b5[j] = log(vt5)
        for r0 in range(m0, m1):
            t6 = b5[h]
            ...

Memory for a row that one loop writes and another one reads is memory for sixteen rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Constant, If, Let, Loop, Place, Run, Store, replaced, text
from common.core.op import REGISTRY
from common.core.sizes import hint
from common.core.spec import numel
from static.lowering.codegen.loop_nest import Nest
from static.lowering.ir.kernel_memory import Scratch

ROWS = 16
"""Rows of a block: lanes of the widest vectors of float32."""
COLUMNS = range(9, 513)
"""Elements of a row: rows of fewer go by vectors (`static.lowering.codegen.short_rows`); of more, a number of a row
takes a small part of the time, and a block of rows leaves the nearest cache."""
WRITTEN_COLUMNS, WRITTEN_ROWS = 33, 256
"""Rows of fewer elements go by vectors, too, if so many lie one behind the other; if there are as many in all they go
by blocks."""
FEWEST_ROWS = 4 * ROWS
MOST_KEPT = 8
"""Numbers of a row that are kept from one loop to the next."""

LEAST = 3
"""Of what `_weight` says that the functions of a row's numbers weigh."""
MOST_LOOPS = 5
MOST_BYTES = 16384
"""Memory for the rows of a block, which stays in the nearest cache."""

_POLYNOMIALS = "common.kernels.math"
_NAME, _BUFFER = re.compile(r"[a-z_]\w*"), re.compile(r"\bb\d+\b")


@dataclass(slots=True)
class _Phases:
    """The statements of a row, each with the number of its loop: even ones go row by row, odd ones by vectors.

    Attributes
    ----------
    of : name -> the loop that gives it its value.
    lets : name -> the only statement that does, or the first one.
    written : buffers that are written, and names that have several values.
    """

    nest: Nest
    body: list[Any]
    phases: list[int] = field(default_factory=list)
    of: dict[str, int] = field(default_factory=dict)
    lets: dict[str, Let] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    scratch: set[str] = field(default_factory=set)

    def assign(self) -> bool:
        """Number the statements, those that use memory for less than a row alike; False if some wait for each other."""
        self.scratch = {f"b{i}" for i, thing in enumerate(self.nest.bound) if isinstance(thing, Scratch)}
        shared = {name for name in self.scratch if not _in_columns(name, self.body)}
        least: dict[str, int] = dict.fromkeys(shared, 0)
        for _ in range(MOST_LOOPS):
            self._number(least)
            found = dict.fromkeys(shared, 0)
            for phase, statement in zip(self.phases, self.body, strict=True):
                for name in shared.intersection(_BUFFER.findall(text([statement]))):
                    found[name] = max(phase, found[name])
            if found == least:
                return True
            least = found
        return False

    def _number(self, least: dict[str, int]) -> None:
        self.phases, self.of, self.lets, self.written = [], {}, {}, set()
        stored = set[str]().union(*map(_stored, self.body)) | self.scratch
        touched: dict[str, int] = {}  # memory is used in the order of the statements
        for statement in self.body:
            used, lanes = _used(statement), _is_for_lanes(statement)
            memory = used & stored
            before = max((self.of.get(name, least.get(name, touched.get(name, 0))) for name in used), default=0)
            phase = before + (before % 2 == 0 and lanes and _is_costly(statement)) + (before % 2 and not lanes)
            self.phases.append(phase)
            touched.update(dict.fromkeys(memory, phase))
            for name in _defined(statement):
                self.written |= {name} & self.of.keys()
                self.of[name] = max(phase, self.of.get(name, 0))
            if isinstance(statement, Let):
                self.lets.setdefault(statement.name, statement)

    def crossing_rows(self) -> set[str] | None:
        """Memory for a row that several loops use; None if they use anything else that is written."""
        touched: dict[str, set[int]] = {}
        stored = set[str]()
        for phase, statement in zip(self.phases, self.body, strict=True):
            for name in _BUFFER.findall(text([statement])):
                touched.setdefault(name, set()).add(phase)
            stored |= _stored(statement)
        self.written |= stored | self.scratch
        found = {name for name in self.written & touched.keys() if len(touched[name]) > 1}
        loops = [s for s in self.body if _BUFFER.search(text([s]))]
        if not found <= self.scratch or not all(_in_columns(name, loops) for name in found):
            return None
        assert self.nest.inner is not None
        sizes = [self.nest.dtypes[int(name[1:])].itemsize for name in found]
        return found if sum(sizes) * ROWS * hint(self.nest.inner) <= MOST_BYTES else None

    def is_again(self, name: str) -> bool:
        """Whether a name is given its value again where it is used: a place, or an element that nobody writes."""
        value = self.lets[name].value if name in self.lets else None
        if not isinstance(value, (str, Place)) or name in self.written:
            return False
        if isinstance(value, Place) and value.buffer in self.written:
            return False
        return all(self.is_again(used) for used in _used(self.lets[name]) & self.of.keys() - {name})

    def dtype(self, name: str) -> Any:
        """The dtype of a name; None if it is not known."""
        let = self.lets.get(name)
        if let is not None and isinstance(let.value, Place) and let.dtype is None:
            return self.nest.dtypes[int(let.value.buffer[1:])]
        return None if let is None else let.dtype


def in_blocks(nest: Nest, body: list[Any]) -> Loop | None:
    """The innermost row loop, around the statements of a row, by blocks; None if that does not pay."""
    if nest.inner is None or hint(nest.inner) not in COLUMNS or hint(nest.rows[-1]) < ROWS:
        return None
    short, every = hint(nest.inner) < WRITTEN_COLUMNS, hint(numel(tuple(nest.rows)))
    if every < (WRITTEN_ROWS if short else FEWEST_ROWS) or (short and hint(nest.rows[-1]) >= WRITTEN_ROWS):
        return None
    if not any(isinstance(s, Let) and _is_costly(s) for s in body):
        return None
    body = [s for s in body if text([s])]  # loops without statements print as nothing
    phases = _Phases(nest, body)
    if not phases.assign():
        return None
    last = max(phases.phases)
    if sum(_weight(s) for phase, s in zip(phases.phases, body, strict=True) if phase % 2) < LEAST:
        return None
    rows = phases.crossing_rows() if last else None
    if rows is None:
        return None
    copied, taken = _crossing(phases, last)
    kept = list(dict.fromkeys(name for names in taken for name in names))
    dtypes = [phases.dtype(name) for name in kept]
    if len(kept) > MOST_KEPT or not all(dtype is not None and dtype.kind == "f" for dtype in dtypes):
        return None
    for slot in (int(name[1:]) for name in rows):
        nest.bound[slot] = nest.scratch(nest.dtypes[slot], ROWS * nest.inner)
    slots = {name: nest.slot(nest.scratch(dtype, ROWS)) for name, dtype in zip(kept, dtypes)}
    row = nest.row_names[-1]
    loops: list[Any] = [Let("m1", f"min(m0 + {ROWS}, {nest.size(nest.rows[-1])})")]
    for phase in range(last + 1):
        own = [s for p, s in zip(phases.phases, body, strict=True) if p == phase]
        given = [name for name in kept if phases.of[name] == phase]
        if phase % 2:
            loops.append(_by_vectors(own, taken[phase], given, slots))
            continue
        again = [s for s in body if isinstance(s, Let) and s.name in copied[phase] and s not in own]
        order = [s for s in body if s in own or s in again]
        loads = [Let(name, Place(slots[name], "", "h")) for name in taken[phase]]
        stores = [Store(Place(slots[name], "", "h"), name) for name in given]
        index = [Let("h", f"{row} - m0")] if loads or stores or rows else []
        index += [Let("g", f"h * {nest.size(nest.inner)}")] if rows else []
        inside = [*loads, *(_moved(s, rows) for s in order), *stores]
        loops.append(Loop(row, "m1", [*index, *inside] if inside else [], start="m0"))
    return Loop("m0", nest.size(nest.rows[-1]), loops, step=str(ROWS))


def _crossing(phases: _Phases, last: int) -> tuple[list[set[str]], list[list[str]]]:
    """Per loop, the names that it computes again, and those that it takes from memory."""
    copied: list[set[str]] = [set() for _ in range(last + 1)]
    taken: list[list[str]] = [[] for _ in range(last + 1)]
    for phase, statement in zip(phases.phases, phases.body, strict=True):
        waiting = sorted(_used(statement) & phases.of.keys())
        while waiting:
            name = waiting.pop()
            if phases.of[name] == phase:
                continue
            if phase % 2 == 0 and phases.is_again(name):
                if name not in copied[phase]:
                    copied[phase].add(name)
                    waiting += sorted(_used(phases.lets[name]) & phases.of.keys() - {name})
            elif name not in taken[phase]:
                taken[phase].append(name)
    return copied, taken


def _by_vectors(own: list[Any], taken: list[str], given: list[str], slots: dict[str, str]) -> Loop:
    """The loop over a block's rows, all of which exist in memory; what is computed beyond the last row is not used."""
    names = {*taken, *(s.name for s in own)}

    def renamed(name: str) -> str:
        return f"v{name}" if name in names else name

    lets = [Let(f"v{s.name}", replaced(s.value, lambda place: place, renamed), s.dtype) for s in own]
    loads = [Let(f"v{name}", Place(slots[name], "", "j")) for name in taken]
    return Loop("j", str(ROWS), [*loads, *lets, *(Store(Place(slots[name], "", "j"), f"v{name}") for name in given)])


def _in_columns(buffer: str, statements: list[Any]) -> bool:
    """Whether statements name a buffer as an element of the column, or as a row from 0 on, alone."""
    named = text(statements)
    return len(re.findall(rf"\b{buffer}\b", named)) == len(re.findall(rf"\b{buffer}(?:\[c\]|, 0, )", named))


def _moved(statement: Any, rows: set[str]) -> Any:
    """A statement with memory for a row in the part of the block's that is this row's."""

    def place(x: Place) -> Place:
        return Place(x.buffer, "g", x.var) if x.buffer in rows else x

    def value(x: Any) -> Any:
        if not isinstance(x, Call) or rows.isdisjoint(map(str, x.arguments)):
            return replaced(x, place, str)
        before = None, *x.arguments
        return Call(x.function, ["g" if str(last) in rows else y for last, y in zip(before, x.arguments)])

    match statement:
        case Let():
            return Let(statement.name, value(statement.value), statement.dtype)
        case Store():
            return Store(place(statement.place), value(statement.value))
        case Loop():
            body = [_moved(s, rows) for s in statement.body]
            return Loop(statement.var, statement.stop, body, statement.start, statement.step)
        case If():
            return If(statement.condition, [_moved(s, rows) for s in statement.body])
    return statement


def _used(statement: Any) -> set[str]:
    return set(_NAME.findall(text([statement])))


def _defined(statement: Any) -> Iterable[str]:
    """The names that a statement gives to those behind it."""
    if isinstance(statement, Let):
        return [statement.name]
    return [name for s in statement.body for name in _defined(s)] if isinstance(statement, If) else []


def _stored(statement: Any) -> set[str]:
    """The buffers that a statement may write to."""
    if isinstance(statement, Store):
        return {statement.place.buffer}
    if isinstance(statement, Run):
        return set(_BUFFER.findall(str(statement)))
    return set().union(*(_stored(s) for s in getattr(statement, "body", ())))


def _is_for_lanes(statement: Any) -> bool:
    """Whether it is an elementwise function of numbers of the row, which makes a float."""
    if not isinstance(statement, Let) or not isinstance(statement.value, Call):
        return False
    op, dtype = REGISTRY.get(statement.value.function), statement.dtype
    arguments = all(isinstance(x, (str, Constant)) and str(x)[0] != "b" for x in statement.value.arguments)
    return op is not None and op.kind == "elementwise" and arguments and np.dtype(dtype or bool).kind == "f"


def _is_costly(statement: Let) -> bool:
    return _weight(statement) > 0


def _weight(statement: Let) -> int:
    """What a function of a number of the row costs: quotients and roots are instructions, others polynomials."""
    op = REGISTRY.get(statement.value.function) if isinstance(statement.value, Call) else None
    if op is None or not op.costly:
        return 0
    return LEAST if op.scalar.__module__.startswith(_POLYNOMIALS) else 1


__all__ = ["in_blocks"]
