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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.loop_ir import Break, If, Kernel, Let, Place, Repeat, Store, replaced
from common.core.spec import numel
from common.runtime.call_text import MAX_BUFFERS
from static.graph import Graph, Node
from static.graph.elements import size_of
from static.graph.regions import LoopParts
from static.lowering.codegen.bodies_of_numbers import of_numbers
from static.lowering.codegen.build import build
from static.lowering.codegen.functions_together import together
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
_SEVERAL = "several"
"""What stands in the place of a value that is carried in several registers."""


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
    return _written(node, lambda region: (region, [1] * len(region.outputs)) if _of_numbers(region) else None)


def element_loop(node: Node) -> ScalarLoop | None:
    """The loop as one kernel, if its body computes arrays of a few elements, and nothing in it can fail."""
    return _written(node, of_numbers)


def _written(node: Node, numbers: Callable[[Graph], tuple[Graph, list[int]] | None]) -> ScalarLoop | None:
    """The loop as one kernel; None if it cannot be one.

    Parameters
    ----------
    numbers : gives a region with numbers as results, and how many of these are the elements of each result that it had;
        None if there are none.
    """
    parts = LoopParts(node)
    regions = [parts.body, *([parts.condition] if parts.condition is not None else [])]
    if any(len(region.nodes) > MOST_ITEMS for region in regions):
        return None
    stacks = [node.outputs[i] for i in parts.stacked]
    operands = [node.operands[i] for i in (*parts.carried, *parts.rows, *parts.constants, *parts.tests)]
    if len(operands) + len(stacks) + len(PROGRESS) > MAX_BUFFERS:
        return None
    works, counts = list[Any](), list[Sequence[int]]()
    for region in regions:
        found = numbers(region)
        if found is None or len(found[0].nodes) > MOST_ITEMS:
            return None
        works.append(legalise(found[0]))
        counts.append(found[1])
    if not works[0].items or not all(_is_simple(item) for work in works for item in work.items):
        return None
    return _Writer(parts, works, [*operands, *stacks], counts[0]).loop()


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
    counts : how many of the body's results are the elements of each value that is carried or stacked.
    """

    def __init__(self, parts: LoopParts, works: Sequence[Work], values: Sequence[Any], counts: Sequence[int]) -> None:
        self.parts, self.works, self.values, self.counts = parts, works, values, counts
        self.ints: list[Any] = []
        self.names: dict[Any, str] = {}
        self.head: list[Any] = []
        self.elements = [(k, e) for k in range(parts.n) for e in range(counts[k])]

    def loop(self) -> ScalarLoop:
        parts, body, n = self.parts, self.works[0], self.parts.n
        rows, constants, tests = (len(own) for own in (parts.rows, parts.constants, parts.tests))
        stacks = n + rows + constants + tests
        self.progress = {name: f"b{len(self.values) + k}" for k, name in enumerate(PROGRESS)}
        carried = [Place("", f"c{k}", "", _SEVERAL * (self.counts[k] > 1)) for k in range(n)]
        places = [
            *carried,
            *(self.row(n + k, numel(buffer.shape)) for k, buffer in enumerate(body.inputs[n : n + rows])),
            *(Place(f"b{n + rows + k}") for k in range(constants)),
        ]
        outputs = [buffer for buffer, _ in body.outputs]
        results = [Place("", self.name("d", *where)) for where in self.elements]
        dtypes = [buffer.dtype for buffer in body.inputs]
        dtypes += [buffer.dtype for buffer in (self.works[1].inputs[n:] if parts.condition is not None else ())]
        for k, count in enumerate(self.counts[n:]):
            dtypes.append(outputs[len(results)].dtype)
            results += [self.row(stacks + k, count, e) for e in range(count)]
        inner = self.statements(body, "", places, results)
        carry = [Let(self.name("c", *where), self.name("d", *where)) for where in self.elements]
        question = []
        if parts.condition is not None:
            asked = [*carried, *(Place(f"b{n + rows + constants + k}") for k in range(tests))]
            question = self.statements(self.works[1], "u", asked, [Place("", "answer")])
            question.append(If("not answer", [Let("asking", "0"), Break()]))
            if parts.stacked:
                question.append(If("done >= limit", [Let("more", "1"), Break()]))
        arguments = [(dtype, x.shape) for dtype, x in zip(dtypes, self.values, strict=True)]
        arguments += [(_INT64, ())] * len(PROGRESS)
        kinds = {self.name("c", k, e): dtypes[k] for k, e in self.elements}
        found = apart(inner, kinds, {x.name for x in self.head})
        if question or found is None or len(arguments) + len(found.kept) > MAX_BUFFERS:
            place = [Let("row", "limit - 1 - done" if parts.backwards else "done")]
            inner, scratch = self.together(inner, len(arguments), [])
            loop = Repeat("done < stop", [*question, *place, *inner, *carry, Let("done", "done + 1")])
        else:
            slots = {name: f"b{len(arguments) + k}" for k, name in enumerate(found.kept)}
            found.inside, scratch = self.together(found.inside, len(arguments), list(found.kept.values()))
            loop = blocks(found, slots, carry, parts.backwards)
        buffers = [*(dtype for dtype, _ in arguments), *scratch]
        kernel = Kernel(buffers, len(self.ints), [*self.begin(), loop, *self.end()])
        return ScalarLoop(kernel, self.ints, Group(body.items, (), (), None, 0), outputs, arguments, scratch)

    def together(self, statements: list[Any], first: int, scratch: list[Any]) -> tuple[list[Any], list[Any]]:
        """The statements with functions by vectors; dtypes of the buffers from `first` on, of which `scratch` begin."""
        own = list(scratch)

        def slot(dtype: np.dtype[Any]) -> str:
            if dtype not in own[len(scratch) :]:
                own.append(dtype)
            return f"b{first + own.index(dtype, len(scratch))}"

        made = together(statements, slot)
        return (made, own) if first + len(own) <= MAX_BUFFERS else (statements, scratch)

    def name(self, letter: str, k: int, e: int) -> str:
        """The name of an element that is carried: before an iteration with the letter c, after it with d."""
        return f"{letter}{k}" if self.counts[k] == 1 else f"{letter}{k}_{e}"

    def begin(self) -> list[Any]:
        """The statements before the iterations."""
        names = self.progress
        stop = f"done + {MOST_ITERATIONS}"
        known = self.parts.condition is None
        return [
            *(Let(name, Place(names[name])) for name in ("done", "limit")),
            *([] if known else [Let("asking", "1"), Let("more", "0")]),
            Let("stop", f"min({stop}, limit)" if known else stop),
            *(Let(self.name("c", k, e), Place(f"b{k}", str(e) if e else "")) for k, e in self.elements),
            *self.head,
        ]

    def end(self) -> list[Any]:
        """The statements after the iterations."""
        told = ("done",) if self.parts.condition is None else ("done", "asking", "more")
        carried = [Store(Place(f"b{k}", str(e) if e else ""), self.name("c", k, e)) for k, e in self.elements]
        return [*carried, *(Store(Place(self.progress[name]), name) for name in told)]

    def row(self, slot: int, size: Any, element: int = 0) -> Place:
        """An element of the row of a stack in the present iteration."""
        step = "" if is_literal(size, 1) else self.size(size)
        return Place(f"b{slot}", str(element) if element else "", "row", step)

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
        ints = [size_of(value) for value in made.nest.ints]
        names: dict[str, Any] = {
            f"n{k}": str(value) if type(value) is int else self.size(value) for k, value in enumerate(ints)
        }
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
        target, base = names[x.buffer], text(x.base) if x.base else ""
        if not target.buffer:
            return f"{target.base}_{base or 0}" if target.step == _SEVERAL else target.base
        return Place(target.buffer, " + ".join(filter(None, (target.base, base))), target.var, target.step)

    if isinstance(statement, Let):
        return Let(text(statement.name), replaced(statement.value, place, text), statement.dtype)
    target, value = place(statement.place), replaced(statement.value, place, text)
    return Let(target, value) if isinstance(target, str) else Store(target, value)


__all__ = ["ScalarLoop", "element_loop", "scalar_loop"]
