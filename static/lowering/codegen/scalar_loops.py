"""Loops over numbers: one kernel runs many iterations, and the carry stays in registers.

A call of the kernel makes at most `MOST_ITERATIONS`, so that the plan can look for signals in between; it reads and
writes its own progress (`static.lowering.ir.control_steps.PROGRESS`)::

    c0 = b0[0]
    while done < stop:
        t1 = c0
        t2 = mul(t1, b1[done])
        b2[done] = t2
        c0 = t2
        done = done + 1
    b0[0] = c0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.loop_ir import Break, If, Kernel, Let, Place, Repeat, Store, replaced
from common.core.spec import numel
from common.runtime.call_text import MAX_BUFFERS
from static.graph import Node
from static.graph.regions import LoopParts
from static.lowering.codegen.build import build
from static.lowering.codegen.scalar_blocks import apart, blocks
from static.lowering.groups import Group
from static.lowering.ir.control_steps import PROGRESS
from static.lowering.ir.items import ArrayBuffer, is_literal, size_key
from static.lowering.legalise import legalise

if TYPE_CHECKING:
    from static.lowering.ir.program_values import Work

MOST_ITERATIONS = 4096
MOST_ITEMS = 512
"""Longer bodies stay programs of several kernels, whose compile time is linear in their length."""

_INT64 = np.dtype(np.int64)


@dataclass(eq=False, slots=True)
class ScalarLoop:
    """A loop as one kernel.

    Attributes
    ----------
    kernel, ints : what it runs, and what its int arguments are.
    group, results : the items of the body, and the buffers of what it gives.
    arguments : dtype and sizes of each buffer: what is carried, rows, constants, those of the condition, stacks, then
        `PROGRESS`.
    scratch : dtypes of the numbers of a block of iterations that further buffers hold.
    """

    kernel: Kernel
    ints: list[Any]
    group: Group
    results: list[ArrayBuffer]
    arguments: list[tuple[np.dtype[Any], tuple[Any, ...]]]
    scratch: list[np.dtype[Any]]


def scalar_loop(node: Node) -> ScalarLoop | None:
    """The loop as one kernel, if its body computes numbers, only numbers, and nothing in it can fail."""
    parts = LoopParts(node)
    regions = [parts.body, *([parts.condition] if parts.condition is not None else [])]
    if any(len(region.nodes) > MOST_ITEMS for region in regions) or not all(map(_of_numbers, regions)):
        return None
    stacks = [node.outputs[i] for i in parts.stacked]
    operands = [node.operands[i] for i in (*parts.carried, *parts.rows, *parts.constants, *parts.tests)]
    if len(operands) + len(stacks) + len(PROGRESS) > MAX_BUFFERS:
        return None
    works = [legalise(region) for region in regions]
    if not works[0].items or not all(_is_simple(item) for work in works for item in work.items):
        return None
    return _Writer(parts, works, [*operands, *stacks]).loop()


def _of_numbers(region: Any) -> bool:
    computed = [value for node in region.nodes if node.op is not None for value in node.outputs]
    return all(is_literal(n, 1) for value in computed if value.node.op.kind != "view" for n in value.shape)


def _is_simple(item: Any) -> bool:
    return bool(item.kind == "map" and not item.dims and item.at is None and item.window is None and not item.calls)


class _Writer:
    """Writes body and condition of a loop as one kernel.

    Parameters
    ----------
    works : the items of the body, and of the condition.
    values : what is carried at first, rows, constants, those of the condition, and stacks.
    """

    def __init__(self, parts: LoopParts, works: Sequence[Work], values: Sequence[Any]) -> None:
        self.parts, self.works, self.values = parts, works, values
        self.ints: list[Any] = []
        self.names: dict[Any, str] = {}
        self.head: list[Any] = []

    def loop(self) -> ScalarLoop:
        parts, body, n = self.parts, self.works[0], self.parts.n
        rows, constants, tests = (len(own) for own in (parts.rows, parts.constants, parts.tests))
        stacks = n + rows + constants + tests
        self.progress = {name: f"b{len(self.values) + k}" for k, name in enumerate(PROGRESS)}
        carried = [Place("", f"c{k}") for k in range(n)]
        places = [
            *carried,
            *(self.row(n + k, buffer) for k, buffer in enumerate(body.inputs[n : n + rows])),
            *(Place(f"b{n + rows + k}") for k in range(constants)),
        ]
        outputs = [buffer for buffer, _ in body.outputs]
        results = [*(Place("", f"d{k}") for k in range(n))]
        results += [self.row(stacks + k, buffer) for k, buffer in enumerate(outputs[n:])]
        inner = self.statements(body, "", places, results)
        carry = [Let(f"c{k}", f"d{k}") for k in range(n)]
        question = []
        if parts.condition is not None:
            asked = [*carried, *(Place(f"b{n + rows + constants + k}") for k in range(tests))]
            question = self.statements(self.works[1], "u", asked, [Place("", "answer")])
            question.append(If("not answer", [Let("asking", "0"), Break()]))
            if parts.stacked:
                question.append(If("done >= limit", [Let("more", "1"), Break()]))
        dtypes = [buffer.dtype for buffer in body.inputs]
        dtypes += [buffer.dtype for buffer in (self.works[1].inputs[n:] if parts.condition is not None else ())]
        dtypes += [buffer.dtype for buffer in outputs[n:]]
        arguments = [(dtype, x.shape) for dtype, x in zip(dtypes, self.values, strict=True)]
        arguments += [(_INT64, ())] * len(PROGRESS)
        found = apart(inner, dict(zip((f"c{k}" for k in range(n)), dtypes)), {x.name for x in self.head})
        if question or found is None or len(arguments) + len(found.kept) > MAX_BUFFERS:
            place = [Let("row", "limit - 1 - done" if parts.backwards else "done")]
            loop = Repeat("done < stop", [*question, *place, *inner, *carry, Let("done", "done + 1")])
            scratch = []
        else:
            slots = {name: f"b{len(arguments) + k}" for k, name in enumerate(found.kept)}
            loop, scratch = blocks(found, slots, carry, parts.backwards), list(found.kept.values())
        buffers = [*(dtype for dtype, _ in arguments), *scratch]
        kernel = Kernel(buffers, len(self.ints), [*self.begin(), loop, *self.end()])
        return ScalarLoop(kernel, self.ints, Group(body.items, (), (), None, 0), outputs, arguments, scratch)

    def begin(self) -> list[Any]:
        """The statements before the iterations."""
        names = self.progress
        stop = f"done + {MOST_ITERATIONS}"
        known = self.parts.condition is None
        return [
            *(Let(name, Place(names[name])) for name in ("done", "limit")),
            *([] if known else [Let("asking", "1"), Let("more", "0")]),
            Let("stop", f"min({stop}, limit)" if known else stop),
            *(Let(f"c{k}", Place(f"b{k}")) for k in range(self.parts.n)),
            *self.head,
        ]

    def end(self) -> list[Any]:
        """The statements after the iterations."""
        told = ("done",) if self.parts.condition is None else ("done", "asking", "more")
        carried = [Store(Place(f"b{k}"), f"c{k}") for k in range(self.parts.n)]
        return [*carried, *(Store(Place(self.progress[name]), name) for name in told)]

    def row(self, slot: int, buffer: ArrayBuffer) -> Place:
        """The row of a stack in the present iteration."""
        size = numel(buffer.shape)
        return Place(f"b{slot}", "", "row", "" if is_literal(size, 1) else self.size(size))

    def size(self, value: Any) -> str:
        """The name of an int argument."""
        name = size_key(value)
        if name not in self.names:
            self.names[name] = f"n{len(self.ints)}"
            self.ints.append(value)
        return self.names[name]

    def statements(self, work: Work, mark: str, places: Sequence[Place], results: Sequence[Place]) -> list[Any]:
        """The statements of a region, which reads its inputs at `places` and leaves `results`."""
        outputs = [buffer for buffer, _ in work.outputs]
        made = build(Group(work.items, (), (), None, 0), {buffer.id for buffer in outputs})
        where = {id(buffer): place for buffer, place in zip([*work.inputs, *outputs], [*places, *results])}
        names: dict[str, Any] = {f"n{k}": self.size(value) for k, value in enumerate(made.nest.ints)}
        names |= {f"b{k}": where[id(thing)] for k, thing in enumerate(made.nest.bound)}
        inner: list[Any] = []
        for statement in made.kernel.body:
            moved = _renamed(statement, names, mark)
            constant = isinstance(moved, Let) and isinstance(moved.value, Place) and not moved.value.var
            (self.head if constant else inner).append(moved)
        return inner


def _renamed(statement: Let | Store, names: Mapping[str, Any], mark: str) -> Let | Store:
    """A statement of a region as one of the loop."""

    def text(name: str) -> str:
        return names.get(name, f"{mark}{name}")

    def place(x: Place) -> Any:
        target = names[x.buffer]
        if not target.buffer:
            return target.base
        return Place(target.buffer, text(x.base) if x.base else "", target.var, target.step)

    if isinstance(statement, Let):
        return Let(text(statement.name), replaced(statement.value, place, text), statement.dtype)
    target, value = place(statement.place), replaced(statement.value, place, text)
    return Let(target, value) if isinstance(target, str) else Store(target, value)


__all__ = ["ScalarLoop", "scalar_loop"]
