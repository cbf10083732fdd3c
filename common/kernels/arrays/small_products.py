"""Machine code of products of matrices: small ones, of which a batch has many, without copies; others by blocks."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays import gemm_code
from common.kernels.arrays.code_blocks import (
    WORD,
    ForStrips,
    While,
    apart,
    first_lanes,
    fused,
    internal,
    least,
    load_some,
    spread,
    store_some,
    word,
    zero,
)

MOST = 16
"""Rows, and inner size, of a small product; it has one vector of columns."""

_VOID = ir.VoidType()


def multiply(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, c, m, n, k, lda, ldb, ldc, trans_a, trans_b)``: c = op(a) @ op(b), row-major; sizes from 1 on."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        left, right, out, m, n, k, lda, ldb, ldc, trans_a, trans_b = function.args
        most = word(MOST), word(gemm_code.tile(kind).width), word(MOST)
        fits = [b.icmp_signed("<=", size, bound) for size, bound in zip((m, n, k), most, strict=True)]
        small = b.and_(b.and_(fits[0], fits[1]), b.and_(fits[2], b.icmp_signed("==", trans_b, word(0))))
        with b.if_else(small) as (here, there):
            with here:
                plain = b.icmp_signed("==", trans_a, word(0))
                steps = b.select(plain, lda, word(1)), b.select(plain, word(1), lda)
                b.call(_small(module, kind), [left, right, out, m, n, k, *steps, ldb, ldc])
            with there:
                gemm_code.by_blocks(b, module, kind, list(function.args))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"multiply.{kind}", _VOID, [pointer] * 3 + [WORD] * 8, define)


def _small(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (left, right, out, m, n, k, down, along, ldb, ldc)``: a few rows at a time, the whole width of each."""
    width, together = gemm_code.tile(kind).width, 4
    nothing = zero(ir.VectorType(kind, width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        left, right, out, m, n, k, down, along, ldb, ldc = function.args
        there = first_lanes(b, width, n)
        with ForStrips(b, m, together) as (first, count):
            last = b.sub(count, word(1))
            rows = [b.add(first, least(b, word(r), last)) for r in range(together)]
            lines = [b.gep(left, [b.mul(row, down)]) for row in rows]
            with While(b, lambda p, *_: b.icmp_signed("<", p, k), word(0), *[nothing] * together) as walk:
                p, *sums = walk.carried
                x, place = load_some(b, b.gep(right, [b.mul(p, ldb)]), there, nothing), b.mul(p, along)
                elements = [spread(b, b.load(b.gep(line, [place])), width) for line in lines]
                walk.next = [b.add(p, word(1)), *(fused(b, e, x, z) for e, z in zip(elements, sums, strict=True))]
            for row, total in zip(rows, walk.carried[1:], strict=True):
                store_some(b, total, b.gep(out, [b.mul(row, ldc)]), there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"small_product.{kind}", _VOID, [pointer] * 3 + [WORD] * 7, define)
