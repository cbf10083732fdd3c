"""Machine code that finds where the maximum of contiguous floats is, by lanes. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    INDEX,
    WORD,
    While,
    apart,
    first_lanes,
    fold_vector,
    internal,
    load_some,
    picks,
    spread,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile


def first_maximum(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 (x, n)``: where the maximum of n elements is: the first one, or the last NaN; 0 for none.

    A lane keeps its own place, in the order of its elements; of equal lanes the first place is taken, of NaN the last.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, n = function.args
        width = tile(kind).width
        vector, places = ir.VectorType(kind, width), ir.VectorType(INDEX, width)
        least = ir.Constant(vector, [ir.Constant(kind, float("-inf"))] * width)
        with While(b, lambda t, *_: b.icmp_signed("<", t, n), word(0), least, zero(places)) as walk:
            t, best, at = walk.carried
            new = load_some(b, b.gep(x, [t]), first_lanes(b, width, b.sub(n, t)), least)
            here = b.add(spread(b, b.trunc(t, INDEX), width), picks(*range(width)))
            better = b.or_(b.fcmp_ordered(">", new, best), b.fcmp_unordered("uno", new, new))
            walk.next = [b.add(t, word(width)), b.select(better, new, best), b.select(better, here, at)]
        _, best, at = walk.carried
        unordered = b.fcmp_unordered("uno", best, best)
        last = fold_vector(b, b.select(unordered, at, ir.Constant(places, [-1] * width)), _larger)
        with b.if_then(b.icmp_signed(">=", last, INDEX(0))):
            b.ret(b.sext(last, WORD))
        top = fold_vector(b, best, _above)
        none = ir.Constant(places, [2**31 - 1] * width)
        first = b.select(b.fcmp_ordered("==", best, spread(b, top, width)), at, none)
        b.ret(b.sext(fold_vector(b, first, _smaller), WORD))

    return internal(module, f"first_maximum.{kind}", WORD, [kind.as_pointer(), WORD], define)


def _larger(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed(">", x, y), x, y)


def _smaller(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


def _above(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.fcmp_ordered(">", x, y), x, y)
