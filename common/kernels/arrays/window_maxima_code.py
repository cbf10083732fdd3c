"""Machine code that finds maxima of windows that follow each other, and puts numbers there. Needs llvmlite."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    add,
    align,
    apart,
    first_lanes,
    internal,
    load_some,
    picks,
    spread,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile


def put_at_maxima(module: ir.Module, kind: ir.Type, size: int) -> ir.Function:
    """``void (v, x, out, size, count, rows, down, deep, plane, high, line)``: rows of windows of `size` columns.

    A row has `count` windows, the next one begins `down` elements on. A window has `deep` planes, `plane` elements
    apart, of `high` rows, `line` elements apart. Per window `out` gets its element of `v` added to zero where the
    maximum in x is: the first one, or the last NaN.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        v, x, out, _, count, rows, down, deep, plane, high, line = function.args
        width = tile(kind).width
        number = ir.IntType(8 * align(kind))
        lanes, numbers = ir.VectorType(kind, width), ir.VectorType(number, width)
        least = ir.Constant(lanes, [ir.Constant(kind, float("-inf"))] * width)
        nothing = zero(lanes)
        with ForLoop(b, rows, 1) as row, ForStrips(b, count, width) as (t, there):
            start = b.add(b.mul(row.index, down), b.mul(t, word(size)))
            source, target = b.gep(x, [start]), b.gep(out, [start])
            given = b.gep(v, [b.add(b.mul(row.index, count), t)])
            left = [b.sub(b.mul(there, word(size)), word(width * i)) for i in range(size)]
            masks = [first_lanes(b, width, n) for n in left]
            g = add(b, nothing, load_some(b, given, there, nothing))

            def place(at: ir.Value, i: int) -> ir.Value:
                return b.gep(at, [word(width * i)])

            with ForLoop(b, deep, 1, least, zero(numbers)) as z:
                with ForLoop(b, high, 1, *z.carried) as y:
                    at = b.gep(source, [b.add(b.mul(z.index, plane), b.mul(y.index, line))])
                    best, where = y.carried
                    loaded = [load_some(b, place(at, i), mask, nothing) for i, mask in enumerate(masks)]
                    for j in range(size):
                        new = picked(b, loaded, [lane * size + j for lane in range(width)])
                        own = _number(b, z.index, y.index, high, size, j, numbers)
                        better = b.or_(b.fcmp_ordered(">", new, best), b.fcmp_unordered("uno", new, new))
                        best, where = b.select(better, new, best), b.select(better, own, where)
                    y.next = [best, where]
                z.next = y.carried
            _, where = z.carried
            with ForLoop(b, deep, 1) as z, ForLoop(b, high, 1) as y:
                at = b.gep(target, [b.add(b.mul(z.index, plane), b.mul(y.index, line))])
                own = [_number(b, z.index, y.index, high, size, j, numbers) for j in range(size)]
                put = [b.select(b.icmp_signed("==", where, each), g, nothing) for each in own]
                for i, mask in enumerate(masks):
                    order = [divmod(width * i + lane, size) for lane in range(width)]
                    store_some(b, picked(b, put, [j * width + window for window, j in order]), place(at, i), mask)
        b.ret_void()

    pointer = kind.as_pointer()
    types = [pointer, pointer, pointer, *[WORD] * 8]
    return internal(module, f"put_at_maxima_{size}.{kind}", ir.VoidType(), types, define)


def _number(
    b: ir.IRBuilder, z: ir.Value, y: ir.Value, high: ir.Value, size: int, j: int, numbers: ir.VectorType
) -> ir.Value:
    """The number of a place in windows, in each lane."""
    place = b.add(b.mul(b.add(b.mul(z, high), y), word(size)), word(j))
    width = numbers.element
    return spread(b, place if width == WORD else b.trunc(place, width), numbers.count)


def picked(b: ir.IRBuilder, vectors: Sequence[ir.Value], order: Sequence[int]) -> ir.Value:
    """A vector of elements of several, by their places in all of them."""
    width = vectors[0].type.count
    found = vectors[0]
    for i, other in enumerate(vectors):
        lanes = [
            width + place - width * i if place // width == i else lane for lane, place in enumerate(order)
        ]
        if i == 0:
            lanes = [place if place < width else 0 for place in order]
        found = b.shuffle_vector(found, other, picks(*lanes))
    return found
