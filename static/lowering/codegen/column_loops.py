"""Loops over arrays of which every element goes its own way: one kernel runs many iterations, some columns at a time.

What is carried is written over its old value, so a tile of columns stays in the nearest cache from the first iteration
to the last, and no iteration calls a kernel::

    for m0 in range(0, n0, 2048):
        m1 = min(m0 + 2048, n0)
        at = done
        while at < stop:
            row = at
            p2 = row * n0
            for c in range(m0, m1):
                t1 = b0[c]
                t2 = b1[p2 + c]
                t3 = add(t1, t2)
                b3[p2 + c] = t3
                b0[c] = t3
            at = at + 1

A kernel of a few columns begins with a form for their number, in which they are one vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.compiler.loop_ir import If, Kernel, Let, Loop, Place, Repeat, Statement, Store, replaced
from common.core.numerics import LANES
from common.core.sizes import hint
from common.core.spec import numel
from common.runtime.call_text import MAX_BUFFERS
from static.graph import Node
from static.graph.regions import LoopParts
from static.lowering.codegen.build import build
from static.lowering.codegen.loop_nest import LONG
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.codegen.scalar_loops import MOST_ITERATIONS, ScalarLoop
from static.lowering.codegen.short_rows import COSTLY
from static.lowering.groups import Group
from static.lowering.ir.control_steps import PROGRESS
from static.lowering.ir.items import ArrayBuffer, is_literal, size_key, sizes_key, strip_ones
from static.lowering.ir.program_values import Work
from static.lowering.legalise import legalise

TILE = 2048
"""Columns that go through all iterations of a call together."""
FEW_ITERATIONS = 64
"""Iterations of a call of more than one tile, after which the plan looks for signals."""
MOST_ITEMS = 64
"""Longer bodies are several kernels."""

_INT64 = np.dtype(np.int64)


def column_loop(node: Node) -> ScalarLoop | None:
    """The loop as one kernel, if its body computes each element from those at the same place, and cannot fail."""
    parts = LoopParts(node)
    if parts.condition is not None or not parts.n or len(parts.body.nodes) > MOST_ITEMS:
        return None
    if not all(x.op is None or x.op.kind in ("view", "elementwise") or not x.operands for x in parts.body.nodes):
        return None
    dims = strip_ones(parts.body.outputs[0].shape)
    values = [node.operands[i] for i in (*parts.carried, *parts.rows, *parts.constants)]
    values += [node.outputs[i] for i in parts.stacked]
    if not dims or len(values) + len(PROGRESS) > MAX_BUFFERS:
        return None
    work = legalise(parts.body)
    if not work.items or not _is_per_element(work, parts.n, dims):
        return None
    return _ColumnWriter(parts, work, dims, values).loop()


def _is_per_element(work: Work, carried: int, dims: Any) -> bool:
    """Whether a body gives arrays of a shape, each element made of those at its place and of numbers."""
    name, own = sizes_key(dims), {buffer.id for buffer in work.inputs[:carried]}
    for item in work.items:
        if item.kind != "map" or item.calls or item.at is not None or item.window is not None:
            return False
        if item.dims and sizes_key(item.dims) != name:
            return False
        for access in item.accesses:
            if access.breaks or access.parted or (access.buffer.id in own and access.prefix != len(dims)):
                return False
    made = {item.out.id for item in work.items if item.dims}
    results = [buffer.id for buffer, _ in work.outputs]
    return len(set(results)) == len(results) and made.issuperset(results) and not work.writes


class _ColumnWriter:
    """Writes the body of a loop as one kernel.

    Parameters
    ----------
    dims : the shape of what it computes.
    values : what is carried at first, rows, constants, and stacks.
    """

    def __init__(self, parts: LoopParts, work: Work, dims: Any, values: list[Any]) -> None:
        self.parts, self.work, self.dims, self.values = parts, work, dims, values
        self.results = [buffer for buffer, _ in work.outputs]
        self.ints: list[Any] = []
        self.names: dict[Any, str] = {}
        moving = len(parts.rows)
        slots = [*range(parts.n), *range(len(values) - len(self.results) + parts.n, len(values))]
        self.slots = {id(buffer): k for k, buffer in enumerate(work.inputs)}
        self.slots |= {id(buffer): k for buffer, k in zip(self.results, slots, strict=True)}
        rows = [*work.inputs[parts.n : parts.n + moving], *self.results[parts.n :]]
        self.row_sizes = {self.slots[id(buffer)]: numel(buffer.shape) for buffer in rows}

    def loop(self) -> ScalarLoop | None:
        """The kernel; None if it has too many buffers."""
        group = Group(self.work.items, self.dims, sizes_key(self.dims), None, 0)
        made = build(group, {buffer.id for buffer in self.results})
        if not all(isinstance(thing, ArrayBuffer) and id(thing) in self.slots for thing in made.nest.bound):
            return None
        self.nest = made.nest
        columns, progress = numel(self.dims), [f"b{len(self.values) + k}" for k in range(len(PROGRESS))]
        width = self.size(columns)
        head, iteration, body = self.statements(made.kernel.body)
        stop: list[Statement] = [Let("done", Place(progress[0])), Let("limit", Place(progress[1]))]
        stop += [Let("stop", f"min(done + {MOST_ITERATIONS}, limit)")]
        stop += [If(f"{width} > {TILE}", [Let("stop", f"min(done + {FEW_ITERATIONS}, limit)")])]
        end = Store(Place(progress[0]), "stop")
        tile = [Let("m1", f"min(m0 + {TILE}, {width})"), *self.repeated(iteration, Loop("c", "m1", body, start="m0"))]
        statements: list[Statement] = [*stop, *head, Loop("m0", width, tile, step=str(TILE)), end]
        dtypes = [buffer.dtype for buffer in (*self.work.inputs, *self.results[self.parts.n :])]
        arguments = [(dtype, x.shape) for dtype, x in zip(dtypes, self.values, strict=True)]
        arguments += [(_INT64, ())] * len(PROGRESS)
        buffers = [dtype for dtype, _ in arguments]
        many = hint(columns) >= LONG
        long = 0 if not many else 1 if all(map(is_cheap, self.work.items)) else COSTLY
        kernel = Kernel(buffers, len(self.ints), statements, long)
        if 2 <= hint(columns) <= 2 * LANES and width != str(columns):
            few = Loop("c", str(hint(columns)), body)
            form = [*stop, *head, *self.repeated(iteration, few), end]
            kernel = kernel.with_form(buffers, len(self.ints), {int(width[1:]): hint(columns)}, form, long)
        return ScalarLoop(kernel, self.ints, group, self.results, arguments, [])

    def repeated(self, iteration: list[Statement], loop: Loop) -> list[Statement]:
        """The iterations of a call."""
        row = Let("row", "limit - 1 - at" if self.parts.backwards else "at")
        return [Let("at", "done"), Repeat("at < stop", [row, *iteration, loop, Let("at", "at + 1")])]

    def statements(self, body: list[Any]) -> tuple[list[Statement], list[Statement], list[Statement]]:
        """What comes before the loops, before the columns of an iteration, and in the loop over columns.

        There, what is carried is read first and written last.
        """
        *before, columns = body
        head: list[Statement] = []
        widths = dict.fromkeys(map(self.size, self.row_sizes.values()))
        iteration: list[Statement] = [Let(f"p{width}", "row" if width == "1" else f"row * {width}") for width in widths]
        for statement in before:
            moved = self.moved(statement)
            constant = isinstance(moved.value, Place) and self.is_constant(moved.value)
            (head if constant else iteration).append(moved)
        inner: list[list[Statement]] = [[], [], []]
        for statement in columns.body:
            moved = self.moved(statement)
            place = moved.place if isinstance(moved, Store) else moved.value
            carried = isinstance(place, Place) and int(place.buffer[1:]) < self.parts.n
            inner[1 if not carried else 2 if isinstance(moved, Store) else 0].append(moved)
        return head, iteration, [x for part in inner for x in part]

    def is_constant(self, place: Place) -> bool:
        """Whether a place is of a constant of the loop."""
        return self.parts.n + len(self.parts.rows) <= int(place.buffer[1:])

    def moved(self, statement: Any) -> Any:
        """A statement of the body as one of the loop."""
        assert isinstance(statement, Let | Store)
        value = replaced(statement.value, self.place, self.text)
        if isinstance(statement, Let):
            return Let(statement.name, value, statement.dtype)
        return Store(self.place(statement.place), value)

    def text(self, name: str) -> str:
        """A name of the body; sizes have other arguments here."""
        if name[:1] == "n" and name[1:].isdigit():
            return self.size(self.nest.ints[int(name[1:])])
        return name

    def place(self, place: Place) -> Place:
        """A place of the body, in the row of the iteration."""
        slot = self.slots[id(self.nest.bound[int(place.buffer[1:])])]
        base = [f"p{self.size(self.row_sizes[slot])}"] if slot in self.row_sizes else []
        base += [self.text(place.base)] if place.base else []
        return Place(f"b{slot}", " + ".join(base), place.var, self.text(place.step), place.beside)

    def size(self, value: Any) -> str:
        """The name of an int argument."""
        name = size_key(value)
        if is_literal(name, 1):
            return "1"
        if name not in self.names:
            self.names[name] = f"n{len(self.ints)}"
            self.ints.append(value)
        return self.names[name]


__all__ = ["column_loop"]
