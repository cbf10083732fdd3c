"""Sums and maxima of rows and the ops after them as one kernel: a row is read once from memory, again from the cache.

Softmax, layer normalisation and their gradients are of this kind: ``y * (g - S(g * y))``. A kernel goes through the
rows; in each it computes the sums, what follows from them, and then the elements (benchmarks/backward_passes.py). A
costly function that a sum and the elements need is computed once, and waits in the result's row. Ops and the order of
sums are those of the records, so the bits are those of the ops one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from common.compiler.loop_ir import Call, If, Kernel, Let, Loop, Place, Store
from common.core.numerics import BLOCK, LANES
from common.evaluate import kernels as eager_kernels
from common.evaluate import reduction_kernels
from common.evaluate.fused_columns import FusedColumns, buffers, columns_beside, in_blocks
from common.evaluate.fused_lines import NUMBERS, DelayedOp, Fused, argument, is_costly
from common.kernels.arrays import shared_parts
from common.kernels.arrays.shared_parts import PARTS, WHOLE
from common.runtime.call_text import MAX_INPUTS

_SHIFT = BLOCK.bit_length() - 1
_LARGE = 1 << 19
"""Bytes of an operand that leave nothing else in a second-level cache."""


class DelayedReduction(NamedTuple):
    """A delayed sum or maximum over the last dimensions, which stay with size 1; and how it runs alone."""

    kind: str
    operand: Any
    dim: tuple[int, ...]
    builtin: Any
    otherwise: Any

    def may_wait(self, spec: Any) -> bool:
        """Whether it may become part of another kernel.

        Maxima only of what lies in memory. Where functions are costly, and the operand fits into the cache, one loop
        over all rows is as fast as a loop per row, whose last vector is not full.
        """
        shape, dim = self.operand.spec.shape, self.dim
        if not dim or dim != tuple(range(dim[0], len(shape))) or len(spec.shape) != len(shape):
            return False
        if self.operand.dtype.kind != "f" or self.operand.dtype != spec.dtype or spec.shape == shape:
            return False
        if self.kind == "sum" and not is_costly(self.operand):
            return True
        lies = bool(self.operand.written) or self.operand.made is None
        return (self.kind == "sum" or lies) and prod(shape) * self.operand.dtype.itemsize >= _LARGE

    def is_of_columns(self) -> bool:
        """Whether it is a sum over the first dimensions, of which several may be one kernel."""
        shape, dim = self.operand.spec.shape, self.dim
        of_floats = self.kind == "sum" and self.operand.dtype.kind == "f" and 0 not in shape
        return of_floats and bool(dim) and dim == tuple(range(len(dim))) and len(dim) < len(shape)


class _Item(NamedTuple):
    """One step of a kernel: of a row, or of an element.

    Attributes
    ----------
    op : an elementwise op, or "sum" or "max" of the operand's row.
    operands : ("t", position of an item), ("x", position of an input), ("n", number).
    level : how many sums and maxima, one needing the other, come before.
    """

    op: Any
    operands: Sequence[tuple[str, Any]]
    of_row: bool
    level: int


def fused_rows(root: Any, also: Sequence[Any] = (), sums: Sequence[Any] = ()) -> Fused | None:
    """A delayed term as one kernel with the sums over rows that it is made of; None if there are none.

    Parameters
    ----------
    also : delayed terms with one element per row that the kernel writes, too: to operands that follow the inputs. They
        must be among what `root` is made of, else the answer is None.
    sums : delayed sums over columns, of terms of the shape of `root`, that the kernel writes, too: per sum, an operand
        for it and one for `common.evaluate.fused_columns.scratch` elements follow the inputs.
    """
    found = _Collected(root)
    if found.split is None or len(found.inputs) + len(also) > MAX_INPUTS or 0 in root.spec.shape:
        return None
    if any(x.spec.dtype != root.spec.dtype for x in found.inputs):
        return None
    places = [found.place(x) for x in also]
    if any(kind != "t" or not found.items[i].of_row for kind, i in places):
        return None
    kept = _shared(found.items)
    if len(kept) > 1:  # the row of the result has place for one
        return None
    shape, dtype, split = root.spec.shape, root.spec.dtype, found.split
    beside = columns_beside(sums, found.inputs, split) if sums else None
    if sums and (beside is None or prod(shape[split:]) > BLOCK):
        return None
    classes = [eager_kernels.class_of(x.spec.shape, shape, split) for x in found.inputs]
    if None in classes:
        return None
    rows, columns = prod(shape[:split]), prod(shape[split:])
    source = _source(found.items, dtype, "".join(map(str, classes)), [i for _, i in places], kept, beside)
    count = sum(item.op == "sum" for item in found.items)
    held = dtype.itemsize * count * (LANES + -(-columns // BLOCK))
    dtypes = (dtype,) * (len(classes) + len(also) + 2 * len(sums))
    ints = (rows, columns) if beside else (rows, columns, WHOLE)
    held *= 1 if beside else PARTS
    builtin, run = reduction_kernels.with_scratch(source, "fused_rows", dtypes, shape, dtype, ints, held, False)
    return Fused(builtin or run, run, found.inputs)


class _Collected:
    """A term taken apart: its items, and the terms that they read.

    Attributes
    ----------
    items : in an order in which they can be computed; the last one is the term.
    inputs : the terms that they read.
    split : where the dimensions of a row begin; None if nothing is summed over rows.
    """

    def __init__(self, root: Any) -> None:
        self.items: list[_Item] = []
        self.inputs: list[Any] = []
        self.split: int | None = None
        self._places: dict[int, tuple[str, Any]] = {}
        self._shape = root.spec.shape
        self._place(root)

    def place(self, x: Any) -> tuple[str, Any]:
        """The place of a term among the collected ones; ("", 0) if it is none of them."""
        return self._places.get(id(x), ("", 0))

    def _place(self, x: Any) -> tuple[str, Any]:
        if type(x) in NUMBERS:
            return "n", x
        if id(x) not in self._places:
            self._places[id(x)] = self._add(x)
        return self._places[id(x)]

    def _add(self, x: Any) -> tuple[str, Any]:
        of_row = x.spec.shape != self._shape
        if not x.written and type(x.made) is DelayedReduction and self._is_over_rows(x):
            split = x.made.dim[0]
            if self.split in (None, split):
                self.split = split
                operands = [self._place(x.made.operand)]
                return self._step(_Item(x.made.kind, operands, True, 1 + self._level(operands)))
        elif not x.written and _is_of_floats(x) and (not of_row or self._is_of_rows(x)):
            operands = [self._place(z) for z in x.made.operands]
            return self._step(_Item(x.made.op, operands, of_row, self._level(operands)))
        self.inputs.append(x)
        return "x", len(self.inputs) - 1

    def _step(self, item: _Item) -> tuple[str, Any]:
        self.items.append(item)
        return "t", len(self.items) - 1

    def _level(self, operands: Sequence[tuple[str, Any]]) -> int:
        return max((self.items[v].level for kind, v in operands if kind == "t"), default=0)

    def _is_of_rows(self, x: Any) -> bool:
        """Whether a term has one element per row, and a sum over rows in it."""
        if x.written or x.made is None:
            return False
        if type(x.made) is DelayedReduction:
            return self._is_over_rows(x)
        if not _is_of_floats(x):
            return False
        terms = [z for z in x.made.operands if type(z) not in NUMBERS]
        return all(z.spec.shape == x.spec.shape for z in terms) and any(map(self._is_of_rows, terms))

    def _is_over_rows(self, x: Any) -> bool:
        return bool(x.made.operand.spec.shape == self._shape and not x.made.is_of_columns())


def _is_of_floats(x: Any) -> bool:
    return type(x.made) is DelayedOp and x.made.is_of_floats()


def _elements(
    items: Sequence[_Item], lasts: Sequence[tuple[str, Any]], done: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Of elements that one loop computes: the steps up to what is done already, in order, and the inputs they read."""
    steps, reads, pending = set[int](), set[int](), [*lasts]
    while pending:
        kind, v = pending.pop()
        if kind == "x":
            reads.add(v)
        elif kind == "t" and not items[v].of_row and v not in steps:
            steps.add(v)
            pending += () if v in done else items[v].operands
    return sorted(steps), sorted(reads)


def _loops(items: Sequence[_Item]) -> list[list[tuple[str, Any]]]:
    """The values that each loop over a row computes: operands of the sums of one level, and last the result."""
    sums = [[x.operands[0] for x in items if x.op == "sum" and x.level == level] for level in _levels(items)]
    return [*filter(None, sums), [("t", len(items) - 1)]]


def _levels(items: Sequence[_Item]) -> range:
    return range(1 + max(item.level for item in items))


def _shared(items: Sequence[_Item]) -> list[int]:
    """Costly elements that more than one loop over a row needs."""
    needed = [i for lasts in _loops(items) for i in _elements(items, lasts, ())[0]]
    return [i for i in dict.fromkeys(needed) if items[i].op.costly and needed.count(i) > 1]


def _source(
    items: Sequence[_Item],
    dtype: np.dtype,
    classes: str,
    also: Sequence[int],
    kept: Sequence[int],
    beside: FusedColumns | None,
) -> str:
    """Kernel source; classes of operands as in `common.evaluate.kernels.loop_source`.

    Scratch: the lanes of the sums of a level, then per sum those of its blocks; where nothing is summed over columns,
    rows are shared among threads, and each part has scratch of its own.

    Parameters
    ----------
    also : items that are written beside the last one.
    kept : elements that wait in the result's row until that is written.
    beside : what is summed over columns.
    """
    names = [*(f"also{i}" for i in also), *(buffers(beside) if beside else ()), "y", "acc"]
    slots = {name: f"b{len(classes) + i}" for i, name in enumerate(names)}
    acc = slots["acc"]
    done: list[int] = []
    place = {"f": ("p", "c"), "c": ("", "c")}
    sums = [i for i, item in enumerate(items) if item.op == "sum"]
    own = "own + " if sums and not beside else ""
    parts = {i: f"{own}{LANES * len(sums)} + {n} * blocks" for n, i in enumerate(sums)}

    def text(kind: str, value: Any) -> str:
        return argument(kind, value, dtype)

    def assignment(i: int) -> Let:
        return Let(f"t{i}", Call(items[i].op.name, [text(*x) for x in items[i].operands]))

    def elements(lasts: Sequence[tuple[str, Any]], start: str) -> list[Any]:
        """Statements of an inner loop that compute elements: what they need of their place, in order."""
        steps, reads = _elements(items, lasts, done)
        waits = Place(slots["y"], f"{start}p", "c")
        body: list[Any] = []
        for i in reads:
            if classes[i] in place:
                base, var = place[classes[i]]
                body.append(Let(f"x{i}", Place(f"b{i}", f"{start}{base}".removesuffix(" + "), var)))
        body += [Let(f"t{i}", waits) if i in done else assignment(i) for i in steps]
        new = [i for i in kept if i in steps and i not in done]
        done.extend(new)
        return [*body, *(Store(waits, f"t{i}") for i in new)]

    def totals(now: Sequence[int]) -> list[Any]:
        """Statements that compute sums of one level, in one loop over the row but for those of what lies in memory."""
        of = {i: items[i].operands[0] for i in now}
        lie = [i for i, (kind, v) in of.items() if kind == "x" and classes[v] == "f"]
        part = {i: Place(acc, parts[i], f"(k >> {_SHIFT})") for i in now}
        block: list[Any] = [Let("n", f"min({BLOCK}, columns - k)")]
        block += [Store(part[i], Call("block_sum", (f"b{of[i][1]}", "p + k", "n"))) for i in lie]
        lanes = {i: f"{own}{LANES * n}" for n, i in enumerate(i for i in now if i not in lie)}
        if lanes:
            body = elements([of[i] for i in lanes], "k + ")
            for i, lane in lanes.items():
                total = Place(acc, lane, f"(c & {LANES - 1})")
                body.append(Store(total, Call("add", (total, text(*of[i])))))
            first = own.removesuffix(" + ")
            block += [Loop("c", str(LANES * len(lanes)), [Store(Place(acc, first, "c"), f"{dtype}(0)")])]
            block += [Loop("c", "n", body)]
        block += [Store(part[i], Call("block_sum", (acc, lane, LANES))) for i, lane in lanes.items()]
        found: list[Any] = [Loop("k", "columns", block, step=str(BLOCK))]
        for i in now:
            whole = Let(f"t{i}", Call("block_sum", (acc, parts[i], "blocks")))
            found += [Let(f"t{i}", Place(acc, parts[i])), If("blocks > 1", [whole])]
        return found

    row: list[Any] = [Let("p", "r * columns")]
    row += [Let(f"x{i}", Place(f"b{i}", "r")) for i, k in enumerate(classes) if k == "r"]
    for level in _levels(items):
        here = [(i, item) for i, item in enumerate(items) if item.of_row and item.level == level]
        tops = [(i, item.operands[0][1]) for i, item in here if item.op == "max"]
        row += [Let(f"t{i}", Call("row_max", (f"b{x}", "p", "columns"))) for i, x in tops]
        now = [i for i, item in here if item.op == "sum"]
        row += totals(now) if now else ()
        row += [assignment(i) for i, item in here if type(item.op) is not str]
    last = "t", len(items) - 1
    row.append(Loop("c", "columns", [*elements([last], ""), Store(Place(slots["y"], "p", "c"), text(*last))]))
    row += [Store(Place(slots[f"also{i}"], "r"), f"t{i}") for i in also]
    head = [Let("columns", "n1"), Let("blocks", f"(columns + {BLOCK - 1}) >> {_SHIFT}")]
    head += [Let(f"x{i}", Place(f"b{i}")) for i, k in enumerate(classes) if k == "s"]
    buffer_dtypes = [dtype] * (len(classes) + len(names))
    if beside:
        return Kernel(buffer_dtypes, 2, [*head, *in_blocks(row, beside, dtype, classes, slots)]).source("fused_rows")
    shared = shared_parts.parts(2, "n0", f"n0 * max(n1, {LANES})", slots["y"])
    offset = [Let("own", f"part * {len(sums)} * ({LANES} + blocks)")] if sums else []
    return Kernel(buffer_dtypes, 2, [*shared, *head, *offset, Loop("r", "high", row, "low")]).source("fused_rows")
