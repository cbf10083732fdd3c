"""Machine code that moves rows of windows between images and the panels of a product. Needs llvmlite.

A row of windows is a few elements of an image, 1, 2 or more apart. Those outside the image are not read or written.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from common.core.numerics import LANES
from common.kernels.arrays.code_blocks import (
    INDEX,
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
    load_lanes,
    load_some,
    multiply,
    next_place,
    picks,
    spread,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.gemm_code import tile

_VOID = ir.VoidType()


def copy_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, to, first, last, length, step, count, down, deeper)``: rows of windows copied, zeros outside.

    ``to[r * deeper + t] = x[r * down + t * step] if first <= t < last else 0`` for r < count and t < length.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        *before, count, down, deeper = function.args
        b.call(_copied(module, kind), [*before, word(0), count, count, down, deeper])
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"copy_windows.{kind}", _VOID, [pointer, pointer, *[WORD] * 7], define)


def lay_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, to, v, w, length, step, shift, shifts, from, until, lines, down, line, planes, plane)``: planes.

    Each is copied: it has `lines` rows of `length` windows, and that `shifts` times, `line` elements apart:
    ``to[(c * shifts + i) * line + r * length + t] = x[c * plane + r * down + i * shift + t * step]``
    where from <= r < until and 0 <= v + i * shift + t * step < w, else 0.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, to, v, w, length, step, shift, shifts, from_, until, lines, down, line, planes, plane = function.args
        with ForLoop(b, shifts, 1) as i:
            moved = b.mul(i.index, shift)
            reached = (b.sub(b.add(bound, step), b.add(b.add(v, moved), word(1))) for bound in (word(0), w))
            first, last = (b.sdiv(b.select(b.icmp_signed(">", y, word(0)), y, word(0)), step) for y in reached)
            with ForLoop(b, planes, 1) as c:
                source = b.gep(x, [b.add(b.mul(c.index, plane), moved)])
                into = b.gep(to, [b.mul(b.add(b.mul(c.index, shifts), i.index), line)])
                copied = _copied(module, kind)
                b.call(copied, [source, into, first, last, length, step, from_, until, lines, down, length])
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"lay_windows.{kind}", _VOID, [pointer, pointer, *[WORD] * 13], define)


def _copied(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, to, first, last, length, step, from, until, count, down, deeper)``: zeros unless from <= r < until."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("alwaysinline")
        x, to, first, last, length, step, from_, until, count, down, deeper = function.args
        width = tile(kind).width
        nothing = zero(ir.VectorType(kind, width))

        def vectors(apart_by: int) -> None:
            with ForStrips(b, length, width) as (t, there):
                source, into = b.gep(x, [b.mul(t, word(apart_by))]), b.gep(to, [t])
                masks = inside(b, width, apart_by, b.sub(first, t), b.sub(last, t))

                def rows(store: Callable[[ir.Value, ir.Value], None]) -> None:
                    for start, stop, copies in ((word(0), from_, False), (from_, until, True), (until, count, False)):
                        with ForLoop(b, b.sub(stop, start), 1) as each:
                            r, lanes = b.add(start, each.index), nothing
                            if copies:
                                lanes = loaded(b, b.gep(source, [b.mul(r, down)]), masks, kind, width)
                            store(lanes, b.gep(into, [b.mul(r, deeper)]))

                some = first_lanes(b, width, there)
                with b.if_else(b.icmp_signed("==", there, word(width))) as (whole, cut):
                    with whole:
                        rows(lambda lanes, place: store_lanes(b, lanes, place))
                    with cut:
                        rows(lambda lanes, place: store_some(b, lanes, place, some))

        def one_by_one() -> None:
            with ForLoop(b, count, 1) as each, ForLoop(b, length, 1) as lane:
                r, t = each.index, lane.index
                into = b.gep(to, [b.add(b.mul(r, deeper), t)])
                b.store(zero(kind), into, align=align(kind))
                there = b.and_(b.icmp_signed(">=", r, from_), b.icmp_signed("<", r, until))
                within = b.and_(b.icmp_signed(">=", t, first), b.icmp_signed("<", t, last))
                with b.if_then(b.and_(there, within)):
                    place = b.gep(x, [b.add(b.mul(r, down), b.mul(t, step))])
                    b.store(b.load(place, align=align(kind), typ=kind), into, align=align(kind))

        by_step(b, step, vectors, one_by_one)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"copied.{kind}", _VOID, [pointer, pointer, *[WORD] * 9], define)


def add_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (rows, x, first, last, step, count, deeper, down)``: rows of windows added to where they are.

    ``x[r * down + t * step] += rows[r * deeper + t]`` for r < count and first <= t < last.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        rows, *rest = function.args
        _added(b, function, rows, None, *rest)

    pointer = kind.as_pointer()
    return internal(module, f"add_windows.{kind}", _VOID, [pointer, pointer, *[WORD] * 6], define)


def add_products(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (rows, factor, x, ...)``: the same of rows times one number."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        rows, factor, *rest = function.args
        _added(b, function, rows, b.load(factor, align=align(kind), typ=kind), *rest)

    pointer = kind.as_pointer()
    return internal(module, f"add_products.{kind}", _VOID, [pointer, pointer, pointer, *[WORD] * 6], define)


def _added(
    b: ir.IRBuilder, function: ir.Function, rows: ir.Value, factor: ir.Value | None, x: ir.Value, *sizes: ir.Value
) -> None:
    """The body of `add_windows` and of `add_products`."""
    apart(function)
    first, last, step, count, deeper, down = sizes
    kind = rows.type.pointee
    width = tile(kind).width

    def times(value: ir.Value) -> ir.Value:
        if factor is None:
            return value
        lanes = isinstance(value.type, ir.VectorType)
        return multiply(b, value, spread(b, factor, width) if lanes else factor)

    def vectors(apart_by: int) -> None:
        with ForStrips(b, last, width) as (t, _):
            source, into = b.gep(rows, [t]), b.gep(x, [b.mul(t, word(apart_by))])
            low, high = b.sub(first, t), b.sub(last, t)
            (own,), masks = inside(b, width, 1, low, high), inside(b, width, apart_by, low, high)
            nothing = zero(ir.VectorType(kind, width))
            with ForLoop(b, count, 1) as each:
                lanes = times(load_some(b, b.gep(source, [b.mul(each.index, deeper)]), own, nothing))
                line = b.gep(into, [b.mul(each.index, down)])
                for i, mask in enumerate(masks):
                    place = b.gep(line, [word(i * width)])
                    spaced = lanes
                    if apart_by == 2:
                        half = [i * width // 2 + j // 2 for j in range(width)]
                        spaced = b.shuffle_vector(lanes, nothing, picks(*half))
                    store_some(b, add(b, load_some(b, place, mask, nothing), spaced), place, mask)

    def one_by_one() -> None:
        with ForLoop(b, count, 1) as each, ForLoop(b, b.sub(last, first), 1) as lane:
            t = b.add(first, lane.index)
            place = b.gep(x, [b.add(b.mul(each.index, down), b.mul(t, step))])
            element = b.load(b.gep(rows, [b.add(b.mul(each.index, deeper), t)]), align=align(kind), typ=kind)
            b.store(add(b, b.load(place, align=align(kind), typ=kind), times(element)), place, align=align(kind))

    by_step(b, step, vectors, one_by_one)
    b.ret_void()


def fuse_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, factor, to, first, last, length, step, count, down, deeper)``: rows of windows times a number, added.

    ``to[r * deeper + t] = fma(factor, v, to[r * deeper + t])`` with the v that `copy_windows` copies.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, factor, to, first, last, length, step, count, down, deeper = function.args
        width = tile(kind).width
        vector = ir.VectorType(kind, width)
        number = spread(b, b.load(factor, align=align(kind), typ=kind), width)

        def vectors(apart_by: int) -> None:
            with ForStrips(b, length, width) as (t, there):
                source, into = b.gep(x, [b.mul(t, word(apart_by))]), b.gep(to, [t])
                masks = inside(b, width, apart_by, b.sub(first, t), b.sub(last, t))
                some = first_lanes(b, width, there)
                with ForLoop(b, count, 1) as each:
                    lanes = loaded(b, b.gep(source, [b.mul(each.index, down)]), masks, kind, width)
                    place = b.gep(into, [b.mul(each.index, deeper)])
                    sums = load_some(b, place, some, zero(vector))
                    store_some(b, fused(b, number, lanes, sums), place, some)

        def one_by_one() -> None:
            only = first_lanes(b, width, word(1))
            with ForLoop(b, count, 1) as each, ForLoop(b, length, 1) as lane:
                t = lane.index
                inside = b.and_(b.icmp_signed(">=", t, first), b.icmp_signed("<", t, last))
                there = b.and_(only, _spread_bit(b, inside, width))
                line = b.gep(x, [b.add(b.mul(each.index, down), b.mul(t, step))])
                place = b.gep(to, [b.add(b.mul(each.index, deeper), t)])
                sums = load_some(b, place, only, zero(vector))
                store_some(b, fused(b, number, load_some(b, line, there, zero(vector)), sums), place, only)

        by_step(b, step, vectors, one_by_one)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"fuse_windows.{kind}", _VOID, [pointer, pointer, pointer, *[WORD] * 7], define)


def _spread_bit(b: ir.IRBuilder, bit: ir.Value, width: int) -> ir.Value:
    return b.icmp_signed("!=", spread(b, b.zext(bit, INDEX), width), zero(ir.VectorType(INDEX, width)))


_PLACES = 32, 16, 9
"""How many places a window may have for `_sum_windows`: missing ones are zeros times zero."""
_MOST = 64
"""Places of a window at most for `sum_windows`."""


def sum_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (x, w, out, n, kw, kh, dx, dy, dz, step, length, rows, down, deeper)``: S of numbers times windows.

    ``out[r * deeper + t] = S(w[j] * x[place of j + r * down + t * step])``, a chain per lane, for n <= 64, step <= 2,
    r < rows and t < length; places are those of `common.kernels.arrays.code_blocks.next_place`, from the first on.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, w, out, n, *places, step, length, rows, down, deeper = function.args

        def some(count: int) -> None:
            for apart_by in (1, 2):
                with b.if_then(b.icmp_signed("==", step, word(apart_by))):
                    make = _sum_windows if count < _MOST else _sum_many
                    summed = make(module, kind, count, apart_by)
                    b.call(summed, [x, w, out, n, *places, length, rows, down, deeper])

        counts = _MOST, *_PLACES
        cases(b, n, [(below, count) for count, below in zip(counts, (*_PLACES, 0), strict=True)], some)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"sum_windows.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 11], define)


def _sum_windows(module: ir.Module, kind: ir.Type, count: int, step: int) -> ir.Function:
    """The same for so many places at most, and a step."""
    width = tile(kind).width
    vector = ir.VectorType(kind, width)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, w, out, n, kw, kh, dx, dy, dz, length, rows, down, deeper = function.args
        nothing = b.alloca(kind, step * width)
        for i in range(step):
            store_lanes(b, zero(vector), b.gep(nothing, [word(i * width)]))
        firsts, moves, numbers = [], [], []
        place = [word(0)] * 3
        for j in range(count):
            there = b.icmp_signed("<", word(j), n)
            firsts.append(b.select(there, b.gep(x, [place[0]]), nothing))
            moves.append(b.select(there, word(-1), word(0)))
            factor = b.load(b.select(there, b.gep(w, [word(j)]), nothing), align=align(kind), typ=kind)
            numbers.append(spread(b, factor, width))
            way, *turn = next_place(b, kw, kh, dx, dy, dz, *place[1:])
            place = [b.add(place[0], way), *turn]
        with ForStrips(b, length, width) as (t, there), ForLoop(b, rows, 1) as each:
            moved = b.add(b.mul(each.index, down), b.mul(t, word(step)))
            chains = [zero(vector)] * min(count, LANES)
            for j, (first, move, number) in enumerate(zip(firsts, moves, numbers, strict=True)):
                line = b.gep(first, [b.and_(moved, move)])
                parts = [load_lanes(b, b.gep(line, [word(i * width)]), width) for i in range(step)]
                lanes = parts[0] if step == 1 else b.shuffle_vector(*parts, picks(*range(0, 2 * width, 2)))
                chains[j % LANES] = fused(b, number, lanes, chains[j % LANES])
            half = LANES // 2
            while half:
                chains = [add(b, c, chains[half + i]) if half + i < len(chains) else c
                          for i, c in enumerate(chains[:half])]  # fmt: skip
                half //= 2
            place = b.gep(out, [b.add(b.mul(each.index, deeper), t)])
            store_some(b, add(b, chains[0], zero(vector)), place, there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"sum_windows_{count}_{step}.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 10], define)


def _sum_many(module: ir.Module, kind: ir.Type, count: int, step: int) -> ir.Function:
    """The same for more places than there are registers, `LANES` at a time; where they are is a table."""
    width = tile(kind).width
    vector = ir.VectorType(kind, width)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        x, w, out, n, kw, kh, dx, dy, dz, length, rows, down, deeper = function.args
        nothing, numbers = b.alloca(kind, step * width), b.alloca(kind, count)
        firsts, moves = b.alloca(x.type, count), b.alloca(WORD, count)
        for i in range(step):
            store_lanes(b, zero(vector), b.gep(nothing, [word(i * width)]))
        with While(b, lambda j, *_: b.icmp_signed("<", j, word(count)), *[word(0)] * 4) as walk:
            j, place, *turn = walk.carried
            there = b.icmp_signed("<", j, n)
            b.store(b.select(there, b.gep(x, [place]), nothing), b.gep(firsts, [j]))
            b.store(b.select(there, word(-1), word(0)), b.gep(moves, [j]))
            b.store(b.load(b.select(there, b.gep(w, [j]), nothing), align=align(kind)), b.gep(numbers, [j]))
            way, *turn = next_place(b, kw, kh, dx, dy, dz, *turn)
            walk.next = [b.add(j, word(1)), b.add(place, way), *turn]
        with ForStrips(b, length, width) as (t, there), ForLoop(b, rows, 1) as each:
            moved = b.add(b.mul(each.index, down), b.mul(t, word(step)))
            some = While(b, lambda j, *_: b.icmp_signed("<", j, n), word(0), *[zero(vector)] * LANES)
            with some as walk:
                first, *chains = walk.carried
                for lane in range(LANES):
                    j = b.add(first, word(lane))
                    line = b.gep(b.load(b.gep(firsts, [j])), [b.and_(moved, b.load(b.gep(moves, [j])))])
                    parts = [load_lanes(b, b.gep(line, [word(i * width)]), width) for i in range(step)]
                    lanes = parts[0] if step == 1 else b.shuffle_vector(*parts, picks(*range(0, 2 * width, 2)))
                    number = spread(b, b.load(b.gep(numbers, [j]), align=align(kind)), width)
                    chains[lane] = fused(b, number, lanes, chains[lane])
                walk.next = [b.add(first, word(LANES)), *chains]
            chains, half = walk.carried[1:], LANES // 2
            while half:
                chains, half = [add(b, chains[i], chains[half + i]) for i in range(half)], half // 2
            place = b.gep(out, [b.add(b.mul(each.index, deeper), t)])
            store_some(b, add(b, chains[0], zero(vector)), place, there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"sum_windows_{count}_{step}.{kind}", _VOID, [*[pointer] * 3, *[WORD] * 10], define)


def by_step(b: ir.IRBuilder, step: ir.Value, vectors: Callable[[int], None], others: Callable[[], None]) -> None:
    """Vectors of elements that are 1 or 2 apart, and those that are farther one by one."""
    with b.if_else(b.icmp_signed("==", step, word(1))) as (near, far):
        with near:
            vectors(1)
        with far, b.if_else(b.icmp_signed("==", step, word(2))) as (second, farther):
            with second:
                vectors(2)
            with farther:
                others()


def inside(b: ir.IRBuilder, width: int, step: int, first: ir.Value, last: ir.Value) -> list[ir.Value]:
    """Masks of the vectors that hold elements first <= t < last of a vector's, `step` apart."""
    masks = []
    low, high = (spread(b, b.trunc(bound, INDEX), width) for bound in (first, last))
    for i in range(step):
        lanes = [(i * width + j) // step if (i * width + j) % step == 0 else -1 for j in range(width)]
        t = picks(*lanes)
        mask = b.and_(b.icmp_signed(">=", t, low), b.icmp_signed("<", t, high))
        masks.append(b.and_(mask, b.icmp_signed(">=", t, zero(t.type))) if step > 1 else mask)
    return masks


def loaded(b: ir.IRBuilder, line: ir.Value, masks: list[ir.Value], kind: ir.Type, width: int) -> ir.Value:
    """A vector of elements as far apart as there are masks."""
    nothing = zero(ir.VectorType(kind, width))
    parts = [load_some(b, b.gep(line, [word(i * width)]), mask, nothing) for i, mask in enumerate(masks)]
    if len(parts) == 1:
        return parts[0]
    return b.shuffle_vector(*parts, picks(*range(0, 2 * width, 2)))

