"""Machine code of products of matrices: narrow ones, of which a batch has many, without copies; others by blocks."""

from __future__ import annotations

from llvmlite import ir

from common.core.numerics import DEEP
from common.kernels.arrays import gemm_code
from common.kernels.arrays.code_blocks import (
    WORD,
    ForStrips,
    While,
    add,
    apart,
    cases,
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

_VOID = ir.VoidType()


def multiply(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, c, m, n, k, lda, ldb, ldc, trans_a, trans_b)``: c = op(a) @ op(b), row-major; sizes from 1 on.

    The rows of the right operand of a narrow product are vectors where they lie, or in a transposed copy.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        left, right, out, m, n, k, lda, ldb, ldc, trans_a, trans_b = function.args
        width = gemm_code.tile(kind).width
        plain_a, plain_b = (b.icmp_signed("==", trans, word(0)) for trans in (trans_a, trans_b))
        steps = b.select(plain_a, lda, word(1)), b.select(plain_a, word(1), lda)

        def multiply_by(right: ir.Value, ldb: ir.Value) -> None:
            operands = [left, right, out, m, n, k, *steps, ldb, ldc]
            cases(b, m, [(4, 8), (0, 4)], lambda rows: b.call(_narrow(module, kind, rows), operands))

        fits = b.or_(plain_b, b.icmp_signed("<=", k, word(DEEP)))
        narrow = b.and_(b.icmp_signed("<=", n, word(width)), fits)
        with b.if_else(narrow) as (here, there):
            with here, b.if_else(plain_b) as (at_once, later):
                with at_once:
                    multiply_by(right, ldb)
                with later:
                    panel = b.alloca(kind, (DEEP + width) * width)
                    b.call(gemm_code.transpose(module, kind, width), [right, ldb, k, n, panel])
                    multiply_by(panel, word(width))
            with there:
                gemm_code.by_blocks(b, module, kind, list(function.args))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"multiply.{kind}", _VOID, [pointer] * 3 + [WORD] * 8, define)


def _narrow(module: ir.Module, kind: ir.Type, together: int) -> ir.Function:
    """``void (left, right, out, m, n, k, down, along, ldb, ldc)``: a few rows at a time, the whole width of each."""
    width = gemm_code.tile(kind).width
    vector = ir.VectorType(kind, width)
    nothing = zero(vector)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        left, right, out, m, n, k, down, along, ldb, ldc = function.args
        there = first_lanes(b, width, n)
        before = [ir.Constant(vector, [-0.0] * width)] * together  # -0.0 + x is x, whatever x is
        with ForStrips(b, m, together) as (first, count):
            last = b.sub(count, word(1))
            rows = [b.add(first, least(b, word(r), last)) for r in range(together)]
            lines = [b.gep(left, [b.mul(row, down)]) for row in rows]
            with While(b, lambda p, *_: b.icmp_signed("<", p, k), word(0), *before) as blocks:
                start, *totals = blocks.carried
                stop = least(b, b.add(start, word(DEEP)), k)
                with While(b, lambda p, *_: b.icmp_signed("<", p, stop), start, *[nothing] * together) as walk:
                    p, *sums = walk.carried
                    x, place = load_some(b, b.gep(right, [b.mul(p, ldb)]), there, nothing), b.mul(p, along)
                    elements = [spread(b, b.load(b.gep(line, [place])), width) for line in lines]
                    walk.next = [b.add(p, word(1)), *(fused(b, e, x, z) for e, z in zip(elements, sums, strict=True))]
                _, *sums = walk.carried
                blocks.next = [stop, *(add(b, total, z) for total, z in zip(totals, sums, strict=True))]
            for row, total in zip(rows, blocks.carried[1:], strict=True):
                store_some(b, total, b.gep(out, [b.mul(row, ldc)]), n)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"narrow_product_{together}.{kind}", _VOID, [pointer] * 3 + [WORD] * 7, define)
