"""Several vectors side by side in loops that compute much: one is computed while another waits for an operation."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from common.compiler.indexed_rows import IndexedRows, are_side_by_side
from common.compiler.lane_memory import lane_of
from common.compiler.registers import BOOL, INT64, ArrayKind, Register, constant
from common.compiler.syntax_tree import names, parts
from common.core.numerics import LANES
from common.core.op import EQUAL

BYTES = 64
"""Of a vector of the widest floats of a loop: a register of AVX-512; LLVM splits it where registers are shorter."""
MUCH_CODE = 160
"""Statements of a loop, of which sixteen registers hold few values: vectors of one register then, and half the code."""
CHAIN = 20
"""Instructions of a loop's scalar definitions from which on they wait for each other longer than for memory."""
LONG_CHAIN = 50
"""Instructions from which on several definitions, one after the other, are more than the processor looks ahead."""
NARROW = range(16, 43)
"""Instructions of the longest definition that makes a chain of several, and leaves registers for eight vectors."""
FEW_VALUES = 4
"""Values of a loop that are kept for later statements, in registers of eight vectors."""
REGISTERS = 4
"""Registers of 32 bytes for each value, if there are sixteen: as many chains as the processor overlaps."""
IN_ORDER = 45
"""Instructions of a definition in float64 from which on the order of the text is better than LLVM's, which computes one
register's values after the other's to keep few: with sixteen registers that takes up to three times as long."""
MUCH, MOST, TOO_MUCH = 110, 130, 250
"""Instructions from which on more than two vectors are too much code; if few values are kept; and more than one."""


class SeveralVectors(IndexedRows):
    """Says how many vectors a loop goes on by, and adds them up one after the other."""

    numbers = 0
    """Definitions of vectors of int64, of which several would take many registers."""
    widest = 0
    """Instructions of the longest definition of vectors."""

    one_program = in_order = False
    """Whether the kernel was written for one program; whether it is faster in the order of its text."""

    def scalar(self, name: str, definition: Callable[..., Any], operands: list[Register]) -> Register:
        """A scalar definition of operands."""
        vectors = [x.kind for x in operands if x.lanes > 1]
        self.numbers += INT64 in vectors
        before = self.cost
        value = super().scalar(name, definition, operands)
        if vectors:
            self.widest = max(self.widest, self.cost - before)
        return value

    @abstractmethod
    def place(self, node: ast.expr) -> tuple[Register, int]:
        """The place of the first lane, and how far it is from each lane to the next."""

    def call(self, node: ast.expr) -> Register | None:
        """What a call gives; where the number of a lane is equal to another number, without a vector of int64."""
        lanes = self._lanes
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=index), other]) if lanes and name == EQUAL:
                if self.variables.get(index, "") is self.variables.get(lanes.name):
                    index = lanes.name
                if index in lanes.waiting:
                    y = self.expression(other)
                    first, step = self.place(ast.Name(index, ast.Load()))
                    if y.kind == INT64 and y.lanes == 1 and step == 1:
                        count = self.bounded(self.write("sub", INT64, y, first), "slt", lanes.width)
                        text = self._among_steps("eq", self.bounded(count, "sgt", -1), lanes.width)
                        return Register(text, BOOL, None, lanes.width)
        return super().call(node)

    def bytes_of_vector(self, node: ast.For) -> int:
        """Bytes of a vector of the widest floats of a loop."""
        return BYTES // 2 if self.sixteen and len(node.body) > MUCH_CODE else BYTES

    def bounded(self, value: Register, order: str, bound: int) -> Register:
        """A number, or a bound that it is beyond."""
        return self.extreme(order, value, constant(bound, INT64))

    def together(self, node: ast.For, cost: int, lanes: int) -> int:
        """How many vectors a loop, which has been written with one, goes on by; `cost` is that of its definitions."""
        dtypes = set(self.dtypes(node))
        in_order = self.sixteen and self.doubles >= IN_ORDER
        self.in_order |= in_order
        if not 0 < self.long <= self.widest or cost < CHAIN or len(dtypes) != 1:
            return 1
        (dtype,) = dtypes
        if dtype.kind != "f":
            return 1
        if any(_adds_elements(part, node.target) for part in node.body):
            return 1
        if in_order or (self.one_program and self.sixteen):
            size = 8 if self.doubles else dtype.itemsize
            return max(REGISTERS * 32 // (lanes * size), 1)
        few = most_kept(node.body) <= FEW_VALUES
        if cost >= (MOST if few else MUCH):
            return 2 if cost < TOO_MUCH else 1
        return 8 if few and cost >= LONG_CHAIN and self.widest in NARROW else 4

    def may_be_written_again(self, node: ast.For) -> bool:
        """Whether a loop may end with a vector that begins before its rest: it reads no array that it writes.

        So the vector needs no mask, with which a store takes as long as twelve without.
        """
        written, read = set[int](), set[int]()
        for x in parts(node):
            match x:
                case ast.Subscript(value=ast.Name(id=name)) if name in self.variables:
                    kind = self.variables[name].kind
                    if isinstance(kind, ArrayKind):
                        (written if isinstance(x.ctx, ast.Store) else read).add(kind.slot)
        augmented = any(isinstance(part, ast.AugAssign) for part in node.body)
        apart = self.one_program or self.apart
        return self.sixteen and apart and not augmented and written.isdisjoint(read)

    def counted(self, node: ast.For, start: int, stop: int, lanes: int, held: bool) -> Iterator[tuple[int, int, bool]]:
        """The vectors of a loop that the text counts: where they begin, how wide they are, whether they have masks."""
        for first in range(start, stop, lanes):
            left = stop - first
            whole = max(1 << (left - 1).bit_length(), 2)
            width = lanes if held or left > lanes else left if left > 2 and are_side_by_side(node) else whole
            if left < width and stop - start > 1 and self.may_be_written_again(node):
                width = whole if left < stop - start >= whole else whole // 2
                yield from ((place, width, False) for place in sorted({min(first, stop - width), stop - width}))
            else:
                yield first, width, left < width

    def dtypes(self, node: ast.For) -> list[np.dtype[Any]]:
        """Those of the buffers that a loop uses."""
        used = {p.value.id for p in parts(node) if isinstance(p, ast.Subscript) and isinstance(p.value, ast.Name)}
        kinds = [self.variables[name].kind for name in used if name in self.variables]
        return [kind.dtype for kind in kinds if isinstance(kind, ArrayKind)]

    def adds_by_parts(self, node: ast.Assign) -> bool:
        """Write ``x[i & 15] = add(x[i & 15], t)`` for each sixteen lanes of more; False if it is anything else."""
        lanes = self._lanes
        match node.targets:
            case [ast.Subscript(value=container, slice=index)] if lanes and lanes.width > LANES:
                if lane_of(index, lanes.name) is None:
                    return False
            case _:
                return False
        used = {part.id for part in names(node.value)}
        for name in sorted(used & lanes.waiting):
            self.late(name)
        whole = {name: self.variables[name] for name in used & self.variables.keys()}
        whole = {name: value for name, value in whole.items() if value.lanes == lanes.width}
        self._lanes = lanes._replace(width=LANES)
        for first in range(0, lanes.width, LANES):
            self.variables.update({name: self._part(value, first) for name, value in whole.items()})
            self.put(self.container(container), index, self.expression(node.value))
        self.variables.update(whole)
        self._lanes = lanes
        return True

    def _part(self, value: Register, first: int) -> Register:
        """As many lanes of a vector as there are accumulators."""
        steps = ", ".join(f"i32 {i}" for i in range(first, first + LANES))
        kind = value.typed.removesuffix(f" {value.text}")
        text = self.register(f"shufflevector {value.typed}, {kind} poison, <{LANES} x i32> <{steps}>")
        return Register(text, value.kind, None, LANES)


def most_kept(statements: list[ast.stmt]) -> int:
    """The largest number of values that statements have given names before one of them, which then needs some."""
    last = {part.id: i for i, statement in enumerate(statements) for part in names(statement)}
    kept, most = set[str](), 0
    for i, statement in enumerate(statements):
        most = max(most, len(kept))
        kept |= {part.id for part in names(statement) if isinstance(part.ctx, ast.Store)}
        kept = {name for name in kept if last[name] > i}
    return most


def _adds_elements(node: ast.stmt, counter: ast.expr) -> bool:
    """Whether a statement adds to accumulators what it reads itself, and not a value with a name."""
    match node, counter:
        case ast.Assign(targets=[ast.Subscript(slice=place)], value=value), ast.Name(id=name) if lane_of(place, name):
            read = [part for part in parts(value) if isinstance(part, ast.Subscript)]
            return any(lane_of(part.slice, name) is None for part in read)
    return False
