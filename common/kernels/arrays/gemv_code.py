"""Machine code of products of matrices and vectors, in the order of `common.kernels.arrays.gemm`. Needs llvmlite."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    While,
    add,
    align,
    apart,
    fold_vector,
    fold_vectors,
    fused,
    internal,
    least,
    load_lanes,
    load_some,
    prefetch,
    spread,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile

_VOID = ir.VoidType()
_AHEAD = 1024
"""How many elements before it is read a line of the cache is asked for, where one product goes through all memory."""


def multiply_vector(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (matrix, vector, out, count, k, ld, columns)``: a matrix' rows, or columns, times a vector.

    Each is the sum of `LANES` chains, which a row has in the lanes of a register; of columns they are in memory.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        matrix, vector, out, count, k, ld, columns = function.args
        with b.if_else(b.icmp_signed("!=", columns, word(0))) as (by_columns, by_rows):
            with by_columns:
                b.call(_columns(module, kind), [matrix, vector, out, count, k, ld])
            with by_rows:
                many, longest = _together(kind)
                enough = b.icmp_signed(">=", count, word(many))
                with b.if_else(b.and_(enough, b.icmp_signed("<=", k, word(longest)))) as (some, others):
                    with some:
                        b.call(_some_rows(module, kind, many), [matrix, vector, out, count, k, ld])
                    with others:
                        b.call(_rows(module, kind), [matrix, vector, out, count, k, ld])
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"multiply_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 4, define)


def _rows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (matrix, vector, out, count, k, ld)``: a few rows at a time, so that they do not wait for each other."""
    lanes, together = ir.VectorType(kind, LANES), 4

    def one(b: ir.IRBuilder, row: ir.Value, vector: ir.Value, out: ir.Value, k: ir.Value, whole: ir.Value) -> None:
        """A row by itself: nothing but its chain, and lines of the cache are asked for before they are read."""
        strip = 4 * LANES

        def on(p: ir.Value, total: ir.Value) -> ir.Value:
            x, y = (load_lanes(b, b.gep(line, [p]), LANES) for line in (vector, row))
            return fused(b, y, x, total)

        with ForLoop(b, b.and_(k, word(-strip)), strip, zero(lanes)) as strips:
            (total,) = strips.carried
            for j in range(0, strip, LANES):
                p = b.add(strips.index, word(j))
                for line in (vector, row):
                    prefetch(b, b.gep(line, [b.add(p, word(_AHEAD))]))
                total = on(p, total)
            strips.next = [total]
        with While(b, lambda p, _: b.icmp_signed("<", p, whole), b.and_(k, word(-strip)), strips.carried[0]) as walk:
            p, total = walk.carried
            walk.next = [b.add(p, word(LANES)), on(p, total)]
        p, total = walk.carried
        x, y = (load_some(b, b.gep(line, [p]), b.sub(k, p), zero(lanes)) for line in (vector, row))
        b.store(fold_vector(b, fused(b, y, x, total)), b.gep(out, [word(0)]))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        matrix, vector, out, count, k, ld = function.args
        whole = b.and_(k, word(-LANES))
        with b.if_then(b.icmp_signed("==", count, word(1))):
            one(b, matrix, vector, out, k, whole)
            b.ret_void()
        with ForStrips(b, count, together) as (first, there):
            last = b.sub(there, word(1))
            numbers = [b.add(first, least(b, word(r), last)) for r in range(together)]
            lines = [b.gep(matrix, [b.mul(r, ld)]) for r in numbers]
            with While(b, lambda p, *_: b.icmp_signed("<", p, whole), word(0), *[zero(lanes)] * together) as walk:
                p, *sums = walk.carried
                x = load_lanes(b, b.gep(vector, [p]), LANES)
                sums = [fused(b, load_lanes(b, b.gep(y, [p]), LANES), x, z) for y, z in zip(lines, sums, strict=True)]
                walk.next = [b.add(p, word(LANES)), *sums]
            p, *sums = walk.carried
            rest = b.sub(k, p)
            x = load_some(b, b.gep(vector, [p]), rest, zero(lanes))
            for line, total, number in zip(lines, sums, numbers, strict=True):
                total = fused(b, load_some(b, b.gep(line, [p]), rest, zero(lanes)), x, total)
                b.store(fold_vector(b, total), b.gep(out, [number]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"rows_by_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)


def _together(kind: ir.Type) -> tuple[int, int]:
    """How many rows are summed together, and how long they may be: their chains are half of the registers."""
    width = tile(kind).width
    if width * align(kind) < 64:
        return max(2, width // 2), 2**62
    return width, 4 * width


def _some_rows(module: ir.Module, kind: ir.Type, many: int) -> ir.Function:
    """``void (matrix, vector, out, count, k, ld)``: no fewer than `many` rows, so many at a time.

    Adding up the lanes of a row takes most of its time; here one addition is for all of them. The last rows begin
    before what is left, and some are written again.
    """
    lanes = ir.VectorType(kind, LANES)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        matrix, vector, out, count, k, ld = function.args
        whole = b.and_(k, word(-LANES))
        rest = b.sub(k, whole)
        with ForStrips(b, count, many, whole=True) as (first, _):
            lines = [b.gep(matrix, [b.mul(b.add(first, word(r)), ld)]) for r in range(many)]
            with While(b, lambda p, *_: b.icmp_signed("<", p, whole), word(0), *[zero(lanes)] * many) as walk:
                p, *sums = walk.carried
                x, *ys = (load_lanes(b, b.gep(line, [p]), LANES) for line in (vector, *lines))
                walk.next = [b.add(p, word(LANES)), *(fused(b, y, x, z) for y, z in zip(ys, sums, strict=True))]
            with ForLoop(b, least(b, rest, word(1)), 1, *walk.carried[1:]) as last:
                x, *ys = (load_some(b, b.gep(line, [whole]), rest, zero(lanes)) for line in (vector, *lines))
                last.next = [fused(b, y, x, z) for y, z in zip(ys, last.carried, strict=True)]
            store_lanes(b, fold_vectors(b, last.carried), b.gep(out, [first]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"some_rows_by_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)


def _columns(module: ir.Module, kind: ir.Type) -> ir.Function:
    """The same of columns: rows as they lie in memory are added to the chains of their lanes.

    A few rows of one lane at a time, so that its chains are loaded and stored once for all of them. The chains of a
    small matrix are registers, for a few columns at a time.
    """
    width, most, together, small = tile(kind).width, 256, 4, 4096
    lanes = ir.VectorType(kind, width)

    def fold(b: ir.IRBuilder, totals: Sequence[ir.Value]) -> ir.Value:
        while len(totals) > 1:
            half = len(totals) // 2
            totals = [add(b, x, y) for x, y in zip(totals[:half], totals[half:], strict=True)]
        return totals[0]

    def in_registers(b: ir.IRBuilder, function: ir.Function) -> None:
        matrix, vector, out, count, k, ld = function.args

        def product(p: ir.Value, c: ir.Value, some: ir.Value, total: ir.Value) -> ir.Value:
            line = b.gep(matrix, [b.add(b.mul(p, ld), c)])
            return fused(b, spread(b, b.load(b.gep(vector, [p])), width), load_some(b, line, some, zero(lanes)), total)

        whole = b.and_(k, word(-LANES))
        last = b.sub(k, word(1))
        with ForStrips(b, count, width) as (c, some):
            with ForLoop(b, whole, LANES, *[zero(lanes)] * LANES) as walk:
                walk.next = [product(b.add(walk.index, word(j)), c, some, x) for j, x in enumerate(walk.carried)]
            with ForLoop(b, least(b, word(1), b.sub(k, whole)), 1, *walk.carried) as rest:
                rest.next = list(rest.carried)
                for j in range(LANES - 1):
                    p = b.add(whole, word(j))
                    more = product(least(b, p, last), c, some, rest.carried[j])
                    rest.next[j] = b.select(b.icmp_signed("<", p, k), more, rest.carried[j])
            store_some(b, fold(b, rest.carried), b.gep(out, [c]), some)
        b.ret_void()

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        matrix, vector, out, count, k, ld = function.args
        sums = b.alloca(kind, LANES * most)
        sums.align = 64
        with b.if_then(b.icmp_signed("<=", b.mul(k, count), word(small))):
            in_registers(b, function)

        def place(lane: ir.Value, c: ir.Value) -> ir.Value:
            return b.gep(sums, [b.add(b.mul(lane, word(most)), c)])

        def take(rows: list[ir.Value], lane: ir.Value, first: ir.Value, there: ir.Value) -> None:
            """Add rows, one after the other, to the chains of a lane."""
            elements = [spread(b, b.load(b.gep(vector, [p])), width) for p in rows]
            lines = [b.gep(matrix, [b.add(b.mul(p, ld), first)]) for p in rows]
            with ForStrips(b, there, width) as (c, some):
                total = load_lanes(b, place(lane, c), width)
                for x, line in zip(elements, lines, strict=True):
                    total = fused(b, x, load_some(b, b.gep(line, [c]), some, zero(lanes)), total)
                store_lanes(b, total, place(lane, c))

        with ForStrips(b, count, most) as (first, there):
            with ForStrips(b, word(LANES), 1) as (lane, _), ForStrips(b, there, width) as (c, _):
                store_lanes(b, zero(lanes), place(lane, c))
            whole = b.and_(k, word(-LANES * together))
            with ForStrips(b, whole, LANES * together) as (p, _), ForStrips(b, word(LANES), 1) as (lane, _):
                take([b.add(p, b.add(lane, word(LANES * i))) for i in range(together)], lane, first, there)
            with ForStrips(b, b.sub(k, whole), 1) as (p, _):
                take([b.add(whole, p)], b.and_(p, word(LANES - 1)), first, there)
            with ForStrips(b, there, width) as (c, some):
                totals = [load_lanes(b, place(word(lane), c), width) for lane in range(LANES)]
                store_some(b, fold(b, totals), b.gep(out, [b.add(first, c)]), some)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"columns_by_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)
