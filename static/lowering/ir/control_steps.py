"""Steps that are no kernel calls, as plain data: control flow and acts, for plans.

Positions are those among the slots of a call, sizes are indices of the sizes of its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from common.core.polynomials import Atom
from common.core.spec import numel
from static.graph import Node, Value
from static.graph.regions import LoopParts, branches
from static.lowering.ir.items import Sizes

ITERATIONS = "iterations"
"""The region of a loop that is one kernel: it runs many iterations of body and condition."""
PROGRESS = ("done", "limit", "asking", "more")
"""Numbers behind the arguments of that region: iterations so far, where they end, 0 once the condition has said no, and
1 if it said yes where no row is left for what is stacked."""

Index = Callable[[Any], int]
"""Gives the index of a size."""


@dataclass(slots=True)
class Act:
    """A decision, or something that Python is called for.

    Attributes
    ----------
    kind, attrs : see `static.graph.side_effects`.
    operands, results : dtype and sizes of each; the results are those of a callback.
    """

    kind: str
    attrs: dict[str, Any]
    operands: list[tuple[str, list[int]]]
    results: list[tuple[str, list[int]]]


@dataclass(slots=True)
class SwitchStep:
    """Branches.

    Attributes
    ----------
    uses : per branch the positions of what it reads.
    results : position of the first result.
    """

    uses: list[list[int]]
    results: int


@dataclass(slots=True)
class LoopStep:
    """A loop.

    Attributes
    ----------
    carried : position of what each begins with, of its result, and its bytes.
    rows, stacked : position of each stack, and the bytes of a row.
    constants, tests : positions.
    asks : whether a condition decides how often it runs.
    counted : whether its first operand does.
    length : the first size of stacks.
    room : the atom of that size if it is a guess.
    backwards : whether rows are visited from the last to the first.
    """

    carried: list[tuple[int, int, int]]
    rows: list[tuple[int, int]]
    constants: list[int]
    tests: list[int]
    stacked: list[tuple[int, int]]
    asks: bool
    counted: bool
    length: int
    room: Atom | None
    backwards: bool

    @property
    def bound(self) -> list[int]:
        """The positions of the arguments of `ITERATIONS` but `PROGRESS`."""
        return [
            *(result for _, result, _ in self.carried),
            *(i for i, _ in self.rows), *self.constants, *self.tests, *(i for i, _ in self.stacked),
        ]  # fmt: skip


Construct = Act | SwitchStep | LoopStep


def construct(node: Node, index: Index) -> Construct:
    """The record of a node for plans, if it is control flow or an act."""
    if node.name == "switch":
        uses = [[1 + i for i in uses] for _, uses in branches(node)]
        return SwitchStep(uses, len(node.operands))
    if node.name == "loop":
        return _loop(node, index)
    return Act(node.name, dict(node.attrs), _forms(node.values, index), _forms(node.outputs, index))


def _forms(values: Iterable[Value], index: Index) -> list[tuple[str, list[int]]]:
    return [(x.dtype.str, [index(n) for n in x.shape]) for x in values]


def _loop(node: Node, index: Index) -> LoopStep:
    parts, operands = LoopParts(node), node.operands
    first = len(operands)
    carried = [(i, first + k, index(_nbytes(x, x.shape))) for k, (i, x) in enumerate(zip(parts.carried, node.outputs))]
    rows = [(i, index(_row(operands[i]))) for i in parts.rows]
    stacked = [(first + i, index(_row(node.outputs[i]))) for i in parts.stacked]
    asks, length = parts.condition is not None, index(parts.length)
    return LoopStep(
        carried, rows, list(parts.constants), list(parts.tests), stacked,
        asks, parts.counted, length, parts.room, parts.backwards,
    )  # fmt: skip


def _row(stack: Value) -> Any:
    return _nbytes(stack, stack.shape[1:])


def _nbytes(value: Value, shape: Sizes) -> Any:
    return numel(shape) * value.dtype.itemsize
