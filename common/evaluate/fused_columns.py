"""Sums over columns beside a kernel of rows: they read rows again while these lie in the cache.

The gradients of layer normalisation are of this kind: those of the input go row by row, those of weight and bias are
sums over all rows of what the same rows hold (benchmarks/backward_passes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from common.core.numerics import BLOCK, LANES
from common.evaluate.fused_lines import Program, argument, collected, is_costly
from common.kernels.arrays import mapped_sums

_ROWS = LANES * mapped_sums.TOGETHER
"""Of a block, which is gone through twice: as many as are added to the accumulators at once."""


class FusedColumns(NamedTuple):
    """What is summed over columns: ops, and where their results are; inputs are those of the kernel of rows."""

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


def in_blocks(row: Sequence[str], columns: FusedColumns, dtype: np.dtype, classes: str) -> list[str]:
    """Lines that go through the rows block by block: the lines of each row r, then the sums over the block's columns.

    Parameters
    ----------
    classes : per input "f", "r", "c" or "s", as in `common.evaluate.kernels.elementwise_source`.
    """
    used = {v for kind, v in columns.summed if kind == "x"}
    used |= {v for _, operands in columns.program for kind, v in operands if kind == "x"}
    places = {"f": "x{i}_[p{k} + c]", "r": "x{i}r{k}", "c": "x{i}_[c]"}

    def text(kind: str, value: Any) -> str:
        return f"u{value}" if kind == "t" else argument(kind, value, dtype)

    def before(k: int) -> list[str]:
        return [f"x{i}r{k} = x{i}_[r{k}]" for i in sorted(used) if classes[i] == "r"]

    def element(k: int) -> list[str]:
        reads = [f"x{i} = {places[classes[i]].format(i=i, k=k)}" for i in sorted(used) if classes[i] != "s"]
        steps = enumerate(columns.program)
        return [*reads, *(f"u{i} = {op.name}({', '.join(text(*x) for x in operands)})" for i, (op, operands) in steps)]

    def each(call: str) -> list[str]:
        return [call.replace("#", str(j)) for j in range(len(columns.summed))]

    sums = [(f"lanes{j}", text(*x)) for j, x in enumerate(columns.summed)]
    whole = mapped_sums.add_rows(sums, before, element, "first + lane", "1", mapped_sums.TOGETHER)
    rest = mapped_sums.add_rows(sums, before, element, "part", "1", 1)
    lines = ["rows = args[0]", "width = columns", "at = 0", "b = 0", "c0 = 0"]
    lines += [*each("start_columns(lanes#, 0, columns, rows)"), f"for first in range(0, rows, {_ROWS}):"]
    lines += [
        f"    end = min(rows, first + {_ROWS})",
        "    for r in range(first, end):",
        *(f"        {x}" for x in row),
    ]
    lines.append(f"    if first & {BLOCK - 1} == 0 and first > 0:")
    lines += each(f"        carry_columns(lanes#, 0, columns, (first >> {BLOCK.bit_length() - 1}) - 1)")
    lines += [
        f"    if end - first == {_ROWS}:",
        f"        for lane in range({LANES}):",
        indent(whole, " " * 12),
        "    else:",
    ]
    lines += [
        "        for part in range(first, end):",
        f"            lane = part & {LANES - 1}",
        indent(rest, " " * 12),
    ]
    lines += each("finish_columns(lanes#, 0, columns, rows, total#, 0)")
    return [part for line in lines for part in line.splitlines()]
