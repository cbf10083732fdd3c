"""Machine code of `common.kernels.linalg.elimination`."""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from common.kernels.arrays.code_blocks import ForLoop, word
from common.kernels.linalg.elimination import FRACTION, LN2_HIGH, LN2_LOW, ROOT_HALF, SERIES, SMALLEST
from common.kernels.linalg.lane_code import Code, LaneFunctions, Matrices

__all__ = ["FUNCTIONS"]


def _exchanged(b: ir.IRBuilder, where: ir.Value, u: ir.Value, v: ir.Value) -> tuple[ir.Value, ir.Value]:
    return b.select(where, v, u), b.select(where, u, v)


def _eliminate(c: Code, at: ir.Value, sides: ir.Value, found: ir.Value, n: ir.Value, count: ir.Value) -> None:
    """Matrices and right sides as `elimination._eliminated` leaves them; at `found` determinants, signs and infos, and
    pivots as vectors from number 4 on.
    """
    b, a, x = c.b, Matrices(c, at, n), Matrices(c, sides, count)
    with ForLoop(b, n, 1, c.ones, c.ones, c.none) as column:
        k, (det, sign, info) = column.index, column.carried
        here, below = c.everywhere(k), b.add(k, word(1))
        with c.range(below, n, c.magnitude(a.load(k, k)), here) as (search, i):
            best, place = search.carried
            size = c.magnitude(a.load(i, k))
            more = b.fcmp_ordered(">", size, best)
            search.next = [b.select(more, size, best), b.select(more, c.everywhere(i), place)]
        place = search.carried[1]
        c.tell_one(found, b.add(k, word(4)), b.add(place, c.word(1)))
        moved = b.icmp_signed("!=", place, here)
        with b.if_then(c.any(moved)), c.range(below, n) as (_, i):
            exchanged = b.icmp_signed("==", place, c.everywhere(i))
            with b.if_then(c.any(exchanged)):
                for matrix in (a, x):
                    rows = [(matrix, i), (matrix, k)]
                    c.change(rows, word(0), matrix.columns, partial(_exchanged, b, c.along(exchanged)))
        pivot = a.load(k, k)
        nothing = b.fcmp_ordered("==", pivot, c.zeros)
        divisor = b.select(nothing, c.ones, pivot)
        with c.range(below, n) as (_, i):
            factor = b.fdiv(a.load(i, k), divisor)
            a.store(factor, i, k)
            c.subtract(a, i, k, below, n, factor)
            c.subtract(x, i, k, word(0), count, factor)
        negative = b.fcmp_ordered("<", pivot, c.zeros)
        sign, det = b.select(moved, b.fneg(sign), sign), b.select(moved, b.fneg(det), det)
        first = b.and_(nothing, b.icmp_signed("==", info, c.none))
        column.next = [
            b.fmul(det, pivot), b.select(nothing, c.zeros, b.select(negative, b.fneg(sign), sign)),
            b.select(first, c.everywhere(below), info),
        ]  # fmt: skip
    c.tell(found, *column.carried)


def _substitute(
    c: Code, at: ir.Value, sides: ir.Value, upper: ir.Value, unitriangular: ir.Value, n: ir.Value, count: ir.Value
) -> None:
    """The right sides as `elimination._substituted` leaves them."""
    b, a, x = c.b, Matrices(c, at, n), Matrices(c, sides, count)
    backwards = b.icmp_signed("!=", upper, word(0))
    with ForLoop(b, n, 1) as row:
        k = b.select(backwards, b.sub(b.sub(n, word(1)), row.index), row.index)
        with b.if_then(b.icmp_signed("==", unitriangular, word(0))):
            pivot = c.along(a.load(k, k))
            c.change([(x, k)], word(0), count, lambda u: (b.fdiv(u, pivot),))
        start, stop = b.select(backwards, word(0), b.add(k, word(1))), b.select(backwards, k, n)
        with c.range(start, stop) as (_, i):
            c.subtract(x, i, k, word(0), count, a.load(i, k))


def _factor(c: Code, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """Lower triangles as `elimination.triangular_factors` leaves them; infos at `found`.

    What is found below the diagonal stands to the right of it too, where a row is subtracted from the others.
    """
    b, a = c.b, Matrices(c, at, n)
    with ForLoop(b, n, 1, c.none) as column:
        k, (info,) = column.index, column.carried
        below, pivot = b.add(k, word(1)), a.load(k, k)
        positive = b.fcmp_ordered(">", pivot, c.zeros)
        first = b.and_(b.not_(positive), b.icmp_signed("==", info, c.none))
        info = b.select(first, c.everywhere(below), info)
        live = b.icmp_signed("==", info, c.none)
        with b.if_then(c.any(live)):
            size = b.select(live, c.root(pivot), pivot)
            a.store(size, k, k)
            with c.range(below, n) as (_, i):
                value = b.select(live, b.fdiv(a.load(i, k), size), a.load(i, k))
                a.store(value, i, k)
                a.store(value, k, i)
            with c.range(below, n) as (_, i):
                c.subtract(a, i, k, below, b.add(i, word(1)), a.load(i, k), live)
        column.next = [info]
    c.tell(found, *column.carried)


def _take_logarithms(c: Code, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """What `elimination.logarithms_of_determinants` makes of pivots, as vector number 3 at `found`."""
    b, a = c.b, Matrices(c, at, n)
    infinity = c.number(float("inf"))
    with ForLoop(b, n, 1, c.ones, c.zeros) as row:
        product, exponent = row.carried
        size = c.magnitude(a.load(row.index, row.index))
        tiny = b.fcmp_ordered("<", size, c.number(SMALLEST))
        ordinary = b.and_(b.fcmp_ordered(">", size, c.zeros), b.fcmp_ordered("<", size, infinity))
        bits = c.bits(b.select(tiny, b.fmul(size, c.number(2.0**54)), size))
        significand = c.floats(b.or_(b.and_(bits, c.word(FRACTION)), c.bits(c.ones)))
        power = b.sub(b.sub(b.ashr(bits, c.word(52)), c.word(1023)), b.select(tiny, c.word(54), c.none))
        row.next = [
            b.fmul(product, b.select(ordinary, significand, size)),
            b.fadd(exponent, c.converted(b.select(ordinary, power, c.none))),
        ]
    product, exponent = row.carried
    bits = c.bits(product)
    field = b.and_(b.sub(bits, c.bits(c.number(ROOT_HALF))), c.word(~FRACTION))
    exponent = b.fadd(exponent, c.converted(b.ashr(field, c.word(52))))
    f = b.fsub(c.floats(b.sub(bits, field)), c.ones)
    half, s = b.fmul(b.fmul(c.number(0.5), f), f), b.fdiv(f, b.fadd(c.number(2.0), f))
    z, series = b.fmul(s, s), c.number(SERIES[-1])
    for number in SERIES[-2::-1]:
        series = b.fadd(b.fmul(series, z), c.number(number))
    tail = b.fadd(b.fmul(s, b.fadd(half, b.fmul(z, series))), b.fmul(exponent, c.number(LN2_LOW)))
    logarithm = b.fadd(b.fmul(exponent, c.number(LN2_HIGH)), b.fsub(f, b.fsub(half, tail)))
    logarithm = b.select(b.fcmp_ordered("<", product, infinity), logarithm, product)
    nothing = b.fcmp_ordered("==", product, c.zeros)
    c.tell_one(found, word(3), b.select(nothing, c.number(float("-inf")), logarithm))


FUNCTIONS = LaneFunctions({
    "eliminate": (_eliminate, 5), "substitute": (_substitute, 6), "factor": (_factor, 3),
    "take_logarithms": (_take_logarithms, 3),
})  # fmt: skip
"""``eliminate_of_8``, ``eliminate_of_1`` and the others."""
