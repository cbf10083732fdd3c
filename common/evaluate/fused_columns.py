"""Sums over columns beside a kernel of rows: they read rows again while these lie in the cache.

The gradients of layer normalisation are of this kind: those of the input go row by row, those of weight and bias are
sums over all rows of what the same rows hold (benchmarks/backward_passes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.compiler.loop_ir import Call, If, Let, Loop, Place, Run
from common.core.numerics import BLOCK, LANES
from common.evaluate.fused_lines import Program, argument, collected, is_costly
from common.kernels.arrays import mapped_sums

_ROWS = LANES * mapped_sums.TOGETHER
"""Of a block, which is gone through twice: as many as are added to the accumulators at once."""


class FusedColumns(NamedTuple):
    """Sums over columns: their ops, and the places of the results; inputs are those of the kernel of rows."""

    program: Program
    summed: Sequence[tuple[str, Any]]


def columns_beside(sums: Sequence[Any], inputs: list[Any], split: int) -> FusedColumns | None:
    """Delayed sums over columns as a part of a kernel of rows, or None; what they read joins its inputs.

    Parameters
    ----------
    split : where the dimensions of a row begin.
    """
    terms = [x.made.operand for x in sums]
    if any(len(x.made.dim) != split for x in sums) or any(map(is_costly, terms)):
        return None
    program, reads, summed = collected(*terms)
    if any(x.spec.dtype != terms[0].spec.dtype for x in reads):
        return None
    inputs += [x for x in reads if not any(x is known for known in inputs)]
    numbers = [next(i for i, known in enumerate(inputs) if x is known) for x in reads]

    def place(kind: str, value: Any) -> tuple[str, Any]:
        return kind, numbers[value] if kind == "x" else value

    return FusedColumns([(op, [place(*x) for x in operands]) for op, operands in program], [place(*x) for x in summed])


def scratch(rows: int, columns: int) -> int:
    """Elements of the accumulators of one sum."""
    return int(mapped_sums.scratch("expression", rows, columns))


def buffers(columns: FusedColumns) -> list[str]:
    """Names of the buffers that follow the inputs: per sum where it goes, and its accumulators."""
    return [f"{name}{j}" for j in range(len(columns.summed)) for name in ("total", "lanes")]


def in_blocks(
    row: Sequence[Any], columns: FusedColumns, dtype: np.dtype, classes: str, slots: Mapping[str, str]
) -> list[Any]:
    """Statements that go through the rows block by block: those of each row r, then the sums over the block's columns.

    Parameters
    ----------
    classes : per input "f", "r", "c" or "s", as in `common.evaluate.kernels.loop_source`.
    slots : where the `buffers` are.
    """
    used = {v for kind, v in columns.summed if kind == "x"}
    used |= {v for _, operands in columns.program for kind, v in operands if kind == "x"}
    operands = [(i, classes[i]) for i in sorted(used)]

    def text(kind: str, value: Any) -> str:
        return f"u{value}" if kind == "t" else argument(kind, value, dtype)

    def before(k: int) -> list[Let]:
        return [Let(f"x{i}r{k}", Place(f"b{i}", f"r{k}")) for i, letter in operands if letter == "r"]

    def element(k: int) -> list[Let]:
        calls = [Call(op.name, [text(*x) for x in taken]) for op, taken in columns.program]
        return [*mapped_sums.reads_in_row(operands, k), *(Let(f"u{i}", call) for i, call in enumerate(calls))]

    def each(function: str, *rest: str) -> list[Run]:
        return [Run(Call(function, (acc, "0", "columns", *rest))) for acc, _ in sums]

    def add(row: str, count: int) -> list[Any]:
        return mapped_sums.add_rows(sums, before, element, row, "1", count)

    sums = [(slots[f"lanes{j}"], text(*x)) for j, x in enumerate(columns.summed)]
    whole = Loop("lane", str(LANES), add("first + lane", mapped_sums.TOGETHER))
    rest = Loop("part", "end", [Let("lane", f"part & {LANES - 1}"), *add("part", 1)], "first")
    block = [
        Let("end", f"min(rows, first + {_ROWS})"),
        Loop("r", "end", [*row], "first"),
        If(f"first & {BLOCK - 1} == 0 and first > 0",
           each("carry_columns", f"(first >> {BLOCK.bit_length() - 1}) - 1")),
        If(f"end - first == {_ROWS}", [whole]),
        If(f"end - first != {_ROWS}", [rest]),
    ]  # fmt: skip
    names = {"rows": "n0", "width": "columns", "at": "0", "b": "0", "c0": "0"}
    ends = [(acc, slots[f"total{j}"]) for j, (acc, _) in enumerate(sums)]
    return [
        *(Let(name, value) for name, value in names.items()),
        *each("start_columns", "rows"),
        Loop("first", "rows", block, step=str(_ROWS)),
        *(Run(Call("finish_columns", (acc, "0", "columns", "rows", total, "0"))) for acc, total in ends),
    ]
