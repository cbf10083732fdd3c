"""Machine code for sums and maxima of windows side by side, as many as a vector has lanes. Needs llvmlite."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    INDEX,
    WORD,
    ForLoop,
    ForStrips,
    While,
    add,
    apart,
    internal,
    load_lanes,
    load_some,
    picks,
    spread,
    store_some,
    word,
)
from common.kernels.arrays.gemm_code import tile
from common.kernels.arrays.window_maxima_code import picked

Lanes = Sequence[ir.Value]


def sums_of_windows(module: ir.Module, kind: ir.Type, step: int, size: int) -> ir.Function:
    """``void (x, out, across, count, before, line, deep, plane, rows, down, above, high, far, lines)``: sums.

    There are `rows` rows of `count` windows. Those of a row begin `before` elements before a row of `line` elements,
    `step` apart; rows of them begin `above` lines before the image of `lines` lines, `down` apart. A window has `deep`
    planes, `plane` elements apart, of `high` lines, `far` apart, of `size` elements, `across` apart; what is beside the
    image is left out. Elements are added in this order, from +0.0 on: a further +0.0 for each that is left out changes
    nothing.
    """
    zeros = _number(kind, 0)

    def added(b: ir.IRBuilder, carried: Lanes, new: Sequence[ir.Value]) -> Lanes:
        (total,) = carried
        for lanes in new:
            total = add(b, total, lanes)
        return [total]

    return _folded(module, kind, step, size, "sums", zeros, [zeros], added, lambda _, carried: carried[0])


def maxima_of_windows(module: ir.Module, kind: ir.Type, step: int, size: int) -> ir.Function:
    """The same for maxima: of equal ones the first; NaN if there is one; of nothing -inf.

    Where a NaN was is kept apart, so that an element waits for one instruction only before the next.
    """
    least = _number(kind, float("-inf"))
    none = ir.Constant(ir.VectorType(ir.IntType(1), least.type.count), None)

    def larger(b: ir.IRBuilder, carried: Lanes, new: Sequence[ir.Value]) -> Lanes:
        best, unordered = carried
        for lanes in new:
            best = b.select(b.fcmp_ordered(">", lanes, best), lanes, best)
        for x, y in zip(new[::2], [*new[1::2], new[-1]]):
            unordered = b.or_(unordered, b.fcmp_unordered("uno", x, y))
        return [best, unordered]

    def found(b: ir.IRBuilder, carried: Lanes) -> ir.Value:
        best, unordered = carried
        return b.select(unordered, _number(kind, float("nan")), best)

    return _folded(module, kind, step, size, "maxima", least, [least, none], larger, found)


def _number(kind: ir.Type, value: float) -> ir.Constant:
    width = tile(kind).width
    return ir.Constant(ir.VectorType(kind, width), [ir.Constant(kind, value)] * width)


def _folded(
    module: ir.Module,
    kind: ir.Type,
    step: int,
    size: int,
    name: str,
    missing: ir.Constant,
    start: Lanes,
    combine: Callable[[ir.IRBuilder, Lanes, Sequence[ir.Value]], Lanes],
    result: Callable[[ir.IRBuilder, Lanes], ir.Value],
) -> ir.Function:
    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, out, across, count, before, line, deep, plane, rows, down, above, high, far, lines = function.args
        width = tile(kind).width
        reach = b.add(b.mul(across, word(size - 1)), word(width * step))
        with ForLoop(b, rows, 1) as row:
            top = b.sub(b.mul(row.index, down), above)
            first, last = _inside(b, top, high, far, lines)
            tall = b.sub(last, first)
            image = b.gep(x, [b.mul(b.add(top, b.mul(first, far)), line)])
            results, lower = b.gep(out, [b.mul(row.index, count)]), b.mul(far, line)
            with ForStrips(b, count, width, whole=True) as (t, there):
                begin = b.sub(b.mul(t, word(step)), before)
                columns = [
                    [b.add(b.add(begin, b.mul(across, word(k))), word(width * i)) for i in range(step)]
                    for k in range(size)
                ]

                def fold(windows: ir.Value, load: Callable[[ir.Value, int, int], ir.Value]) -> None:
                    with ForLoop(b, deep, 1, *start) as z:
                        with ForLoop(b, tall, 1, *z.carried) as y:
                            place = b.gep(image, [b.add(b.mul(z.index, plane), b.mul(y.index, lower))])
                            vectors = ([load(place, k, i) for i in range(step)] for k in range(size))
                            order = range(0, width * step, step)
                            y.next = combine(b, y.carried, [picked(b, lanes, order) for lanes in vectors])
                        z.next = y.carried
                    store_some(b, result(b, z.carried), b.gep(results, [t]), windows)

                inside = b.and_(b.icmp_signed(">=", begin, word(0)), b.icmp_signed("<=", b.add(begin, reach), line))
                with b.if_else(b.and_(inside, b.icmp_signed("==", there, word(width)))) as (whole, cut):
                    with whole:
                        fold(word(width), lambda place, k, i: load_lanes(b, b.gep(place, [columns[k][i]]), width))
                    with cut:
                        masks = [[_in_row(b, column, line, width) for column in each] for each in columns]
                        fold(there, lambda at, k, i: load_some(b, b.gep(at, [columns[k][i]]), masks[k][i], missing))
        b.ret_void()

    pointer = kind.as_pointer()
    types = [pointer, pointer, *[WORD] * 12]
    return internal(module, f"{name}_of_windows_{step}_{size}.{kind}", ir.VoidType(), types, define)


def _inside(
    b: ir.IRBuilder, top: ir.Value, high: ir.Value, far: ir.Value, lines: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The first of `high` lines from `top` on, `far` apart, that is in the image, and the one behind the last."""

    def below(i: ir.Value) -> ir.Value:
        return b.and_(b.icmp_signed("<", i, high), b.icmp_signed("<", b.add(top, b.mul(i, far)), word(0)))

    with While(b, below, word(0)) as skip:
        skip.next = [b.add(skip.carried[0], word(1))]
    (first,) = skip.carried

    def beyond(i: ir.Value) -> ir.Value:
        line = b.add(top, b.mul(b.sub(i, word(1)), far))
        return b.and_(b.icmp_signed(">", i, first), b.icmp_signed(">=", line, lines))

    with While(b, beyond, high) as drop:
        drop.next = [b.sub(drop.carried[0], word(1))]
    return first, drop.carried[0]


def _in_row(b: ir.IRBuilder, column: ir.Value, line: ir.Value, width: int) -> ir.Value:
    """The mask of the lanes from `column` on that are in a row of `line` elements."""
    lanes = b.add(spread(b, b.trunc(column, INDEX), width), picks(*range(width)))
    below = b.icmp_signed("<", lanes, spread(b, b.trunc(line, INDEX), width))
    return b.and_(below, b.icmp_signed(">=", lanes, ir.Constant(lanes.type, None)))
