"""Machine code of sums and products of columns of one block of rows, whose lanes stay in registers. Needs llvmlite.

The order is that of `common.kernels.arrays.fold_rows`, element by element of a vector of columns: lane j takes the
rows j, j + LANES, ... and the lanes are folded by halves. Accumulators in memory are loaded and stored once per 4 rows
of equal lane, and begun and folded per block; where there are few rows that is most of the work
(benchmarks/gates/test_reductions.py). Few rows are folded four lanes at a time, a strip of columns after the other:
a cache may have few places for lines of rows that lie a power of two apart.
"""

from __future__ import annotations

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForStrips,
    While,
    align,
    apart,
    internal,
    load_lanes,
    prefetch,
    store_lanes,
    word,
)
from common.kernels.arrays.fold_rows import SUM, RowFold
from common.kernels.arrays.sums import FEW_ROWS, VECTOR_BYTES

_AHEAD = 2
"""Vectors by which memory is asked for ahead of each row: the processor follows fewer rows than these by itself."""


def fold_columns(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* x, i64 rows, i64 columns, kind* out)``: out[c] = S(x[:, c]), or the product.

    Of rows <= BLOCK, and of no fewer columns than a vector has. The last vector begins where its end is that of the
    rows; what it has in common with the one before is computed twice.
    """
    width = VECTOR_BYTES // align(kind)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, rows, columns, out = function.args
        with b.if_then(b.icmp_signed("<=", rows, word(FEW_ROWS))):
            b.call(_fold_few_rows(module, kind, how), [x, rows, columns, out])
            b.ret_void()
        take = _fold_vector_of_columns(module, kind, how)
        last = b.sub(columns, word(width))
        with While(b, lambda c: b.icmp_signed("<", c, last), word(0)) as walk:
            (c,) = walk.carried
            b.call(take, [b.gep(x, [c]), rows, columns, b.gep(out, [c])])
            walk.next = [b.add(c, word(width))]
        b.call(take, [b.gep(x, [last]), rows, columns, b.gep(out, [last])])
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_columns.{kind}", ir.VoidType(), [pointer, WORD, WORD, pointer], define)


_STRIP = 2048
"""Bytes of a strip of columns."""


def _fold_few_rows(module: ir.Module, kind: ir.Type, how: RowFold) -> ir.Function:
    """The same of a few rows.

    Lanes j, j + 4, j + 8 and j + 12 are folded into one, for four j; where there are no more than 8, lanes j, j + 2,
    j + 4 and j + 6, for two. What lies in the place of missing rows are identities, which each sum begins with too.
    """
    width, length = VECTOR_BYTES // align(kind), _STRIP // align(kind)
    vector = ir.VectorType(kind, width)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, rows, columns, out = function.args
        missing, first, second, third, fourth = (b.alloca(kind, length) for _ in range(5))
        with ForStrips(b, word(length), width) as (c, _):
            store_lanes(b, how.identity(vector), b.gep(missing, [c]))
        add = _fold_four(module, kind, how)
        before_last = b.and_(b.sub(rows, b.zext(b.icmp_signed(">", rows, word(0)), WORD)), word(-LANES))
        left, whole = b.sub(rows, before_last), b.mul(before_last, columns)
        with ForStrips(b, columns, length, whole=True) as (c, there):
            begin = b.gep(x, [c])
            end = b.gep(begin, [whole])

            def folded(lane: int, before: ir.Value, to: ir.Value, half: int = LANES // 2) -> None:
                lanes = [word(lane + n) for n in (0, half, half // 2, half // 2 * 3)]
                exist = [b.icmp_signed("<", row, left) for row in lanes]
                places = [b.gep(end, [b.mul(row, columns)]) for row in lanes]
                last = [b.select(*either, missing) for either in zip(exist, places, strict=True)]
                b.call(add, [to, before, b.gep(begin, [b.mul(lanes[0], columns)]), whole, columns, *last, there])

            with b.if_else(b.icmp_signed("<=", rows, word(LANES // 2))) as (few, more):
                with few:
                    folded(0, missing, second, LANES // 4)
                    folded(1, missing, fourth, LANES // 4)
                with more:
                    folded(0, missing, first)
                    folded(2, first, second)
                    folded(1, missing, third)
                    folded(3, third, fourth)
            with ForStrips(b, there, width, whole=True) as (d, _):
                both = [load_lanes(b, b.gep(part, [d]), width) for part in (second, fourth)]
                store_lanes(b, how.combine(b, *both), b.gep(out, [b.add(c, d)]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_few_rows.{kind}", ir.VoidType(), [pointer, WORD, WORD, pointer], define)


def _fold_four(module: ir.Module, kind: ir.Type, how: RowFold) -> ir.Function:
    """``void (to, before, x, whole, columns, p, q, r, s, n)``: to[c] = before[c] + four lanes, n from a vector on.

    Their rows are 0, 8, 4 and 12 of x and those LANES rows behind, up to `whole` elements; the last ones are p to s.
    """
    width = VECTOR_BYTES // align(kind)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        to, before, x, whole, columns, *four, n = function.args
        start = how.identity(ir.VectorType(kind, width))
        behind = [b.mul(columns, word(row)) for row in (0, 8, 4, 12)]
        on = b.mul(columns, word(LANES))
        with ForStrips(b, n, width, whole=True) as (c, _):
            row = b.gep(x, [c])
            with While(b, lambda i, *_: b.icmp_signed("<", i, whole), word(0), *[start] * 4) as walk:
                i, *lanes = walk.carried
                here = b.gep(row, [i])
                found = [how.of(b, load_lanes(b, b.gep(here, [d]), width)) for d in behind]
                walk.next = [b.add(i, on), *[how.combine(b, lane, v) for lane, v in zip(lanes, found, strict=True)]]
            _, *lanes = walk.carried
            found = [how.of(b, load_lanes(b, b.gep(part, [c]), width)) for part in four]
            p, q, r, s = (how.combine(b, lane, v) for lane, v in zip(lanes, found, strict=True))
            sums = how.combine(b, how.combine(b, p, q), how.combine(b, r, s))
            store_lanes(b, how.combine(b, load_lanes(b, b.gep(before, [c]), width), sums), b.gep(to, [c]))
        b.ret_void()

    pointer = kind.as_pointer()
    types = [pointer, pointer, pointer, WORD, WORD, *[pointer] * 4, WORD]
    return internal(module, f"{how.name}_four_rows.{kind}", ir.VoidType(), types, define)


def _fold_vector_of_columns(module: ir.Module, kind: ir.Type, how: RowFold) -> ir.Function:
    """The same for one vector of columns."""
    width = VECTOR_BYTES // align(kind)
    vector = ir.VectorType(kind, width)
    start = how.identity(vector)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")
        x, rows, columns, out = function.args
        nothing = b.alloca(vector)
        nothing.align = VECTOR_BYTES
        b.store(start, nothing)
        missing = b.bitcast(nothing, kind.as_pointer())

        def place(row: ir.Value) -> ir.Value:
            return b.gep(x, [b.mul(row, columns)])

        def taken(lanes: list[ir.Value], places: list[ir.Value]) -> list[ir.Value]:
            for p in places:
                prefetch(b, b.gep(p, [word(_AHEAD * width)]))
            loaded = [how.of(b, load_lanes(b, p, width)) for p in places]
            return [how.combine(b, lane, v) for lane, v in zip(lanes, loaded, strict=True)]

        whole = b.and_(rows, word(-LANES))
        with While(b, lambda r, *_: b.icmp_signed("<", r, whole), word(0), *[start] * LANES) as walk:
            r, *lanes = walk.carried
            places = [place(b.add(r, word(j))) for j in range(LANES)]
            walk.next = [b.add(r, word(LANES)), *taken(lanes, places)]
        _, *lanes = walk.carried
        rest = [b.add(whole, word(j)) for j in range(LANES - 1)]
        there = [b.select(b.icmp_signed("<", r, rows), place(r), missing) for r in rest]
        lanes = [*taken(lanes[:-1], there), lanes[-1]]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [how.combine(b, low, high) for low, high in zip(lanes[:half], lanes[half:], strict=True)]
        b.store(lanes[0], b.bitcast(out, vector.as_pointer()), align=align(kind))
        b.ret_void()

    pointer = kind.as_pointer()
    name = f"{how.name}_vector_of_columns.{kind}"
    return internal(module, name, ir.VoidType(), [pointer, WORD, WORD, pointer], define)

