"""Loops of kernel source as loops over vectors.

An innermost ``for i in range(a, b)`` is written with vectors if its iterations are independent for all that the text
says: its body only assigns new names and elements at ``something + i``, all elements of one slot at the same place, or
at places ``64 - a + i`` that are further apart than a loop from ``a`` to ``min(a + 64, ...)`` goes; a name that is
given once, such as ``c = k + i``, may stand for a place. Slots that are only read may be read at places that are data,
``x[k[i]]``, or in steps whose length is not in the text, ``x[i * n]``. Each operation does in every lane what it does
for one element, so no bit depends on it. What is left at the end goes by vectors of half as many lanes, with a mask:
nothing outside is read or written. What computes much per element goes by masked vectors from the beginning, unless it
reads or writes elements in steps for which there are no fast masks. A number
of iterations that the text says, and that is not more than two vectors, needs no loop.

Such a loop may also add to accumulators, ``x[i & 15] = add(x[i & 15], ...)``, if it begins at 0: the lanes of a sum
(`common.core.numerics`). They are one register from the beginning of the loop to its end, and all of them exist: a
slot that is addressed like this has `LANES` elements there, however few the loop reaches.

Whatever else a loop does is left to LLVM.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from common.compiler.far_lanes import LoopEntry, many_far
from common.compiler.indexed_rows import LANES_OF_ROWS, at_places, given_once, is_data
from common.compiler.lane_memory import LaneState, Written, accumulators, is_stepped, lane_of, overlap, written
from common.compiler.registers import BOOL, INT64, ArrayKind, OneByOne, Refused, Register, constant, llvm
from common.compiler.several_vectors import SeveralVectors
from common.compiler.syntax_tree import names, parts
from common.core.numerics import LANES

MOST = 32
"""LaneState of a vector of small elements."""

COSTLY = 110
"""Instructions of a loop's scalar definitions from which on its mask costs less than to compile them twice."""


class Vectors(SeveralVectors, ABC):
    """Writes loops with vectors; `_lanes` is set while their bodies are written."""

    rare = False
    """Whether few iterations come here."""

    def vector_loop(self, node: ast.For, name: str, start: Register, stop: Register) -> bool:
        """Write ``for name in range(start, stop)`` with vectors; False, and nothing else, if that is not possible."""
        if not all(map(_is_simple, node.body)):
            return False
        assigned = {name.id for name in names(node) if isinstance(name.ctx, ast.Store)}
        if not assigned.isdisjoint(self.variables):
            return False
        mark = self.mark()
        try:
            self._vector_loop(node, name, start, stop, assigned)
        except (OneByOne, Refused):
            self.back(mark)
            return False
        finally:
            self._lanes = self._outside = None
        return True

    def _vector_loop(self, node: ast.For, name: str, start: Register, stop: Register, assigned: set[str]) -> None:
        counter, given = f"(lane of {name})", given_once(node)
        few_lanes = at_places(node) or (self.sixteen and many_far(node, given))
        lanes = self._count_lanes(node, LANES_OF_ROWS if few_lanes else MOST)
        held = self._hold(node, name)
        if held:
            if start.literal != 0:
                raise OneByOne("accumulators of a loop that does not begin at 0")
            lanes = LANES
        self.variables[counter], most = start, self.span(start, stop)

        def now() -> Register:
            return self.variables[counter]

        def body(width: int, masked: bool) -> None:
            count = self.bounded(self.write("sub", INT64, stop, now()), "slt", width) if masked else None
            mask = "" if count is None else self._among_steps("slt", count, width)
            self._lanes = LaneState(
                name, now(), width, mask, {}, set(), assigned, given, {}, count, {}, {}, {name}, node.body, {}, {}, {}
            )
            self.statements(node.body)
            if any(overlap(self._lanes.places[slot], most) for slot in self._lanes.stored):
                raise OneByOne("two places of one slot")
            self._lanes = None
            self.variables = {key: value for key, value in self.variables.items() if key not in assigned}

        def walk(width: int, end: Register, masked: bool, last: Register | None = None) -> None:
            def inside() -> None:
                self._outside, place = outside._replace(known={}), now()  # a loop may be written again
                if last is not None:
                    self.variables[counter] = self.extreme("slt", place, last)
                body(width, masked)
                self._outside, self.variables[counter] = None, place

            def advance() -> None:
                self.variables[counter] = self.write("add", INT64, now(), constant(width, INT64))

            def test() -> str:
                return self.write("icmp slt", BOOL, now(), end).text

            assert self.here is not None
            outside = LoopEntry(self.here, self._count, {})
            self.loop([counter, *held], test, inside, advance)

        if start.literal is not None and stop.literal is not None and stop.literal - start.literal <= 2 * lanes:
            for first, width, masked in self.counted(node, start.literal, stop.literal, lanes, bool(held)):
                self.variables[counter] = constant(first, INT64)
                body(width, masked)
        elif self.rare:  # half of the code, which is slower by a few percent
            walk(lanes, stop, masked=True)
        else:
            mark, before, close, numbers = self.mark(), self.cost, self.close, self.numbers
            self.widest = self.doubles = 0
            walk(lanes, self.write("sub", INT64, stop, constant(lanes - 1, INT64)), masked=False)
            together = self.together(node, self.cost - before, lanes) if self.close == close else 1
            together = together if self.numbers == numbers else 1
            if together > 1:
                self.back(mark)
                many = together * lanes
                walk(many, self.write("sub", INT64, stop, constant(many - 1, INT64)), masked=False)
                walk(lanes, stop, masked=True)
            elif self.cost - before >= COSTLY and self.close == close:
                self.back(mark)
                walk(lanes, stop, masked=True)
            elif not held and few_lanes:  # much code, of which less is better than a shorter vector
                self._rest(node, name, counter, stop)
            elif not held and self.inside and self.may_be_written_again(node):
                last = self.write("sub", INT64, stop, constant(lanes // 2, INT64))
                enough, few = self.branch(self.write("icmp sle", BOOL, start, last).text)
                self.enter(enough)
                walk(lanes // 2, stop, masked=False, last=last)
                ends = self.leave()
                self.enter(few)
                body(lanes // 2, masked=True)
                self.join([*ends, *self.leave()])
            elif not held:  # a shorter vector, so that few elements cost less than many
                walk(lanes // 2, stop, masked=True)
            else:  # lanes of a sum are what they are
                some, none = self.branch(self.write("icmp slt", BOOL, now(), stop).text)
                self.enter(some)
                body(lanes, masked=True)
                self.join([*self.leave(), none])
        for key, (address, access) in held.items():
            self.line(f"store {self.variables.pop(key).typed}, ptr {address}{access}")
        del self.variables[counter]

    def _rest(self, node: ast.For, name: str, counter: str, stop: Register) -> None:
        """Write the iterations that are left one by one."""

        def body() -> None:
            self.variables[name] = self.variables[counter]
            self.statements(node.body)

        def advance() -> None:
            self.variables[counter] = self.write("add", INT64, self.variables[counter], constant(1, INT64))

        self.loop(
            [counter], lambda: self.write("icmp slt", BOOL, self.variables[counter], stop).text, body, advance, True
        )

    def waits(self, node: ast.Assign) -> bool:
        """Whether a name is given what is written when somebody asks: most numbers of lanes are but places."""
        lanes = self._lanes
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if lanes and name in lanes.given:
                used = {part.id for part in names(value)}
                known = used.isdisjoint(lanes.assigned - lanes.given.keys() - {lanes.name})
                if known and all(isinstance(part, (ast.BinOp, ast.Name, ast.Constant)) for part in parts(value)):
                    lanes.waiting.add(name)
                    return True
        return False

    def late(self, name: str) -> Register | None:
        """The value of a name that has waited: the number of each lane, or an expression of others."""
        lanes = self._lanes
        if lanes is None or name not in lanes.waiting:
            return None
        if name == lanes.name:
            steps = Register(f"<{', '.join(f'i64 {i}' for i in range(lanes.width))}>", INT64, None, lanes.width)
            value = self.write("add", INT64, lanes.now, steps)
        else:
            value = self.expression(lanes.given[name])
        self.variables[name] = value
        return value

    @abstractmethod
    def statements(self, nodes: list[ast.stmt]) -> None:
        """Write statements."""

    def _hold(self, node: ast.For, counter: str) -> dict[str, tuple[str, str]]:
        """Load the accumulators that a loop adds to into variables; by their names where they are stored again."""
        held: dict[str, tuple[str, str]] = {}
        starts: dict[int, str] = {}
        for part in parts(node):
            match part:
                case ast.Subscript(value=ast.Name(id=name), slice=index) if lane_of(index, counter) is not None:
                    buffer = self.variables.get(name)
                    if buffer is None or not isinstance(buffer.kind, ArrayKind) or buffer.kind.dtype == BOOL:
                        raise OneByOne("accumulators")
                    kind, key = buffer.kind, accumulators(buffer.kind, index, counter)
                    start, distance = lane_of(index, counter) or ("", 0)
                    if starts.setdefault(kind.slot, start) != start:  # they might overlap
                        raise OneByOne("accumulators")
                    if key not in held:
                        first = self._held_place(node, start)
                        address = self.element(buffer, self.write("add", INT64, first, constant(distance, INT64)))
                        loaded = self.register(f"load {llvm(kind.dtype, LANES)}, ptr {address}{self._access(kind)}")
                        self.variables[key] = Register(loaded, kind.dtype, None, LANES)
                        held[key] = address, self._access(kind)
        return held

    def _held_place(self, node: ast.For, name: str) -> Register:
        """The number with a name, which a loop leaves as it is; 0 without one."""
        found = self.variables.get(name) if name else constant(0, INT64)
        set_here = {x.id for x in parts(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
        if found is None or found.kind != INT64 or found.lanes > 1 or name in set_here:
            raise OneByOne("accumulators")
        return found

    def _count_lanes(self, node: ast.For, most: int) -> int:
        dtypes = self.dtypes(node)
        sizes = [d.itemsize for d in dtypes if d.kind == "f"] or [d.itemsize for d in dtypes] or [8]
        if dtypes and all(d.kind in "iu" and d.itemsize >= 4 for d in dtypes):
            sizes = [min(sizes)]  # int32 that is computed among int64, as indices are, fills registers
        return min(self.bytes_of_vector(node) // max(sizes), most)

    def order(self, order: str, x: Register, y: Register) -> Register:
        """How two values compare; the index of the loop and a number as the lanes from its first one on."""
        lanes = self._lanes
        if lanes is None or y.lanes > 1 or not order.startswith("icmp s") or x is not self.variables.get(lanes.name):
            return super().order(order, x, y)
        rest = self.bounded(self.write("sub", INT64, y, lanes.now), "slt", lanes.width)
        count = self.bounded(rest, "sgt", -1)
        text = self._among_steps(order.removeprefix("icmp "), count, lanes.width)
        if order == "icmp slt":
            lanes.within[text] = count
        return Register(text, BOOL, None, lanes.width)

    def read_where(self, condition: Register, element: ast.Subscript, other: ast.expr) -> Register | None:
        """An element where a condition holds: in a loop over vectors, under a mask."""
        lanes = self._lanes
        if lanes is None:
            return None
        holds = condition if condition.lanes > 1 else self.spread(condition, lanes.width)
        within = lanes.within.get(condition.text) if isinstance(other, ast.Subscript) else None
        x = self._read_under(holds, element, within and self.write("icmp sgt", BOOL, within, constant(0, INT64)))
        if isinstance(other, ast.Subscript):
            some = within and self.write("icmp slt", BOOL, within, constant(lanes.width, INT64))
            y = self._read_under(self.write("xor", BOOL, holds, constant(True, BOOL)), other, some)
        else:
            y = self.expression(other)
        if x.kind != y.kind or not isinstance(x.kind, np.dtype):
            raise Refused(f"{x.kind} or {y.kind}")
        holds, x, y = self.alike(holds, x, y)
        return Register(self.register(f"select {holds.typed}, {x.typed}, {y.typed}"), x.kind, None, x.lanes)

    def _read_under(self, mask: Register, element: ast.Subscript, some: Register | None) -> Register:
        lanes = self._lanes
        assert lanes is not None
        if lanes.assigned.isdisjoint(part.id for part in names(element.slice)):
            raise OneByOne("a place that does not move is read without a mask")
        if lanes.mask:
            mask = self.write("and", BOOL, mask, Register(lanes.mask, BOOL, None, lanes.width))
        self._lanes = lanes._replace(mask=mask.text, active=None, some=some)
        value = self.expression(element)
        self._lanes = lanes
        return value

    # ---------------------------------------------------------------- elements
    def read(self, container: Register, index: ast.expr) -> Register:
        """An element, or those of all lanes."""
        kind = container.kind
        if self._lanes is None or not isinstance(kind, ArrayKind):
            return super().read(container, index)
        if lane_of(index, self._lanes.name) is not None:
            self._lanes.places.setdefault(kind.slot, set()).add(_WRAPPED)
            return self.variables[accumulators(kind, index, self._lanes.name)]
        places = self._lanes.places.setdefault(kind.slot, set())
        try:
            base, step = self.place(index)
            places.add(written(index, step))
        except OneByOne:
            if not (is_data(index, self._lanes.given) or is_stepped(index, {self._lanes.name, *self._lanes.given})):
                raise
            places.add(written(index, 0))
            found = self.load_rows(container, kind, index)
            if found is None and not self.gathers and not is_data(index, self._lanes.given):
                found = self.load_far(container, kind, *self.far_place(index))
            return self._gather_lanes(container, kind, self.integer(index)) if found is None else found
        if step > 1:
            return self._load_steps(container, kind, index, base, step)
        return self._load_lanes(container, kind, base) if step else self.load(container, base)

    def put(self, container: Register, index: ast.expr, value: Register) -> None:
        """Write an element, or those of all lanes."""
        kind = container.kind
        if self._lanes is None or not isinstance(kind, ArrayKind):
            super().put(container, index, value)
            return
        if lane_of(index, self._lanes.name) is not None:
            self._add_up(kind, index, value)
            return
        base, step = self.place(index)
        if not step:
            raise OneByOne("a place that does not move")
        in_place = kind.slot in self._lanes.places
        self._lanes.places.setdefault(kind.slot, set()).add(written(index, step))
        self._lanes.stored.add(kind.slot)
        if not isinstance(value.kind, np.dtype) or value.kind != kind.dtype:
            raise Refused(f"{value.kind} is stored as {kind.dtype}")
        if in_place and self.sixteen:  # else what is chosen between an element and more is stored under a mask
            value = value._replace(text=self.register(f"freeze {value.typed}"))
        if step > 1:
            self._store_steps(container, kind, index, base, step, value)
        else:
            self._store_lanes(container, kind, base, value)

    def _add_up(self, kind: ArrayKind, index: ast.expr, value: Register) -> None:
        """Give accumulators a new value, where the loop has elements for them."""
        lanes = self._lanes
        assert lanes is not None
        lanes.places.setdefault(kind.slot, set()).add(_WRAPPED)
        lanes.stored.add(kind.slot)
        key = accumulators(kind, index, lanes.name)
        old = self.variables[key]
        if value.kind != kind.dtype:
            raise Refused(f"{value.kind} is stored as {kind.dtype}")
        if value.lanes == 1:
            value = self.spread(value, lanes.width)
        if lanes.mask:
            text = self.register(f"select <{lanes.width} x i1> {lanes.mask}, {value.typed}, {old.typed}")
            value = Register(text, kind.dtype, None, lanes.width)
        self.variables[key] = value

    def place(self, node: ast.expr) -> tuple[Register, int]:
        """The place of the first lane, and how far it is from each lane to the next."""
        lanes = self._lanes
        assert lanes is not None
        if lanes.assigned.isdisjoint(part.id for part in names(node)):
            return self.integer(node), 0
        match node:
            case ast.Name(id=name) if name == lanes.name:
                return lanes.now, 1
            case ast.Name(id=name) if name in lanes.given:
                return self.place(lanes.given[name])
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                (x, first), (y, second) = self.place(left), self.place(right)
                if not (first and second) and not (second and isinstance(op, ast.Sub)):
                    return self.operate(op, x, y), first or second
            case ast.BinOp(left=left, op=ast.Mult() as op, right=ast.Constant(value=int() as by)) if by > 0:
                x, first = self.place(left)
                return self.operate(op, x, constant(by, INT64)), first * by
        raise OneByOne("a place")

    def choose(self, condition: str, then: Callable[[], Register], other: Callable[[], Register]) -> Register | None:
        """One of two values, of which the other is not computed: not in a loop over vectors, whose lanes may differ."""
        if self._lanes is not None:
            raise OneByOne("a branch")
        return super().choose(condition, then, other)

    def machine(self, *arguments: object) -> Register | None:
        """Call machine code: once, not once per lane, so not in a loop over vectors."""
        if self._lanes is not None:
            raise OneByOne("a call")
        return super().machine(*arguments)  # type: ignore[arg-type]


_WRAPPED = Written("accumulators", 0, 0)
"""The place of all accumulators of a slot: those at different multiples of `LANES` do not overlap."""


def _is_simple(node: ast.stmt) -> bool:
    """Whether a statement only assigns names and elements."""
    if isinstance(node, ast.Assign):
        return len(node.targets) == 1 and isinstance(node.targets[0], (ast.Name, ast.Subscript))
    return isinstance(node, (ast.AugAssign, ast.Pass))
