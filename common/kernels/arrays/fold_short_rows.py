"""Machine code that folds the lanes of many short rows together. Needs llvmlite.

The fold of one row joins 8, 4, 2 and 1 lanes, in vectors that are filled less and less. Here two rows fill a vector
again after each step, and LANES rows end as the LANES elements of one; each has the order of
`common.kernels.arrays.fold_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    apart,
    first_lanes,
    internal,
    load_lanes,
    load_some,
    picks,
    store_lanes,
    word,
)
from common.kernels.arrays.fold_rows import SUM, RowFold


def fold_short_rows(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (x, out, rows, columns)``: S of each of `rows` rows, a multiple of LANES, of at most BLOCK columns."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, out, rows, columns = function.args
        vector = ir.VectorType(kind, LANES)
        whole = b.and_(columns, word(-LANES))
        rest = first_lanes(b, LANES, b.sub(columns, whole))
        with ForLoop(b, rows, LANES) as group:
            starts = [b.gep(x, [b.mul(b.add(group.index, word(i)), columns)]) for i in range(LANES)]
            with ForLoop(b, whole, LANES, *[how.identity(vector)] * LANES) as loop:
                loaded = [load_lanes(b, b.gep(start, [loop.index]), LANES) for start in starts]
                loop.next = [how.combine(b, own, how.of(b, new)) for own, new in zip(loop.carried, loaded)]
            some = [load_some(b, b.gep(start, [whole]), rest, how.identity(vector)) for start in starts]
            lanes = [how.combine(b, own, how.of(b, new)) for own, new in zip(loop.carried, some)]
            store_lanes(b, _folded(b, lanes, how), b.gep(out, [group.index]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_short_rows.{kind}", ir.VoidType(), [pointer, pointer, WORD, WORD], define)


def _folded(b: ir.IRBuilder, rows: Sequence[ir.Value], how: RowFold) -> ir.Value:
    """A vector of the folds of LANES vectors."""
    width = LANES
    while width > 1:
        half = width // 2
        first = [place for start in range(0, 2 * LANES, width) for place in range(start, start + half)]
        low, high = picks(*first), picks(*(place + half for place in first))
        rows = [
            how.combine(b, b.shuffle_vector(x, y, low), b.shuffle_vector(x, y, high))
            for x, y in zip(rows[::2], rows[1::2], strict=True)
        ]
        width = half
    return rows[0]
