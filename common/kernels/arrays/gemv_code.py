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
    cases,
    first_lanes,
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
            store_lanes(b, never_minus_zero(b, fold_vectors(b, last.carried)), b.gep(out, [first]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"some_rows_by_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)


def _columns(module: ir.Module, kind: ir.Type) -> ir.Function:
    """The same of columns: a few vectors of them at a time, or one."""
    width = tile(kind).width

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        matrix, vector, out, count, k, ld = function.args

        def strips(vectors: int) -> None:
            with ForStrips(b, count, vectors * width, whole=True) as (c, there):
                operands = [b.gep(matrix, [c]), vector, b.gep(out, [c]), there, k, ld]
                b.call(_few_columns(module, kind, vectors), operands)

        cases(b, count, [(vectors * width - 1, vectors) for vectors in (4, 2)] + [(0, 1)], strips)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"columns_by_vector.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)


def _few_columns(module: ir.Module, kind: ir.Type, vectors: int) -> ir.Function:
    """``void (matrix, vector, out, there, k, ld)``: so many vectors of columns, or if it is one, a part of it.

    Eight chains at a time, each with those that it is added to first: their rows are `LANES` apart in the matrix.
    """
    width, together = tile(kind).width, 8 // vectors
    steps = LANES // together
    lanes = ir.VectorType(kind, width)

    def fold(b: ir.IRBuilder, totals: Sequence[ir.Value]) -> ir.Value:
        while len(totals) > 1:
            half = len(totals) // 2
            totals = [add(b, x, y) for x, y in zip(totals[:half], totals[half:], strict=True)]
        return totals[0]

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        matrix, vector, out, there, k, ld = function.args
        sums = b.alloca(kind, steps * vectors * width)
        sums.align = 64
        some, last = first_lanes(b, width, there), b.sub(k, word(1))

        def on(p: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            """Add row p to its chains."""
            x, line = spread(b, b.load(b.gep(vector, [p])), width), b.gep(matrix, [b.mul(p, ld)])
            if vectors == 1:
                return [fused(b, x, load_some(b, line, some, zero(lanes)), totals[0])]
            parts = [load_lanes(b, b.gep(line, [word(v * width)]), width) for v in range(vectors)]
            return [fused(b, x, part, total) for part, total in zip(parts, totals, strict=True)]

        with ForLoop(b, word(steps), 1) as each:
            begin = each.index, *[zero(lanes)] * (together * vectors)
            with While(b, lambda p, *_: b.icmp_signed("<", b.add(p, word(LANES - steps)), k), *begin) as walk:
                p, *totals = walk.carried
                walk.next = [b.add(p, word(LANES))]
                for i in range(together):
                    walk.next += on(b.add(p, word(i * steps)), totals[i * vectors : (i + 1) * vectors])
            p, *totals = walk.carried
            with ForLoop(b, b.zext(b.icmp_signed("<", p, k), WORD), 1, *totals) as rest:
                rest.next = list(rest.carried)
                for i in range(0, (together - 1) * vectors, vectors):
                    row, before = b.add(p, word(i // vectors * steps)), rest.carried[i : i + vectors]
                    exists = b.icmp_signed("<", row, k)
                    after = on(least(b, row, last), before)
                    rest.next[i : i + vectors] = [b.select(exists, x, y) for x, y in zip(after, before, strict=True)]
            chains = [rest.carried[i : i + vectors] for i in range(0, together * vectors, vectors)]
            for v, folded in enumerate(fold(b, some_of) for some_of in zip(*chains, strict=True)):
                store_lanes(b, folded, b.gep(sums, [b.add(b.mul(each.index, word(vectors * width)), word(v * width))]))
        for v in range(vectors):
            places = [b.gep(sums, [word((j * vectors + v) * width)]) for j in range(steps)]
            total = never_minus_zero(b, fold(b, [load_lanes(b, place, width) for place in places]))
            if vectors == 1:
                store_some(b, total, out, there)
            else:
                store_lanes(b, total, b.gep(out, [word(v * width)]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"few_columns_by_vector_{vectors}.{kind}", _VOID, [pointer] * 3 + [WORD] * 3, define)


def never_minus_zero(b: ir.IRBuilder, total: ir.Value) -> ir.Value:
    """To each lane +0.0 is added, which is done once, at the end: it changes -0.0, where all products underflow."""
    return add(b, total, zero(total.type))
