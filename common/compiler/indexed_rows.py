"""Rows of a few elements at places that are data: each is loaded, or joined with what is there, as a whole.

What a loop reads at ``x[q]``, ``x[q + 1]``, ... where q is data is one row per lane. Each row is one load, and the rows
of all lanes are taken apart into columns; a gather per column takes several times as long. What a loop joins with
``x[q]``, ``x[q + 1]``, ... is put together into rows, which go to memory lane by lane, in the order of the iterations::

    q7 = u1 * 3
    x[q7] = add(x[q7], u2)
    x[q7 + 1] = add(x[q7 + 1], u3)
    x[q7 + 2] = add(x[q7 + 2], u4)
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from common.compiler.close_steps import CLOSE
from common.compiler.lane_memory import Written, written
from common.compiler.machine_functions import MachineFunction
from common.compiler.registers import BOOL, INT64, ArrayKind, OneByOne, Refused, Register, constant, storage
from common.compiler.stepped_lanes import SteppedLanes, window
from common.compiler.syntax_tree import names, parts

LANES_OF_ROWS = 8
"""Lanes of loops that read or write rows at places that are data: the code grows with them."""

_OF_PLACES = (
    ast.Name, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Subscript, ast.IfExp, ast.Compare, ast.cmpop,
    ast.Load,
)  # fmt: skip


class IndexedRows(SteppedLanes):
    """Reads and writes rows at places that are data."""

    def load_rows(self, container: Register, kind: ArrayKind, index: ast.expr) -> Register | None:
        """Elements at places that are data, of whose rows the loop reads other elements, too; None if it does not."""
        lanes = self._lanes
        assert lanes is not None
        place = written(index, 2)
        besides = window(self._places(kind, place.text).read, place.beside, CLOSE)
        if len(besides) < 2 or kind.dtype == BOOL or (lanes.mask and lanes.active is None):
            return None
        key = kind.slot, place.text, place.beside, lanes.width
        if key not in lanes.taken:
            needed = self._needed(index)
            if needed is None:
                return None
            low, count, one = besides[0], besides[-1] - besides[0] + 1, storage(kind.dtype)
            rows = []
            for lane in range(lanes.width):
                first = self.write(
                    "add", INT64, self._place_of(index, needed, lane), constant(low - place.beside, INT64)
                )
                rows.append(
                    self.register(f"load <{count} x {one}>, ptr {self.element(container, first)}{self._access(kind)}")
                )
            step = 1 << (count - 1).bit_length()
            found = self._taken_apart(kind, self._side_by_side(one, rows, count, step), {b - low for b in besides})
            lanes.taken.update({(*key[:2], low + beside, lanes.width): text for beside, text in found.items()})
        self.close += 1
        return Register(lanes.taken[key], kind.dtype, None, lanes.width)

    def _side_by_side(self, one: str, rows: list[str], count: int, step: int) -> list[str]:
        """Vectors of as many elements as there are lanes, of rows that have room for `step` elements each."""
        assert self._lanes is not None
        lanes, width = self._lanes.width, count

        def chosen(x: str, y: str, elements: Iterable[int | None]) -> str:
            numbers = ["i32 poison" if i is None else f"i32 {i}" for i in elements]
            mask = f"<{len(numbers)} x i32> <{', '.join(numbers)}>"
            return self.register(f"shufflevector <{width} x {one}> {x}, <{width} x {one}> {y}, {mask}")

        if count < step:
            rows = [chosen(row, "poison", [i if i < count else None for i in range(step)]) for row in rows]
            width = step
        while width < lanes:
            rows = [chosen(x, y, range(2 * width)) for x, y in zip(rows[::2], rows[1::2], strict=True)]
            width *= 2
        if width > lanes:
            rows = [chosen(row, "poison", range(i, i + lanes)) for row in rows for i in range(0, width, lanes)]
        return rows

    # ---------------------------------------------------------------- writes
    def joins_rows(self, node: ast.Assign) -> bool:
        """Write ``x[q + j] = value``, or ``x[q + j] = join(x[q + j], value)``; False if it is anything else.

        Raises
        ------
        OneByOne : the loop uses the array at other places, too.
        """
        lanes = self._lanes
        match node.targets:
            case [ast.Subscript(value=ast.Name(id=name), slice=index)] if lanes and is_data(index, lanes.given):
                pass
            case _:
                return False
        container, place = self.variables[name], written(index, 2)
        kind, needed = container.kind, self._needed(index)
        if (
            not isinstance(kind, ArrayKind)
            or kind.dtype == BOOL
            or needed is None
            or (lanes.mask and lanes.active is None)
        ):
            raise OneByOne("a place")
        joins = [_joined(part, name) for part in lanes.body if _uses(part, name)]
        besides, function = sorted({join.beside for join in joins if join}), joins[0].function if joins[0] else ""
        alike = all(join and (join.text, join.function) == (place.text, function) for join in joins)
        if not alike or len(besides) < len(joins) or besides[-1] - besides[0] + 1 > min(len(besides), CLOSE):
            raise OneByOne("a place")
        if function and isinstance(self.resolve(function), MachineFunction):
            raise OneByOne("a call")
        value = self.expression(node.value.args[1] if isinstance(node.value, ast.Call) and function else node.value)
        if value.kind != kind.dtype:
            raise Refused(f"{value.kind} is stored as {kind.dtype}")
        lanes.places.setdefault(kind.slot, set()).add(Written(place.text, 0, 0))
        lanes.stored.add(kind.slot)
        self.close += 1
        late = lanes.late_stores.setdefault(kind.slot, {})
        late[place.beside] = (value if value.lanes > 1 else self.spread(value, lanes.width)).text
        if len(late) == len(besides):
            back = constant(besides[0] - place.beside, INT64)
            places = [self.write("add", INT64, self._place_of(index, needed, i), back) for i in range(lanes.width)]
            self._join_rows(container, function, [late[beside] for beside in besides], places)
        return True

    def _join_rows(self, container: Register, function: str, columns: list[str], places: list[Register]) -> None:
        """Join the rows of all lanes with those at their places, one after the other."""
        lanes, kind = self._lanes, container.kind
        assert lanes is not None
        assert isinstance(kind, ArrayKind)
        count = len(columns)
        rows = self._rows(kind, columns)

        def join(place: Register, row: str) -> None:
            address, access = self.element(container, place), self._access(kind)
            value = Register(row, kind.dtype, None, count)
            if function:
                old = Register(self.register(f"load {value.type}, ptr {address}{access}"), kind.dtype, None, count)
                value = self.scalar(function, self.resolve(function), [old, value])
            self.line(f"store {value.typed}, ptr {address}{access}")

        for lane, (place, row) in enumerate(zip(places, rows, strict=True)):
            active = None if lane == 0 else lanes.active
            if active is None:
                join(place, row)
            elif active.literal is not None:
                if lane < active.literal:
                    join(place, row)
            else:
                some, none = self.branch(self.write("icmp sgt", BOOL, active, constant(lane, INT64)).text)
                self.enter(some)
                join(place, row)
                self.join([*self.leave(), none])

    def _rows(self, kind: ArrayKind, columns: list[str]) -> list[str]:
        """The row of each lane."""
        lanes, count, one = self._lanes, len(columns), storage(kind.dtype)
        assert lanes is not None
        vector = f"<{lanes.width} x {one}>"
        if count == 1:
            return [self.register(f"extractelement {vector} {columns[0]}, i64 {i}") for i in range(lanes.width)]
        step, rows = 1 << (count - 1).bit_length(), list[str]()
        if step > lanes.width:
            for lane in range(lanes.width):
                row = "poison"
                for i, column in enumerate(columns):
                    element = self.register(f"extractelement {vector} {column}, i64 {lane}")
                    row = self.register(f"insertelement <{count} x {one}> {row}, {one} {element}, i64 {i}")
                rows.append(row)
            return rows
        vectors = self._put_together(kind, [*columns, *["poison"] * (step - count)])
        for lane in range(lanes.width):
            which, first = divmod(lane * step, lanes.width)
            numbers = ", ".join(f"i32 {i}" for i in range(first, first + count))
            halves = f"{vector} {vectors[which]}, {vector} poison"
            rows.append(self.register(f"shufflevector {halves}, <{count} x i32> <{numbers}>"))
        return rows

    # ---------------------------------------------------------------- places
    def _needed(self, index: ast.expr) -> list[str] | None:
        """The names that the body gives a meaning and a place needs, in order; None if no single lane has it alone."""
        lanes = self._lanes
        assert lanes is not None
        wanted, waiting = set[str](), [index]
        read = set[str]()
        while waiting:
            node = waiting.pop()
            for part in parts(node):
                if not isinstance(part, _OF_PLACES):
                    return None
                if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                    read.add(part.value.id)
                if isinstance(part, ast.Name) and part.id in lanes.assigned and part.id not in wanted | {lanes.name}:
                    if part.id not in lanes.given:
                        return None
                    wanted.add(part.id)
                    waiting.append(lanes.given[part.id])
        if any(_stores(part, read) for part in lanes.body):
            return None
        return [name for name in lanes.given if name in wanted]

    def _place_of(self, index: ast.expr, needed: list[str], lane: int) -> Register:
        """The place of one lane; of the last one instead, where a mask leaves it out."""
        lanes = self._lanes
        assert lanes is not None
        number = constant(lane, INT64)
        if lanes.active is not None:
            last = self.write("sub", INT64, lanes.active, constant(1, INT64))
            number = self.extreme("slt", number, last)
        outside, self._lanes = self.variables, None
        self.variables = outside | {lanes.name: self.write("add", INT64, lanes.now, number)}
        for name in needed:
            key = f"{name} of {lane}"
            if key not in lanes.counts:
                lanes.counts[key] = self.expression(lanes.given[name])
            self.variables[name] = lanes.counts[key]
        place = self.integer(index)
        self.variables, self._lanes = outside, lanes
        return place


class _Join(NamedTuple):
    """What a statement joins with an element: the function, "" to replace it; and the place."""

    function: str
    text: str
    beside: int


def _joined(node: ast.stmt, name: str) -> _Join | None:
    """How a statement joins a value with an element of an array that it does not use otherwise."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target), slice=index)], value=value) if target == name:
            place = written(index, 2)
            match value:
                case ast.Call(
                    func=ast.Name(id=function), args=[ast.Subscript(value=ast.Name(id=old), slice=at), other]
                ):
                    if old == name and ast.dump(at) == ast.dump(index) and not _uses(other, name):
                        return _Join(function, place.text, place.beside)
            if not _uses(value, name) and not _uses(index, name):
                return _Join("", place.text, place.beside)
    return None


def _uses(node: ast.AST, name: str) -> bool:
    """Whether something has a name."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _stores(node: ast.stmt, buffers: set[str]) -> bool:
    """Whether a statement writes elements of buffers."""
    return any(
        isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and _name(part.value) in buffers
        for part in parts(node)
    )


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def is_data(index: ast.expr, given: dict[str, ast.expr]) -> bool:
    """Whether a place depends on elements; LLVM has other ways to read every other element, or rows from the end."""
    elements = any(isinstance(part, ast.Subscript) for part in parts(index))
    return elements or any(is_data(given[name.id], given) for name in names(index) if name.id in given)


def at_places(node: ast.For) -> bool:
    """Whether a loop writes at places that are data, or reads several elements next to one."""
    given = given_once(node)
    found: dict[str, set[int]] = {}
    for part in parts(node):
        if isinstance(part, ast.Subscript) and is_data(part.slice, given):
            if isinstance(part.ctx, ast.Store):
                return True
            place = written(part.slice, 2)
            found.setdefault(f"{_name(part.value)} {place.text}", set()).add(place.beside)
    return any(len(besides) > 1 for besides in found.values())


def are_side_by_side(node: ast.For) -> bool:
    """Whether a loop uses elements side by side only: then vectors have any number of lanes, and need no masks."""
    places = [part.slice for part in parts(node) if isinstance(part, ast.Subscript)]
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.Add, ast.Load)
    lets = [part for part in node.body if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)]
    numbers = [let.value for let in lets if isinstance(let.value, (ast.BinOp, ast.IfExp, ast.Name))]
    return not numbers and all(isinstance(part, plain) for place in places for part in ast.walk(place))


def given_once(node: ast.For) -> dict[str, ast.expr]:
    """Names that the body of a loop assigns once, with their expressions."""
    stores = Counter(name.id for name in names(node) if isinstance(name.ctx, ast.Store))
    lets = [part for part in node.body if isinstance(part, ast.Assign)]
    return {t.id: let.value for let in lets for t in let.targets if isinstance(t, ast.Name) and stores[t.id] == 1}
