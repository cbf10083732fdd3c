"""Machine code of sums and products of columns of one block of rows, whose lanes stay in registers. Needs llvmlite.

The order is that of `common.kernels.arrays.fold_rows`, element by element of a vector of columns: lane j takes the
rows j, j + LANES, ... and the lanes are folded by halves. Accumulators in memory are loaded and stored once per 4 rows
of equal lane, and begun and folded per block; where there are few rows that is most of the work
(benchmarks/gates/test_reductions.py).
"""

from __future__ import annotations

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import WORD, While, align, internal, load_lanes, prefetch, word
from common.kernels.arrays.fold_rows import SUM, RowFold
from common.kernels.arrays.sums import VECTOR_BYTES

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

