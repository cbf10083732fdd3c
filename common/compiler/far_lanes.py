"""Elements as far apart as a number says that is known when the kernel runs, ``x[i * n + k]``: lane by lane.

The first lane's address moves, how far the others are from it does not: that is computed once, before the loop. So an
element is one instruction. Where processors gather well, its lanes are read by one instruction instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container
from typing import NamedTuple

from common.compiler.close_steps import CLOSE
from common.compiler.control_flow import BasicBlock
from common.compiler.lane_memory import LaneMemory, is_stepped
from common.compiler.registers import BOOL, INT64, ArrayKind, OneByOne, Register, constant, storage
from common.compiler.syntax_tree import names, parts

MANY = 24
"""Reads of far lanes from which on a loop is nearly as fast with 8 lanes, in half of the code."""
_APART = 8
"""Lanes whose distances are once, three, five and seven times the step, times what an address multiplies by itself."""


class LoopEntry(NamedTuple):
    """The code before a loop: its last block, the number of its last register, and what was computed there for it."""

    block: BasicBlock
    last: int
    known: dict[tuple[str, str], Register]


class FarLanes(LaneMemory):
    """Reads elements that are far apart."""

    _outside: LoopEntry | None = None

    def far_place(self, node: ast.expr) -> tuple[Register, Register]:
        """The place of the first lane, and how far it is from each lane to the next."""
        lanes, none = self._lanes, constant(0, INT64)
        assert lanes is not None
        if lanes.assigned.isdisjoint(part.id for part in names(node)):
            return self.integer(node), none
        match node:
            case ast.Name(id=name) if name == lanes.name:
                return lanes.now, constant(1, INT64)
            case ast.Name(id=name) if name in lanes.given:
                return self.far_place(lanes.given[name])
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                (x, first), (y, second) = self.far_place(left), self.far_place(right)
                return self.operate(op, x, y), first if second.literal == 0 else self.operate(op, first, second)
            case ast.BinOp(left=left, op=ast.Mult() as op, right=right):
                (x, first), (y, second) = self.far_place(left), self.far_place(right)
                if second.literal == 0:
                    return self.operate(op, x, y), self.operate(op, first, y)
                if first.literal == 0:
                    return self.operate(op, x, y), self.operate(op, x, second)
        raise OneByOne("a place")

    def load_far(self, container: Register, kind: ArrayKind, base: Register, step: Register) -> Register | None:
        """Elements that are `step` apart; None under a mask that leaves out others than the last lanes."""
        lanes, one = self._lanes, storage(kind.dtype)
        assert lanes is not None
        if lanes.mask and lanes.active is None:
            return None
        first = self.element(container, base, inside=not lanes.mask)
        if lanes.active is not None and lanes.active.literal is None:
            some = self.register(f"icmp sgt {lanes.active.typed}, 0")
            first = self.register(f"select i1 {some}, ptr {first}, ptr %bufs")
        text, starts = "poison", {0: first}
        for lane in range(lanes.width):
            whole, part = divmod(lane, _APART) if lanes.active is None else (0, lane)
            if whole not in starts:
                apart = self._times(step, whole * _APART * kind.dtype.itemsize)
                starts[whole] = self.register(f"getelementptr i8, ptr {first}, {apart.typed}")
            address = starts[whole]
            if part:
                apart = self._distance(step, part, kind.dtype.itemsize)
                address = self.register(f"getelementptr i8, ptr {address}, {apart.typed}")
            loaded = self.register(f"load {one}, ptr {address}{self._access(kind)}")
            text = self.register(f"insertelement <{lanes.width} x {one}> {text}, {one} {loaded}, i64 {lane}")
        if kind.dtype == BOOL:
            text = self.register(f"icmp ne <{lanes.width} x i8> {text}, zeroinitializer")
        return Register(text, kind.dtype, None, lanes.width)

    def _distance(self, step: Register, lane: int, size: int) -> Register:
        """How many bytes a lane is from the first; the last one that the mask leaves, where it leaves that out."""
        lanes = self._lanes
        assert lanes is not None
        if lanes.active is None:
            odd = lane // (lane & -lane)
            return self.write("mul", INT64, self._times(step, odd * size), constant(lane // odd, INT64))
        key = f"lane {lane} of {step.text} {size}"
        if key not in lanes.counts:
            last = self.extreme("sgt", self.write("sub", INT64, lanes.active, constant(1, INT64)), constant(0, INT64))
            number = self.extreme("slt", constant(lane, INT64), last)
            lanes.counts[key] = self.write("mul", INT64, self._times(step, size), number)
        return lanes.counts[key]

    def _times(self, step: Register, by: int) -> Register:
        """A multiple of a number: computed before a loop over vectors, if it is known there."""
        return self.before(step, f"times {by}", lambda: self.write("mul", INT64, step, constant(by, INT64)))

    def spread(self, value: Register, lanes: int) -> Register:
        """A value in every lane of a vector: before a loop over vectors, if it is known there."""
        return self.before(value, f"in {lanes} lanes", lambda: LaneMemory.spread(self, value, lanes))

    def before(self, value: Register, what: str, make: Callable[[], Register]) -> Register:
        """What `make` computes of a value alone: before a loop over vectors, if it is known there."""
        outside = self._outside
        if outside is None or not value.text.startswith("%v") or int(value.text[2:]) > outside.last:
            return make()
        if (value.text, what) not in outside.known:
            here, self.here = self.here, outside.block
            into = self.here.lines.pop()
            outside.known[value.text, what] = make()
            self.line(into)
            self.here = here
        return outside.known[value.text, what]


def many_far(node: ast.For, given: dict[str, ast.expr]) -> bool:
    """Whether a loop reads many elements that are far apart."""
    assert isinstance(node.target, ast.Name)
    moving = {node.target.id, *given}
    reads = [x.slice for x in parts(node) if isinstance(x, ast.Subscript) and isinstance(x.ctx, ast.Load)]
    return sum(is_stepped(index, moving) or _by_number(index, moving) for index in reads) >= MANY


def _by_number(index: ast.expr, moving: Container[str]) -> bool:
    """Whether the text says how far apart places are, and that is far."""
    for part in parts(index):
        match part:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=ast.Constant(value=int() as by)):
                if name in moving and by > CLOSE:
                    return True
    return False
