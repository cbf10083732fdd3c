"""Machine code that copies planes of images so that windows lie side by side, with zeros around. Needs llvmlite."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    align,
    apart,
    first_lanes,
    internal,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile
from common.kernels.arrays.window_code import by_step, inside, loaded


def lay_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, to, v, w, length, step, shift, shifts, from, until, lines, down, line, planes, plane)``.

    Each plane is copied: it has `lines` rows of `length` windows, and that `shifts` times, `line` elements apart:
    ``to[(c * shifts + i) * line + r * length + t] = x[c * plane + r * down + i * shift + t * step]``
    where from <= r < until and 0 <= v + i * shift + t * step < w, else 0.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, to, v, w, length, step, shift, shifts, from_, until, lines, down, line, planes, plane = function.args
        width = tile(kind).width
        nothing = zero(ir.VectorType(kind, width))

        def rows(into: ir.Value, first: ir.Value, last: ir.Value, store: Callable[[ir.Value, ir.Value], None]) -> None:
            with ForLoop(b, b.sub(last, first), 1) as each:
                r = b.add(each.index, first)
                store(r, b.gep(into, [b.mul(r, length)]))

        def vectors(apart_by: int) -> None:
            with ForLoop(b, planes, 1) as c, ForLoop(b, shifts, 1) as i:
                moved = b.mul(i.index, shift)
                low, high = b.sub(word(0), b.add(v, moved)), b.sub(w, b.add(v, moved))
                first, last = (b.ashr(b.add(bound, word(apart_by - 1)), word(apart_by - 1)) for bound in (low, high))
                source = b.gep(x, [b.add(b.mul(c.index, plane), moved)])
                into = b.gep(to, [b.mul(b.add(b.mul(c.index, shifts), i.index), line)])
                with ForStrips(b, length, width) as (t, there):
                    begin, place = b.gep(source, [b.mul(t, word(apart_by))]), b.gep(into, [t])
                    masks = inside(b, width, apart_by, b.sub(first, t), b.sub(last, t))
                    some = first_lanes(b, width, there)

                    def taken(r: ir.Value) -> ir.Value:
                        return loaded(b, b.gep(begin, [b.mul(r, down)]), masks, kind, width)

                    def copied(store: Callable[[ir.Value, ir.Value], None]) -> None:
                        rows(place, word(0), from_, lambda r, p: store(nothing, p))
                        rows(place, from_, until, lambda r, p: store(taken(r), p))
                        rows(place, until, lines, lambda r, p: store(nothing, p))

                    with b.if_else(b.icmp_signed("==", there, word(width))) as (whole, cut):
                        with whole:
                            copied(lambda lanes, p: store_lanes(b, lanes, p))
                        with cut:
                            copied(lambda lanes, p: store_some(b, lanes, p, some))

        def one_by_one() -> None:
            with ForLoop(b, planes, 1) as c, ForLoop(b, shifts, 1) as i, ForLoop(b, lines, 1) as each:
                r, moved = each.index, b.mul(i.index, shift)
                source = b.gep(x, [b.add(b.add(b.mul(c.index, plane), b.mul(r, down)), moved)])
                into = b.gep(to, [b.add(b.mul(b.add(b.mul(c.index, shifts), i.index), line), b.mul(r, length))])
                there = b.and_(b.icmp_signed(">=", r, from_), b.icmp_signed("<", r, until))
                with ForLoop(b, length, 1) as t:
                    at, place = b.mul(t.index, step), b.gep(into, [t.index])
                    b.store(zero(kind), place, align=align(kind))
                    column = b.add(b.add(v, moved), at)
                    within = b.and_(b.icmp_signed(">=", column, word(0)), b.icmp_signed("<", column, w))
                    with b.if_then(b.and_(there, within)):
                        b.store(b.load(b.gep(source, [at]), align=align(kind), typ=kind), place, align=align(kind))

        by_step(b, step, vectors, one_by_one)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"lay_windows.{kind}", ir.VoidType(), [pointer, pointer, *[WORD] * 13], define)
