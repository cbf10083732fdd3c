"""Elements of all lanes of a vector: loads and stores side by side, in steps, at places that are data, under a mask."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

import numpy as np

from common.compiler.expressions import Expressions
from common.compiler.registers import BOOL, INT64, ArrayKind, OneByOne, Register, constant, storage
from common.compiler.syntax_tree import parts
from common.core.numerics import LANES

_ORDERS = {"slt": lt, "sle": le, "sgt": gt, "sge": ge, "eq": eq, "ne": ne}
_BRIEF = {"float": "f32", "double": "f64", "half": "f16"}


class Written(NamedTuple):
    """A place as written, ``text + beside``, and how far it is from each lane to the next."""

    text: str
    beside: int
    step: int


def written(index: ast.expr, step: int) -> Written:
    """Read an index off its text, if it grows by this much from each lane to the next."""
    match index:
        case ast.BinOp(
            left=ast.BinOp(left=ast.Constant(value=int() as beside), op=ast.Sub(), right=start),
            op=ast.Add(),
            right=ast.Name(id=name),
        ) if step == 1:
            return Written(f"{ast.dump(start)} {name}", beside, step)
    if not step:
        return Written(ast.dump(index), 0, step)
    terms: list[str] = []
    beside = _add_terms(index, terms)
    return Written(" + ".join(terms), beside, step)


def _add_terms(index: ast.expr, terms: list[str]) -> int:
    """Append the terms of a sum that are no numbers; return the sum of those that are."""
    match index:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _add_terms(left, terms) + _add_terms(right, terms)
        case ast.Constant(value=int() as beside):
            return beside
    terms.append(ast.dump(index))
    return 0


def overlap(places: set[Written], most: int | None) -> bool:
    """Whether different places may be one element.

    They are not if they stand closer to each other than the steps between lanes, or further apart than a loop of `most`
    iterations goes.
    """
    if len({(p.text, p.step) for p in places}) > 1:
        return True
    besides = sorted(p.beside for p in places)
    if all(p.step > 1 for p in places):
        return any(besides[-1] - besides[0] >= p.step for p in places)
    return any(most is None or high - low < most for low, high in pairwise(besides))


class Places(NamedTuple):
    """Places with one text, by their distances: those that every iteration reads, and those that it writes once."""

    read: tuple[int, ...]
    stored: tuple[int, ...]


class LaneState(NamedTuple):
    """Where the lanes of a vector are: elements `now`, ... of the loop over `name`, as far as `mask` says.

    Attributes
    ----------
    places, stored : per slot its places, and which slots are written.
    assigned, given : the names that the body assigns, and what those mean that it assigns once.
    within : how many lanes there are before a bound, by the condition that says which.
    active : how many lanes there are, if the mask leaves out the last ones only.
    wide, counts : masks of vectors that hold all elements between the lanes, and how many there are, by what they are.
    waiting : names whose values are written when they are needed.
    body : the statements of the loop.
    by_text : the places of a slot with one text.
    taken : lanes taken from a window, by slot, text of the place, distance from there, and their number.
    late_stores : values of a slot that wait for others of their window, by their distances from the text's place.
    some : of a piece of an array, whether any lane is in it; None of what is not in pieces.
    """

    name: str
    now: Register
    width: int
    mask: str
    places: dict[int, set[Written]]
    stored: set[int]
    assigned: set[str]
    given: dict[str, ast.expr]
    within: dict[str, Register]
    active: Register | None
    wide: dict[str, str]
    counts: dict[str, Register]
    waiting: set[str]
    body: list[ast.stmt]
    by_text: dict[tuple[int, str], Places]
    taken: dict[tuple[int, str, int, int], str]
    late_stores: dict[int, dict[int, str]]
    some: Register | None = None


class LaneMemory(Expressions):
    """Reads and writes the elements of all lanes."""

    _lanes: LaneState | None = None
    close = 0
    """Accesses in close steps that are fast without a mask only: under one, elements are gathered."""
    sixteen = False
    """Whether there are sixteen registers, and masks with which a store takes as long as twelve without."""
    gathers = False
    """Whether the processor gathers elements under a mask in less time than it loads them one by one."""
    has_masks = False
    """Whether the processor has masks that loops compute; others branch for each element."""

    def _among_steps(self, order: str, count: Register, lanes: int) -> str:
        """How the numbers of the lanes compare with a small number: in 32 bits, so that a register holds them all."""
        if count.literal is not None:
            return literal_mask(_ORDERS[order](i, count.literal) for i in range(lanes))
        some = self.spread(Register(self.register(f"trunc {count.typed} to i32"), np.dtype(np.int32)), lanes)
        steps = ", ".join(f"i32 {i}" for i in range(lanes))
        return self.register(f"icmp {order} {some.type} <{steps}>, {some.text}")

    def _strided(self, base: Register, step: int) -> Register:
        """The places of all lanes."""
        assert self._lanes is not None
        width = self._lanes.width
        steps = Register(f"<{', '.join(f'i64 {i * step}' for i in range(width))}>", INT64, None, width)
        return self.write("add", INT64, base, steps)

    def _load_lanes(self, container: Register, kind: ArrayKind, base: Register) -> Register:
        lanes = self._lanes
        assert lanes is not None
        one, address = storage(kind.dtype), self.element(container, base, inside=not lanes.mask)
        if lanes.some is not None:  # processors are slow to find that nothing is at an address, even if nothing is read
            address = self.register(f"select {lanes.some.typed}, ptr {address}, ptr {container.text}")
        vector, access = f"<{lanes.width} x {one}>", self._access(kind)
        if lanes.mask:
            name = self._masked("load", kind, lanes.width)
            align, _, scopes = access.removeprefix(", align ").partition(",")
            arguments = f"ptr {address}, i32 {align}, <{lanes.width} x i1> {lanes.mask}, {vector} zeroinitializer"
            text = self.register(f"call {vector} @{name}({arguments}),{scopes}")
        else:
            text = self.register(f"load {vector}, ptr {address}{access}")
        if kind.dtype == BOOL:
            text = self.register(f"icmp ne {vector} {text}, zeroinitializer")
        return Register(text, kind.dtype, None, lanes.width)

    def _gather_lanes(self, container: Register, kind: ArrayKind, places: Register) -> Register:
        """The elements at places that are data.

        No processor gathers what is shorter than four bytes, and LLVM lets few gather anything else: elements are
        loaded lane by lane. Instead of a branch per lane, a lane that the mask leaves out loads something else, the
        first of the buffers' addresses.
        """
        lanes = self._lanes
        assert lanes is not None
        if places.lanes == 1:
            raise OneByOne("a place")
        vector = f"<{lanes.width} x {storage(kind.dtype)}>"
        address = self.register(f"getelementptr {storage(kind.dtype)}, ptr {container.text}, {places.typed}")
        align, _, scopes = self._access(kind).removeprefix(", align ").partition(",")
        mask = lanes.mask or "splat (i1 true)"
        if lanes.mask and (kind.dtype.itemsize < 4 or not self.gathers):
            several, mask = f"<{lanes.width} x ptr>", "splat (i1 true)"
            one = self.register(f"insertelement {several} poison, ptr %bufs, i64 0")
            splat = f"<{lanes.width} x i32> zeroinitializer"
            other = self.register(f"shufflevector {several} {one}, {several} poison, {splat}")
            choice = f"{several} {address}, {several} {other}"
            address = self.register(f"select <{lanes.width} x i1> {lanes.mask}, {choice}")
        arguments = (
            f"<{lanes.width} x ptr> {address}, i32 {align}, <{lanes.width} x i1> {mask}, {vector} zeroinitializer"
        )
        text = self.register(f"call {vector} @{self._masked('gather', kind, lanes.width)}({arguments}),{scopes}")
        if kind.dtype == BOOL:
            text = self.register(f"icmp ne {vector} {text}, zeroinitializer")
        return Register(text, kind.dtype, None, lanes.width)

    def _store_lanes(self, container: Register, kind: ArrayKind, base: Register, value: Register) -> None:
        lanes = self._lanes
        assert lanes is not None
        if value.lanes == 1:
            value = self.spread(value, lanes.width)
        address, text, access = self.element(container, base), value.typed, self._access(kind)
        if kind.dtype == BOOL:
            vector = f"<{lanes.width} x i8>"
            text = f"{vector} {self.register(f'zext {text} to {vector}')}"
        if not lanes.mask:
            self.line(f"store {text}, ptr {address}{access}")
            return
        name = self._masked("store", kind, lanes.width)
        align, _, scopes = access.removeprefix(", align ").partition(",")
        masked = f"call void @{name}({text}, ptr {address}, i32 {align}, <{lanes.width} x i1> {lanes.mask}),{scopes}"
        whole = lanes.width * kind.dtype.itemsize >= 64  # others are the rest of a loop
        if not (self.sixteen and whole and lanes.active and lanes.active.literal is None):
            self.line(masked)
            return
        ends = []
        every = self.write("icmp sgt", BOOL, lanes.active, constant(lanes.width - 1, INT64)).text
        for edge, line in zip(self.branch(every), (f"store {text}, ptr {address}{access}", masked), strict=True):
            self.enter(edge)
            self.line(line)
            ends += self.leave()
        self.join(ends)

    def _scatter_lanes(self, container: Register, kind: ArrayKind, base: Register, step: int, value: Register) -> None:
        """Write elements that are `step` apart: few processors have an instruction for that, which is faster."""
        lanes = self._lanes
        assert lanes is not None
        if kind.dtype.itemsize < 4:
            raise OneByOne("a place")
        if value.lanes == 1:
            value = self.spread(value, lanes.width)
        one = storage(kind.dtype)
        if not lanes.mask and not self.whole:
            for lane in range(lanes.width):
                part = self.register(f"extractelement {value.typed}, i64 {lane}")
                address = self.element(container, self.write("add", INT64, base, constant(lane * step, INT64)))
                self.line(f"store {one} {part}, ptr {address}{self._access(kind)}")
            return
        address = self.register(f"getelementptr {one}, ptr {container.text}, {self._strided(base, step).typed}")
        align, _, scopes = self._access(kind).removeprefix(", align ").partition(",")
        mask = lanes.mask or "splat (i1 true)"
        arguments = f"{value.typed}, <{lanes.width} x ptr> {address}, i32 {align}, <{lanes.width} x i1> {mask}"
        self.line(f"call void @{self._masked('scatter', kind, lanes.width)}({arguments}),{scopes}")

    def _masked(self, what: str, kind: ArrayKind, lanes: int) -> str:
        """The name of LLVM's masked load, store, gather or scatter, declared."""
        element, mask = storage(kind.dtype), f"<{lanes} x i1>"
        vector, many = f"<{lanes} x {element}>", f"v{lanes}" if what in ("gather", "scatter") else ""
        stores, address = what in ("store", "scatter"), f"<{lanes} x ptr>" if many else "ptr"
        name = f"llvm.masked.{what}.v{lanes}{_BRIEF.get(element, element)}.{many}p0"
        operands = [vector, address, "i32", mask] if stores else [address, "i32", mask, vector]
        declaration = f'declare {"void" if stores else vector} @"{name}"({", ".join(operands)})'
        self.module.add([(name, declaration)])
        return name


def literal_mask(lanes: Iterable[bool]) -> str:
    """A mask that the text says."""
    return f"<{', '.join(f'i1 {str(bool(x)).lower()}' for x in lanes)}>"


def lane_of(index: ast.expr, counter: str) -> tuple[str, int] | None:
    """Where the accumulators of ``x[counter & 15]``, ``x[32 + (counter & 15)]`` or ``x[name + 32 + (counter & 15)]``
    begin: after a name, which may be empty, and so many; None for other places.
    """
    match index:
        case ast.BinOp(left=ast.Name(id=name), op=ast.BitAnd(), right=ast.Constant(value=mask)):
            return ("", 0) if name == counter and mask == LANES - 1 else None
        case ast.BinOp(left=first, op=ast.Add(), right=right) if lane_of(right, counter) == ("", 0):
            match first:
                case ast.Constant(value=int() as start):
                    name = ""
                case ast.Name(id=name):
                    start = 0
                case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int() as start)):
                    pass
                case _:
                    return None
            return (name, start) if name != counter and start >= 0 and start % LANES == 0 else None
    return None


def accumulators(kind: ArrayKind, index: ast.expr, counter: str) -> str:
    """The name of the variable that holds accumulators during a loop."""
    return f"(accumulators {kind.slot} {lane_of(index, counter)})"


def is_stepped(index: ast.expr, moving: Container[str]) -> bool:
    """Whether places are so far apart as a number says that is known when the kernel runs.

    Parameters
    ----------
    index : a place.
    moving : the name that a loop counts with, and those that it gives once.
    """
    products = [part for part in parts(index) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)]
    pairs = [[x.id for x in (p.left, p.right) if isinstance(x, ast.Name)] for p in products]
    return any(len(pair) == 2 and (pair[0] in moving) is not (pair[1] in moving) for pair in pairs)
