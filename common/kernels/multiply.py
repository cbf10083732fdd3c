"""Machine code of matrix products, in the order that `common.kernels.gemm` defines. Needs llvmlite.

A product is computed panel by panel. A panel is `DEEP` rows of the right operand, a few vectors wide; it is copied,
transposed if need be, to where its rows lie side by side. Then it is multiplied with a few rows of the left operand at
a time: their sums stay in registers, a chain of fused multiply-adds per element. Rows beyond the last are the last one
again, columns beyond the last are zeros that nothing stores; so every element is computed by the same instructions,
wherever it lies in a matrix, a batch or a tile.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from common.kernels.blocks import (
    INDEX,
    WORD,
    Parts,
    While,
    add,
    align,
    apart,
    cases,
    fused,
    internal,
    least,
    load_lanes,
    load_some,
    spread,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.native import engine
from common.numerics import DEEP

_KEPT = 2**19
"""Bytes of the left operand that meet one panel after the other, so that they come from the second-level cache."""

_VOID = ir.VoidType()


class Tile(NamedTuple):
    """The sums that are held in registers: of `rows` rows, and `vectors` vectors of `width` columns."""

    width: int
    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return self.width * self.vectors


def tile(kind: ir.Type) -> Tile:
    """What fits into the processor's registers: 32 of 64 bytes, 16 of 32, or those of 16. No bit depends on it."""
    _, features = engine.cpu()
    if "+avx512f" in features:
        return Tile(64 // align(kind), 8, 3)
    if "+avx2" in features:
        return Tile(32 // align(kind), 4, 3)
    return Tile(16 // align(kind), 4, 2)


def multiply(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, c, addend, m, n, k, lda, ldb, ldc, trans_a, trans_b)``: c = op(a) @ op(b), row-major.

    Sizes are at least 1. What lies at the address `addend`, as c does, is added to the product, if that is not 0.
    """
    pointer = kind.as_pointer()

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        left, right, out, addend, m, n, k, lda, ldb, ldc, trans_a, trans_b = function.args
        adds = b.icmp_signed("!=", addend, word(0))
        shape = tile(kind)
        panel = b.alloca(kind, (DEEP + shape.width) * shape.columns)
        panel.align = 64
        plain_a, plain_b = (b.icmp_signed("==", trans, word(0)) for trans in (trans_a, trans_b))
        down, along = b.select(plain_a, lda, word(1)), b.select(plain_a, word(1), lda)
        deeper, wider = b.select(plain_b, ldb, word(1)), b.select(plain_b, word(1), ldb)
        tall = _KEPT // (DEEP * align(kind))
        with Parts(b, m, tall) as (i, height), Parts(b, k, DEEP) as (p, depth), Parts(b, n, shape.columns) as part:
            j, columns = part
            source = b.gep(right, [b.add(b.mul(p, deeper), b.mul(j, wider))])
            with b.if_else(plain_b) as (copied, transposed):
                with copied:
                    b.call(_copy(module, kind), [source, ldb, depth, columns, panel])
                with transposed:
                    b.call(_transpose(module, kind), [source, ldb, depth, columns, panel])
            rows = b.gep(left, [b.add(b.mul(i, down), b.mul(p, along))])
            place = b.add(b.mul(i, ldc), j)
            last = b.and_(adds, b.icmp_signed("==", b.add(p, depth), k))
            more = b.select(last, b.gep(b.inttoptr(addend, pointer), [place]), pointer(None))
            into = b.gep(out, [place])
            b.call(_all_rows(module, kind), [rows, down, along, height, panel, depth, columns, into, ldc, p, more])
        b.ret_void()

    return internal(module, f"multiply.{kind}", _VOID, [pointer] * 3 + [WORD] * 9, define)


# -------------------------------------------------------------------- panels
def _copy(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (source, ld, depth, columns, panel)``: rows of the right operand side by side, filled up with zeros."""
    shape = tile(kind)
    missing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        source, ld, depth, columns, panel = function.args
        with Parts(b, depth, 1) as (p, _):
            row, to = b.gep(source, [b.mul(p, ld)]), b.gep(panel, [b.mul(p, word(shape.columns))])
            for first in range(0, shape.columns, shape.width):
                taken = load_some(b, b.gep(row, [word(first)]), b.sub(columns, word(first)), missing)
                store_lanes(b, taken, b.gep(to, [word(first)]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"copy_panel.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer], define)


def _transpose(module: ir.Module, kind: ir.Type) -> ir.Function:
    """The same of an operand that is transposed; a panel has room for rows beyond the last."""
    shape = tile(kind)
    missing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        source, ld, depth, columns, panel = function.args
        with Parts(b, columns, shape.width) as (j, there):
            last = b.sub(there, word(1))
            lines = [
                b.gep(source, [b.mul(ld, b.add(j, least(b, word(lane), last)))]) for lane in range(shape.width)
            ]
            with Parts(b, depth, shape.width) as (p, count):
                square = _transposed(b, [load_some(b, b.gep(line, [p]), count, missing) for line in lines])
                for lane, row in enumerate(square):
                    at = b.add(j, b.mul(b.add(p, word(lane)), word(shape.columns)))
                    store_lanes(b, row, b.gep(panel, [at]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"transpose_panel.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer], define)


def _transposed(b: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """As many vectors as each has lanes, transposed: blocks of 1, 2, 4, ... lanes change places."""
    width, half = len(rows), 1
    lanes = ir.VectorType(INDEX, width)
    while half < width:
        for i in range(width):
            if i & half:
                continue
            x, y = rows[i], rows[i + half]
            first = [width + c - half if c & half else c for c in range(width)]
            second = [width + c if c & half else c + half for c in range(width)]
            rows[i], rows[i + half] = (b.shuffle_vector(x, y, ir.Constant(lanes, p)) for p in (first, second))
        half *= 2
    return rows


# -------------------------------------------------------------------- sums
def _all_rows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, down, along, height, panel, depth, columns, out, ldc, p, more)``: all rows with one panel.

    The element of row r and depth d is a[r * down + d * along]. If p is not 0, what `out` holds comes first; what is at
    `more`, if that is not null, is added at last.
    """
    shape, pointer = tile(kind), kind.as_pointer()

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, along, height, panel, depth, columns, out, ldc, p, more = function.args
        adds = b.icmp_unsigned("!=", more, pointer(None))

        def some(r: ir.Value, rows: int, there: ir.Value, vectors: int) -> None:
            source, into = b.gep(a, [b.mul(r, down)]), b.gep(out, [b.mul(r, ldc)])
            added = b.select(adds, b.gep(more, [b.mul(r, ldc)]), more)
            few = _few_rows(module, kind, rows, vectors)
            b.call(few, [source, down, along, there, panel, depth, columns, into, ldc, p, added])

        def walk(vectors: int) -> None:
            with Parts(b, height, shape.rows) as (r, there):
                few = shape.rows // 4  # one more kind would take a sixth more of the time to compile all this
                cases(b, there, [(few, shape.rows), (0, few)], lambda rows: some(r, rows, there, vectors))

        cases(b, columns, [(shape.width * (vectors - 1), vectors) for vectors in range(shape.vectors, 0, -1)], walk)
        b.ret_void()

    return internal(module, f"all_rows.{kind}", _VOID, _of_rows(kind), define)


def _of_rows(kind: ir.Type) -> list[ir.Type]:
    """Types of the arguments of `_all_rows`, and of `_few_rows`."""
    pointer = kind.as_pointer()
    return [pointer, WORD, WORD, WORD, pointer, WORD, WORD, pointer, WORD, WORD, pointer]


def _few_rows(module: ir.Module, kind: ir.Type, rows: int, vectors: int) -> ir.Function:
    """The same for `rows` rows at most, of which there are `height`, and a panel of so many vectors."""
    shape = tile(kind)
    nothing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, along, height, panel, depth, columns, out, ldc, p, more = function.args
        held = b.alloca(kind, rows * vectors * shape.width)
        held.align = 64
        last = b.sub(height, word(1))
        numbers = [least(b, word(r), last) for r in range(rows)]
        lines = [b.gep(a, [b.mul(r, down)]) for r in numbers]
        there = b.sub(columns, word(shape.width * (vectors - 1)))
        end = b.mul(depth, word(shape.columns))
        start = [word(0), word(0), *[nothing] * (rows * vectors)]
        with While(b, lambda q, *_: b.icmp_signed("<", q, end), *start) as walk:
            q, d, *sums = walk.carried
            steps = [b.add(q, word(v * shape.width)) for v in range(vectors)]
            right = [load_lanes(b, b.gep(panel, [step]), shape.width) for step in steps]
            added = []
            for r, line in enumerate(lines):
                element = spread(b, b.load(b.gep(line, [d])), shape.width)
                added += [fused(b, element, right[v], sums[r * vectors + v]) for v in range(vectors)]
            walk.next = [b.add(q, word(shape.columns)), b.add(d, along), *added]
        sums = walk.carried[2:]
        steps = [b.add(b.mul(r, ldc), word(v * shape.width)) for r in numbers for v in range(vectors)]
        ends = [v == vectors - 1 for _ in range(rows) for v in range(vectors)]

        plain = b.and_(b.icmp_signed("==", p, word(0)), b.icmp_unsigned("==", more, more.type(None)))
        with b.if_else(plain) as (alone, joined):
            with alone:
                for total, step, tail in zip(sums, steps, ends, strict=True):
                    if tail:
                        store_some(b, total, b.gep(out, [step]), there)
                    else:
                        store_lanes(b, total, b.gep(out, [step]))
            with joined:
                for i, total in enumerate(sums):
                    store_lanes(b, total, b.gep(held, [word(i * shape.width)]))
                b.call(_join(module, kind), [held, word(shape.width * vectors), height, columns, out, ldc, p, more])
        b.ret_void()

    return internal(module, f"rows_{rows}x{vectors}.{kind}", _VOID, _of_rows(kind), define)


def _join(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (sums, stride, height, columns, out, ldc, p, more)``: sums added to what `out` holds, and to `more`.

    Not in `_few_rows` itself, where it would be unrolled: more to compile than all products.
    """
    width = tile(kind).width
    nothing = zero(ir.VectorType(kind, width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        sums, stride, height, columns, out, ldc, p, more = function.args
        wanted = b.icmp_signed("!=", p, word(0)), b.icmp_unsigned("!=", more, more.type(None))
        with Parts(b, height, 1) as (r, _), Parts(b, columns, width) as (c, some):
            total = load_lanes(b, b.gep(sums, [b.add(b.mul(r, stride), c)]), width)
            step = b.add(b.mul(r, ldc), c)
            for array, there in zip((out, more), wanted, strict=True):
                old = load_some(b, b.gep(array, [step]), b.select(there, some, word(0)), nothing)
                total = b.select(there, add(b, old, total), total)
            store_some(b, total, b.gep(out, [step]), some)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"join.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer, WORD, WORD, pointer], define)
