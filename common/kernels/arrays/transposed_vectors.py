"""Machine code that transposes squares of elements in registers. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import align, picks


def transposed(b: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """As many vectors as each has lanes, transposed: first within their parts of 16 bytes, then these change places."""
    some = 16 // align(rows[0].type.element)
    parts = [_turned(b, rows[i : i + some], 1, some) for i in range(0, len(rows), some)]
    columns = [_sorted(b, [part[k] for part in parts], some) for k in range(some)]
    return [column[i] for i in range(len(parts)) for column in columns]


def _turned(b: ir.IRBuilder, rows: list[ir.Value], step: int, some: int) -> list[ir.Value]:
    """Parts of so many lanes transposed: first halves of two rows, `step` lanes in turns, then second ones."""
    if len(rows) == 1:
        return rows
    width, halves = rows[0].type.count, list[list[ir.Value]]()
    for half in (0, some // 2):
        lanes = [
            part + half + i + j + row
            for part in range(0, width, some) for i in range(0, some // 2, step) for row in (0, width)
            for j in range(step)
        ]  # fmt: skip
        halves.append([b.shuffle_vector(x, y, picks(*lanes)) for x, y in zip(rows[::2], rows[1::2], strict=True)])
    return [row for half in halves for row in _turned(b, half, 2 * step, some)]


def _sorted(b: ir.IRBuilder, rows: list[ir.Value], some: int) -> list[ir.Value]:
    """As many vectors as each has parts of `some` lanes, with parts transposed: those with even numbers, then odd."""
    if len(rows) == 1:
        return rows
    width, halves = rows[0].type.count, list[list[ir.Value]]()
    for first in (0, some):
        lanes = [row + part + i for row in (0, width) for part in range(first, width, 2 * some) for i in range(some)]
        pairs = [b.shuffle_vector(x, y, picks(*lanes)) for x, y in zip(rows[::2], rows[1::2], strict=True)]
        halves.append(_sorted(b, pairs, some))
    return [row for pair in zip(*halves, strict=True) for row in pair]
