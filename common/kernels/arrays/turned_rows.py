"""Machine code that copies a matrix transposed. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForStrips,
    align,
    first_lanes,
    internal,
    least,
    load_lanes,
    load_some,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.transposed_vectors import transposed

_BYTES, _MOST = 32, 16
"""Of a row of a square that is turned in registers: half a register of AVX-512, which takes as long as a whole one."""


def turn_rows(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``void (to, x, ldt, ld, rows, columns)``: ``to[r * ldt + c] = x[c * ld + r]``, square by square.

    The last squares are whole, too, if there is one: what lies in two of them is copied twice, without masks, with
    which a store takes up to twelve times as long.
    """
    side = min(_BYTES // align(kind), _MOST)
    missing = zero(ir.VectorType(kind, side))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        to, x, ldt, ld, rows, columns = function.args
        with ForStrips(b, columns, side, whole=True) as (c, across):
            last = b.sub(across, word(1))
            start = b.gep(x, [b.mul(c, ld)])
            lines = [b.gep(start, [b.mul(ld, least(b, word(lane), last))]) for lane in range(side)]
            with ForStrips(b, rows, side, whole=True) as (r, down):
                into = b.gep(to, [b.add(b.mul(r, ldt), c)])
                rows_of = [b.gep(into, [b.mul(word(lane), ldt)]) for lane in range(side)]
                places = [b.gep(line, [r]) for line in lines]
                with b.if_else(b.icmp_signed("==", b.add(across, down), word(2 * side))) as (whole, part):
                    with whole:
                        square = transposed(b, [load_lanes(b, p, side) for p in places])
                        for row, place in zip(square, rows_of, strict=True):
                            store_lanes(b, row, place)
                    with part:
                        some = first_lanes(b, side, down)
                        square = transposed(b, [load_some(b, p, some, missing) for p in places])
                        for lane, (row, place) in enumerate(zip(square, rows_of, strict=True)):
                            # a store of nothing takes 100 ns where no page is: it goes to the first row then
                            exists = b.icmp_signed("<", word(lane), down)
                            there = b.select(exists, across, word(0))
                            store_some(b, row, b.select(exists, place, into), there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"turn_rows.{kind}", ir.VoidType(), [pointer, pointer, *[WORD] * 4], define)
