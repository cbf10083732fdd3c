"""Machine code of chains that go over windows, of which a lane takes every `LANES`-th. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    While,
    add,
    align,
    apart,
    cases,
    first_lanes,
    fused,
    internal,
    least,
    load_lanes,
    load_some,
    multiply,
    next_place,
    spread,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile
from common.kernels.arrays.window_code import inside, loaded

_VOID = ir.VoidType()
_AT_ONCE = 16, 9
"""Places of windows whose chains are in registers."""


def fuse_lanes(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, y, lanes, start, length)``: products added to chains, the first one to that of number `start`.

    ``lanes[(start + t) % LANES] = fma(x[t], y[t], lanes[(start + t) % LANES])`` for t < length, in order.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, y, lanes, start, length = function.args
        vector = ir.VectorType(kind, LANES)
        end = b.add(start, length)
        with While(b, lambda at, _: b.icmp_signed("<", at, end), word(0), load_lanes(b, lanes, LANES)) as walk:
            at, sums = walk.carried
            (there,) = inside(b, LANES, 1, b.sub(start, at), b.sub(end, at))
            where = b.sub(at, start)
            left, right = (load_some(b, b.gep(v, [where]), there, zero(vector)) for v in (x, y))
            walk.next = [b.add(at, word(LANES)), b.select(there, fused(b, left, right, sums), sums)]
        store_lanes(b, walk.carried[1], lanes)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"fuse_lanes.{kind}", _VOID, [pointer, pointer, pointer, WORD, WORD], define)


def fuse_places(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (g, x, lanes, n, kw, kh, dx, dy, dz, step, length, rows, down, start)``: the same for places of windows.

    For rows of windows, of which the first is number `start`: ``fuse_lanes`` of a row of g and, for each of n places,
    of the elements ``x[place + r * down + t * step]``, in lanes of its own; step <= 2. Places are those of
    `common.kernels.arrays.code_blocks.next_place`, from the first on.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        g, x, lanes, n, *way, step, length, rows, down, start = function.args
        taken = b.alloca(WORD)
        with While(b, lambda j: b.icmp_signed("<", j, n), word(0)) as walk:
            (j,) = walk.carried

            def some(count: int) -> None:
                for apart_by in (1, 2):
                    with b.if_then(b.icmp_signed("==", step, word(apart_by))):
                        chains = _fuse_places(module, kind, count, apart_by)
                        b.call(chains, [g, x, lanes, n, *way, length, rows, down, start, j])
                b.store(word(count), taken)

            cases(b, b.sub(n, j), [(_AT_ONCE[1], _AT_ONCE[0]), (0, _AT_ONCE[1])], some)
            walk.next = [b.add(j, b.load(taken))]
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"fuse_places.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 11], define)


def _fuse_places(module: ir.Module, kind: ir.Type, count: int, step: int) -> ir.Function:
    """The same for so many places at most from a number on, and a step."""
    vector = ir.VectorType(kind, LANES)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        g, x, lanes, n, *way, length, rows, down, start, begin = function.args
        nowhere = b.alloca(kind, LANES)
        with While(b, lambda j, *_: b.icmp_signed("<", j, begin), *[word(0)] * 4) as walk:
            j, place, *turn = walk.carried
            further, *turn = next_place(b, *way, *turn)
            walk.next = [b.add(j, word(1)), b.add(place, further), *turn]
        _, place, *turn = walk.carried
        firsts, chains = [], []
        for i in range(count):
            j = b.add(begin, word(i))
            there = b.icmp_signed("<", j, n)
            firsts.append(b.gep(x, [b.select(there, place, word(0))]))
            chains.append(b.select(there, b.gep(lanes, [b.mul(j, word(LANES))]), nowhere))
            further, *turn = next_place(b, *way, *turn)
            place = b.add(place, further)
        store_lanes(b, zero(vector), nowhere)
        sums = [load_lanes(b, chain, LANES) for chain in chains]
        with ForLoop(b, rows, 1, *sums) as each:
            done = b.mul(each.index, length)
            skipped = b.and_(b.add(start, done), word(LANES - 1))
            end = b.add(skipped, length)
            with While(b, lambda at, *_: b.icmp_signed("<", at, end), word(0), *each.carried) as walk:
                at, *own = walk.carried
                low, high, where = b.sub(skipped, at), b.sub(end, at), b.sub(at, skipped)
                (there,) = inside(b, LANES, 1, low, high)
                masks = inside(b, LANES, step, low, high)
                left = load_some(b, b.gep(g, [b.add(done, where)]), there, zero(vector))
                moved = b.add(b.mul(each.index, down), b.mul(where, word(step)))
                following = []
                for first, total in zip(firsts, own, strict=True):
                    right = loaded(b, b.gep(first, [moved]), masks, kind, LANES)
                    following.append(b.select(there, fused(b, left, right, total), total))
                walk.next = [b.add(at, word(LANES)), *following]
            each.next = walk.carried[1:]
        for total, chain in zip(each.carried, chains, strict=True):
            store_lanes(b, total, chain)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"fuse_places_{count}_{step}.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 11], define)


_SIDE_BY_SIDE = 4
"""Rows whose sums are in registers: each waits for its last addition."""


def add_places(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, w, out, n, kw, kh, dx, dy, dz, length, rows, down, deeper)``: rounded products of places, added up.

    ``out[r * deeper + t] = 0 + w[0] * x[r * down + t + place 0] + ...`` for n places, r < rows and t < length.
    """
    width = tile(kind).width
    vector = ir.VectorType(kind, width)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, w, out, n, *way, length, rows, down, deeper = function.args
        last = b.sub(rows, word(1))
        with ForStrips(b, rows, _SIDE_BY_SIDE) as (r, _), ForStrips(b, length, width) as (t, there):
            some = first_lanes(b, width, there)
            numbers = [least(b, b.add(r, word(i)), last) for i in range(_SIDE_BY_SIDE)]
            lines = [b.gep(x, [b.add(b.mul(number, down), t)]) for number in numbers]
            begin = [*[word(0)] * 4, *[zero(vector)] * _SIDE_BY_SIDE]
            with While(b, lambda j, *_: b.icmp_signed("<", j, n), *begin) as walk:
                j, place, column, row, *sums = walk.carried
                number = spread(b, b.load(b.gep(w, [j]), align=align(kind)), width)
                found = [load_some(b, b.gep(line, [place]), some, zero(vector)) for line in lines]
                added = [add(b, total, multiply(b, number, lanes)) for total, lanes in zip(sums, found, strict=True)]
                further, *turn = next_place(b, *way, column, row)
                walk.next = [b.add(j, word(1)), b.add(place, further), *turn, *added]
            for number, total in zip(numbers, walk.carried[4:], strict=True):
                store_some(b, total, b.gep(out, [b.add(b.mul(number, deeper), t)]), some)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"add_places.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 10], define)
