"""Machine code of sums of functions of the differences of rows, in the defined order, and of the largest.

Needs llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    add,
    align,
    apart,
    first_lanes,
    fold_vectors,
    internal,
    load_lanes,
    load_some,
    spread,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.fold_rows import RowFold

_TOGETHER = 4
"""Rows whose lanes lie in registers at a time."""


def sums_of_differences(module: ir.Module, kind: ir.Type, how: RowFold) -> ir.Function:
    """``void (a, b, out, n, k)``: ``out[j] = S(f(a[:k] - b[j * k : (j + 1) * k]))`` for j < n, of k <= BLOCK.

    A lane holds what S adds up in it: nothing is turned, and no difference is stored.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        left, right, out, n, k = function.args
        whole = b.and_(k, word(-LANES))
        rest = b.sub(k, whole)
        left_over = b.zext(b.icmp_signed(">", rest, word(0)), WORD)
        mask, nothing = first_lanes(b, LANES, rest), zero(ir.VectorType(kind, LANES))

        def rows(j: ir.Value, count: int) -> None:
            starts = [b.gep(right, [b.mul(b.add(j, word(i)), k)]) for i in range(count)]

            def added(lanes: Sequence[ir.Value], x: ir.Value, others: Sequence[ir.Value]) -> list[ir.Value]:
                pairs = zip(lanes, others, strict=True)
                return [how.combine(b, lane, how.of(b, b.fsub(x, other))) for lane, other in pairs]

            with ForLoop(b, whole, LANES, *[nothing] * count) as c:
                x, *others = (load_lanes(b, b.gep(row, [c.index]), LANES) for row in (left, *starts))
                c.next = added(c.carried, x, others)
            with ForLoop(b, left_over, 1, *c.carried) as end:
                x, *others = (load_some(b, b.gep(row, [whole]), mask, nothing) for row in (left, *starts))
                end.next = added(end.carried, x, others)
            folded = fold_vectors(b, end.carried, how.combine)
            for i in range(count):
                one = b.extract_element(folded, ir.IntType(32)(i))
                b.store(one, b.gep(out, [b.add(j, word(i))]), align=align(kind))

        several = b.and_(n, word(-_TOGETHER))
        with ForLoop(b, several, _TOGETHER) as loop:
            rows(loop.index, _TOGETHER)
        with ForLoop(b, b.sub(n, several), 1) as loop:
            rows(b.add(several, loop.index), 1)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_of_differences.{kind}", ir.VoidType(), [pointer, pointer, pointer, WORD, WORD],
                    define)  # fmt: skip


def add_slopes(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, w, sums, width, n)``: differences times weights, added up by lanes.

    ``sums[lane * width + i] += (a[i] - b[j]) * w[j * width + i]`` for i < width and all j < n, one after the other,
    whose rest by LANES is `lane`.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        left, right, weights, sums, width, n = function.args
        some = _TOGETHER // 2 * LANES
        with ForStrips(b, width, some) as (i, there), ForLoop(b, word(LANES), 1) as lane:

            def added(load: Callable[[ir.Value, int], ir.Value]) -> None:
                own = b.gep(sums, [b.add(b.mul(lane.index, width), i)])
                rows = range(_TOGETHER // 2)
                x = [load(b.gep(left, [i]), r) for r in rows]
                count = b.sdiv(b.sub(b.add(n, word(LANES - 1)), lane.index), word(LANES))
                with ForLoop(b, count, 1, *(load(own, r) for r in rows)) as loop:
                    j = b.add(b.mul(loop.index, word(LANES)), lane.index)
                    v = spread(b, b.load(b.gep(right, [j]), align=align(kind), typ=kind), LANES)
                    w = [load(b.gep(weights, [b.add(b.mul(j, width), i)]), r) for r in rows]
                    loop.next = [add(b, loop.carried[r], b.fmul(b.fsub(x[r], v), w[r])) for r in rows]
                for r, lanes in enumerate(loop.carried):
                    store_some(b, lanes, b.gep(own, [word(r * LANES)]), b.sub(there, word(r * LANES)))

            nothing = zero(ir.VectorType(kind, LANES))
            with b.if_else(b.icmp_signed("==", there, word(some))) as (whole, cut):
                with whole:
                    added(lambda start, r: load_lanes(b, b.gep(start, [word(r * LANES)]), LANES))
                with cut:
                    masks = [first_lanes(b, LANES, b.sub(there, word(r * LANES))) for r in range(_TOGETHER // 2)]
                    added(lambda start, r: load_some(b, b.gep(start, [word(r * LANES)]), masks[r], nothing))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"add_slopes.{kind}", ir.VoidType(), [pointer] * 4 + [WORD] * 2, define)
