"""Machine code that turns some rows of a transposed operand: they lie side by side then. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForStrips,
    align,
    first_lanes,
    internal,
    least,
    load_some,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import transposed

ROWS = 16
"""The most rows: as many floats as a cache line holds."""


def turn_rows(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``void (to, x, ld, rows, columns)``: ``to[r * columns + c] = x[c * ld + r]`` for `rows` <= ROWS.

    Square by square; `to` has room for ROWS rows, and what lies in rows beyond the last is undefined afterwards.
    """
    side = min(32 // align(kind), ROWS)
    missing = zero(ir.VectorType(kind, side))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        to, x, ld, rows, columns = function.args
        with ForStrips(b, columns, side) as (c, across):
            last, there = b.sub(across, word(1)), first_lanes(b, side, across)
            start = b.gep(x, [b.mul(c, ld)])
            lines = [b.gep(start, [b.mul(ld, least(b, word(lane), last))]) for lane in range(side)]
            with ForStrips(b, rows, side) as (r, down):
                some = first_lanes(b, side, down)
                square = transposed(b, [load_some(b, b.gep(line, [r]), some, missing) for line in lines])
                into = b.gep(to, [b.add(b.mul(r, columns), c)])
                for lane, row in enumerate(square):
                    store_some(b, row, b.gep(into, [b.mul(word(lane), columns)]), there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"turn_rows.{kind}", ir.VoidType(), [pointer, pointer, WORD, WORD, WORD], define)
