"""Machine code of products of rows, whose elements are at places of a table, and a panel. Needs llvmlite."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    While,
    align,
    apart,
    cases,
    fused,
    internal,
    least,
    load_lanes,
    spread,
    store_lanes,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import join, store_sums, tile

_VOID, _BIT = ir.VoidType(), ir.IntType(1)
_FIRST, _LAST, _MARKS = 1, 2, 6
"""Marks of the first and of the last row of a tile, others are of all rows; and how many bits marks have."""


def multiply_places(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, down, step, rows, panel, places, depth, ends, careful, columns, out, ldc, further, p)``.

    Rows are taken a tile at a time, tile t from ``a[t * step]`` to ``out[t * further]``; in a tile they are `down` and
    `ldc` elements apart. What depth d takes are two int64 of a table: 64 times the place of its element in each row,
    plus marks, and where its row of the panel begins. Of the marks those in `ends` tell that the element is outside and
    a zero: of the first row of a tile 1, of the last one of a whole tile 2, of all rows any other. Such products are
    left out. So a sum may be -0.0 where the sum of all products would be +0.0; it differs nowhere else if the panel is
    finite. If `careful` is not 0, tiles with such a sum are computed again, with all products. If p is not 0, what
    `out` holds comes first.
    """
    shape = tile(kind)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, step, rows, panel, places, depth, ends, careful, columns, out, ldc, further, p = function.args
        table = b.bitcast(places, WORD.as_pointer())
        with While(b, lambda r, *_: b.icmp_signed("<", r, rows), word(0), a, out) as walk:
            r, source, into = walk.carried
            there = least(b, word(shape.rows), b.sub(rows, r))

            def some(vectors: int) -> None:
                operands = source, down, there, panel, table, depth, ends
                given = *operands, careful, columns, into, ldc, p
                found = b.call(_tile(module, kind, vectors), given)
                with b.if_then(found, likely=False):
                    b.call(_all_products(module, kind), [*operands, columns, into, ldc, p])

            cases(b, columns, [(shape.width * (v - 1), v) for v in range(shape.vectors, 0, -1)], some)
            walk.next = [b.add(r, word(shape.rows)), b.gep(source, [step]), b.gep(into, [further])]
        b.ret_void()

    pointer = kind.as_pointer()
    types = [pointer, *[WORD] * 3, pointer, pointer, *[WORD] * 4, pointer, *[WORD] * 3]
    return internal(module, f"multiply_places.{kind}", _VOID, types, define)


def _step(b: ir.IRBuilder, panel: ir.Value, places: ir.Value, d: ir.Value, ends: ir.Value) -> tuple[ir.Value, ...]:
    """Of the step at `d` in the table: the place, the marks that are in `ends`, and its row of the panel."""
    marked = b.load(b.gep(places, [d]), align=8, typ=WORD)
    row = b.gep(panel, [b.load(b.gep(places, [b.add(d, word(1))]), align=8, typ=WORD)])
    return b.ashr(marked, word(_MARKS)), b.and_(marked, ends), row


def _of_rows(kind: ir.Type) -> list[ir.Type]:
    """Types of the arguments of `_all_products`."""
    pointer = kind.as_pointer()
    return [pointer, WORD, WORD, pointer, WORD.as_pointer(), WORD, WORD, WORD, pointer, WORD, WORD]


def _all_products(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, down, height, panel, places, depth, ends, columns, out, ldc, p)``: all products of a tile."""
    shape = tile(kind)
    nothing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, height, panel, places, depth, ends, columns, out, ldc, p = function.args
        held = b.alloca(kind, shape.width)
        with ForLoop(b, height, 1) as each, ForStrips(b, columns, shape.width) as (c, there):
            r = each.index
            line, into = b.gep(a, [b.mul(r, down)]), b.gep(out, [b.add(b.mul(r, ldc), c)])
            own = word(-1 - _FIRST - _LAST)
            for number, mark in ((0, _FIRST), (shape.rows - 1, _LAST)):
                own = b.select(b.icmp_signed("==", r, word(number)), b.or_(own, word(mark)), own)
            with ForLoop(b, b.shl(depth, word(1)), 2, nothing) as walk:
                place, marks, row = _step(b, panel, places, walk.index, ends)
                outside = b.icmp_signed("!=", b.and_(marks, own), word(0))
                element = b.load(b.select(outside, row, b.gep(line, [place])), align=align(kind), typ=kind)
                element = spread(b, b.select(outside, zero(kind), element), shape.width)
                walk.next = [fused(b, element, load_lanes(b, b.gep(row, [c]), shape.width), walk.carried[0])]
            store_lanes(b, walk.carried[0], held)
            b.call(join(module, kind), [held, word(0), word(1), there, into, ldc, p])
        b.ret_void()

    return internal(module, f"all_products.{kind}", _VOID, _of_rows(kind), define)


def _tile(module: ir.Module, kind: ir.Type, vectors: int) -> ir.Function:
    """``i1 (a, down, height, panel, places, depth, ends, careful, columns, out, ldc, p)``: a tile, but for zeros.

    It has so many vectors. Whether it is to be computed again; then nothing is stored.
    """
    shape = tile(kind)
    rows = shape.rows
    nothing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, height, panel, places, depth, ends, careful, columns, out, ldc, p = function.args
        held = b.alloca(kind, rows * vectors * shape.width)
        held.align = 64
        last = b.sub(height, word(1))
        numbers = [least(b, word(r), last) for r in range(rows)]
        lines = [b.gep(a, [b.mul(r, down)]) for r in numbers]

        def unless(outside: ir.Value, sums: list[ir.Value], products: Callable[[], list[ir.Value]]) -> list[ir.Value]:
            """The new sums, or where all elements are outside, those before."""
            before = b.block
            with b.if_then(b.icmp_signed("==", outside, word(0)), likely=True):
                new, after = products(), b.block
            found = [b.phi(nothing.type) for _ in sums]
            for phi, old, value in zip(found, sums, new, strict=True):
                phi.add_incoming(old, before)
                phi.add_incoming(value, after)
            return found

        with ForLoop(b, b.shl(depth, word(1)), 2, *[nothing] * (rows * vectors)) as walk:
            place, marks, row = _step(b, panel, places, walk.index, ends)

            def products() -> list[ir.Value]:
                right = [load_lanes(b, b.gep(row, [word(v * shape.width)]), shape.width) for v in range(vectors)]

                def added(r: int) -> list[ir.Value]:
                    element = spread(b, b.load(b.gep(lines[r], [place])), shape.width)
                    return [fused(b, element, x, s) for x, s in zip(right, sums[r], strict=True)]

                sums = [walk.carried[r * vectors :][:vectors] for r in range(rows)]
                for r, mark in ((0, _FIRST), (rows - 1, _LAST)):
                    sums[r] = unless(b.and_(marks, word(mark)), sums[r], partial(added, r))
                for r in range(1, rows - 1):
                    sums[r] = added(r)
                return [value for line in sums for value in line]

            walk.next = unless(b.and_(marks, word(-1 - _FIRST - _LAST)), walk.carried, products)
        with b.if_then(b.icmp_signed("!=", careful, word(0))):
            # of the bits of floats as integers, those of -0.0 are the smallest
            bits = ir.VectorType(ir.IntType(8 * align(kind)), shape.width)
            smallest = zero(bits)
            for total in walk.carried:
                number = b.bitcast(total, bits)
                smallest = b.select(b.icmp_signed("<", smallest, number), smallest, number)
            found = b.icmp_signed("==", smallest, ir.Constant(bits, [-(1 << bits.element.width - 1)] * shape.width))
            lanes = b.bitcast(found, ir.IntType(shape.width))
            with b.if_then(b.icmp_signed("!=", lanes, zero(lanes.type))):
                b.ret(_BIT(1))

        totals = [walk.carried[r * vectors :][:vectors] for r in range(rows)]
        store_sums(b, module, kind, totals, numbers, held, (height, columns, out, ldc, p))
        b.ret(_BIT(0))

    types = _of_rows(kind)
    return internal(module, f"places_{vectors}.{kind}", _BIT, [*types[:7], WORD, *types[7:]], define)
