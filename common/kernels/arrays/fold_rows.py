"""Machine code of sums and products in the defined order: over contiguous elements, and of whole rows of columns.

Each piece is one internal function of the kernel's module, written with explicit vectors of `LANES` elements:
LLVM does not vectorise a sum whose order is fixed, and a short definition compiles in a few milliseconds.
`common.kernels.arrays.sums` says in words and in numpy what is computed here. Needs llvmlite.

A product is a sum with * for + and 1 for +0.0. Adding the +0.0 of a missing element to a lane, which is never -0.0,
changes nothing, nor does multiplying by 1; so elements and rows that are missing are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    While,
    add,
    align,
    fold_vector,
    internal,
    load_lanes,
    load_some,
    multiply,
    store_lanes,
    store_some,
    word,
)

_SHIFT = BLOCK.bit_length() - 1
_VOID = ir.VoidType()


class RowFold(NamedTuple):
    """A fold by lanes: ``combine(builder, lane, of(builder, element))``, from `start` on.

    `of` gives `start` for `start`, so that missing elements still change nothing. `together` blocks of a long fold are
    folded side by side: a lane of products waits longer than memory does, one of sums does not.
    """

    name: str
    combine: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
    start: int
    of: Callable[[ir.IRBuilder, ir.Value], ir.Value] = lambda b, v: v
    together: int = 1

    def identity(self, kind: ir.Type) -> ir.Constant:
        """The first value of a lane, or of a vector of them."""
        return ir.Constant(kind, [self.start] * kind.count if isinstance(kind, ir.VectorType) else self.start)


def _larger(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The larger one of magnitudes, whose bits are in the order of the numbers, NaN above all."""
    whole = ir.VectorType(ir.IntType(8 * align(x.type.element)), x.type.count)
    return b.select(b.icmp_signed(">", b.bitcast(x, whole), b.bitcast(y, whole)), x, y)


def _magnitude(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    bits = ir.IntType(8 * align(v.type.element))
    whole = ir.VectorType(bits, v.type.count)
    unsigned = ir.Constant(whole, [2 ** (bits.width - 1) - 1] * whole.count)
    return b.bitcast(b.and_(b.bitcast(v, whole), unsigned), v.type)


def _cube(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    size = _magnitude(b, v)
    return b.fmul(b.fmul(size, size), size)


def _number(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    return b.select(b.fcmp_unordered("uno", v, v), ir.Constant(v.type, None), v)


SUM = RowFold("sum", add, 0)
PRODUCT = RowFold("product", multiply, 1, together=4)
FOLDS = {
    how.name: how
    for how in (
        SUM,
        PRODUCT,
        RowFold("squares", add, 0, lambda b, v: b.fmul(v, v)),
        RowFold("magnitudes", add, 0, _magnitude),
        RowFold("cubes", add, 0, _cube),
        RowFold("numbers", add, 0, _number),
        RowFold("largest", _larger, 0, _magnitude),
    )
}
"""Folds by their names: sums of functions of floats as in `common.kernels.arrays.mapped_sums`; largest magnitudes."""


def fold_block(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``kind (kind* x, i64 n)``: S, or the product, of n <= BLOCK contiguous elements."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, n = function.args
        vector = ir.VectorType(kind, LANES)
        whole = b.and_(n, word(-LANES))
        with ForLoop(b, whole, LANES, how.identity(vector)) as loop:
            loaded = load_lanes(b, b.gep(x, [loop.index]), LANES)
            loop.next = [how.combine(b, loop.carried[0], how.of(b, loaded))]
        (lanes,) = loop.carried
        before, rest = b.block, b.sub(n, whole)
        with b.if_then(b.icmp_signed(">", rest, word(0))):
            some = load_some(b, b.gep(x, [whole]), rest, how.identity(vector))
            tail = how.combine(b, lanes, how.of(b, some))
            inside = b.block
        total = b.phi(vector)
        total.add_incoming(lanes, before)
        total.add_incoming(tail, inside)
        b.ret(fold_vector(b, total, how.combine))

    return internal(module, f"{how.name}_block.{kind}", kind, [kind.as_pointer(), WORD], define)


def fold_all(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``kind (kind* x, i64 n)``: S, or the product, of any number of contiguous elements; recursion 6 deep at most."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, n = function.args
        with b.if_then(b.icmp_signed("<=", n, word(BLOCK)), likely=True):
            b.ret(b.call(fold_block(module, kind, how), [x, n]))
        b.ret(b.call(_fold_long(module, kind, how, function), [x, n]))

    return internal(module, f"{how.name}.{kind}", kind, [kind.as_pointer(), WORD], define)


def fold_lanes(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``kind (kind* lanes)``: S of LANES accumulators."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("alwaysinline")
        b.ret(fold_vector(b, load_lanes(b, function.args[0], LANES), add))

    return internal(module, f"fold_lanes.{kind}", kind, [kind.as_pointer()], define)


def _fold_long(module: ir.Module, kind: ir.Type, how: RowFold, part: ir.Function) -> ir.Function:
    """``kind (kind* x, i64 n)`` for n > BLOCK: lanes of the sums of at most BLOCK parts of BLOCK**k elements.

    S of one number is that number, so the last, shorter part may have fewer levels than the others.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")
        x, n = function.args
        vector = ir.VectorType(kind, LANES)
        lanes = b.alloca(vector, name="lanes")
        lanes.align = 64
        b.store(how.identity(vector), lanes)
        lane = b.bitcast(lanes, kind.as_pointer())
        span = _grow_span(b, n)
        parts = b.sdiv(b.add(n, b.sub(span, word(1))), span)
        together: ir.Value = word(0)
        if how.together > 1:
            whole = b.and_(b.lshr(n, word(_SHIFT)), word(-how.together))
            together = b.select(b.icmp_signed("==", span, word(BLOCK)), whole, together)
            with ForLoop(b, together, how.together) as loop:
                own = b.gep(lane, [b.and_(loop.index, word(LANES - 1))])
                _fold_together(b, kind, how, b.gep(x, [b.shl(loop.index, word(_SHIFT))]), own)
        with ForLoop(b, b.sub(parts, together), 1) as loop:
            index = b.add(together, loop.index)
            start = b.mul(index, span)
            rest = b.sub(n, start)
            length = b.select(b.icmp_signed("<", rest, span), rest, span)
            own = b.gep(lane, [b.and_(index, word(LANES - 1))])
            b.store(how.combine(b, b.load(own), b.call(part, [b.gep(x, [start]), length])), own)
        b.ret(fold_vector(b, b.load(lanes), how.combine))

    return internal(module, f"{how.name}_long.{kind}", kind, [kind.as_pointer(), WORD], define)


def _fold_together(b: ir.IRBuilder, kind: ir.Type, how: RowFold, x: ir.Value, lanes: ir.Value) -> None:
    """Combine the folds of whole blocks from `x` on with as many lanes; none of the blocks waits for another."""
    vector = ir.VectorType(kind, LANES)
    with ForLoop(b, word(BLOCK), LANES, *[how.identity(vector)] * how.together) as loop:
        places = [b.gep(x, [b.add(loop.index, word(k * BLOCK))]) for k in range(how.together)]
        loop.next = [
            how.combine(b, carried, how.of(b, load_lanes(b, place, LANES)))
            for carried, place in zip(loop.carried, places, strict=True)
        ]
    for k, carried in enumerate(loop.carried):
        own = b.gep(lanes, [word(k)])
        b.store(how.combine(b, b.load(own), fold_vector(b, carried, how.combine)), own)


def _grow_span(b: ir.IRBuilder, n: ir.Value) -> ir.Value:
    """Return the smallest power BLOCK**k, k >= 1, of which at most BLOCK cover n."""
    with While(b, lambda span: b.icmp_signed("<", b.shl(span, word(_SHIFT)), n), word(BLOCK)) as walk:
        walk.next = [b.shl(walk.carried[0], word(_SHIFT))]
    return walk.carried[0]


# ---------------------------------------------------------------- rows of accumulators, one per lane
def _each(
    b: ir.IRBuilder, n: ir.Value, to: ir.Value, sources: list[ir.Value], value: Callable[..., ir.Value]
) -> None:
    """Write ``to[i] = value(source[i] for all sources)`` for i < n, by vectors; `to` overlaps no other source."""
    kind = ir.VectorType(to.type.pointee, LANES)
    whole = b.and_(n, word(-LANES))
    with ForLoop(b, whole, LANES) as loop:
        store_lanes(b, value(*(load_lanes(b, b.gep(x, [loop.index]), LANES) for x in sources)), b.gep(to, [loop.index]))
    rest = b.sub(n, whole)
    with b.if_then(b.icmp_signed(">", rest, word(0))):
        some = value(*(load_some(b, b.gep(x, [whole]), rest, ir.Constant(kind, None)) for x in sources))
        store_some(b, some, b.gep(to, [whole]), rest)


def fold_into(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* to, kind* from, i64 n)``: to[i] += from[i] or *= from[i]; the two do not overlap."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")  # one copy serves all folds
        to, source, n = function.args
        _each(b, n, to, [to, source], lambda own, other: how.combine(b, own, other))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_into.{kind}", _VOID, [pointer, pointer, WORD], define)


def fill_start(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* to, i64 n)``: to[i] = 0, or 1."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")
        to, n = function.args
        _each(b, n, to, [], lambda: how.identity(ir.VectorType(kind, LANES)))
        b.ret_void()

    return internal(module, f"{how.name}_start.{kind}", _VOID, [kind.as_pointer(), WORD], define)


def fold_rows(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* acc, i64 columns, i64 live)``: fold the rows into row 0; rows >= live are as they started."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        acc, columns, live = function.args
        for h in (LANES >> k for k in range(1, LANES.bit_length())):
            with b.if_then(b.icmp_signed(">", live, word(h))):
                above = b.sub(live, word(h))
                rows = b.select(b.icmp_signed("<", above, word(h)), above, word(h))
                upper = b.gep(acc, [b.mul(columns, word(h))])
                b.call(fold_into(module, kind, how), [acc, upper, b.mul(rows, columns)])
        b.ret_void()

    return internal(module, f"{how.name}_rows.{kind}", _VOID, [kind.as_pointer(), WORD, WORD], define)


# ---------------------------------------------------------------- sums of columns, row by row
def _blocks(b: ir.IRBuilder, size: ir.Value) -> ir.Value:
    """Return the number of blocks that hold `size` rows."""
    return b.lshr(b.add(size, word(BLOCK - 1)), word(_SHIFT))


def _levels(b: ir.IRBuilder, rows: ir.Value, *initial: ir.Value) -> While:
    """Walk up the levels above the first; the first carried value is the number of rows on the level."""
    return While(b, lambda size, *_: b.icmp_signed(">", size, word(BLOCK)), rows, *initial)


def _add_to_next_level(
    module: ir.Module, kind: ir.Type, how: RowFold, b: ir.IRBuilder, own: ir.Value, columns: ir.Value, number: ir.Value
) -> ir.Value:
    """Add the fold of block `number` at `own` to its lane of the next level; return that level."""
    b.call(fold_rows(module, kind, how), [own, columns, word(LANES)])
    above = b.gep(own, [b.mul(columns, word(LANES))])
    lane = b.gep(above, [b.mul(columns, b.and_(number, word(LANES - 1)))])
    b.call(fold_into(module, kind, how), [lane, own, columns])
    return above


def start_columns(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* acc, i64 columns, i64 rows)``: start the accumulators that a sum of `rows` rows uses."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        acc, columns, rows = function.args
        few = b.icmp_signed("<", rows, word(LANES))
        lanes = b.select(few, rows, word(LANES))
        with _levels(b, rows, lanes) as walk:
            walk.next = [_blocks(b, walk.carried[0]), b.add(walk.carried[1], word(LANES))]
        b.call(fill_start(module, kind, how), [acc, b.mul(walk.carried[1], columns)])
        b.ret_void()

    return internal(module, f"{how.name}_start_columns.{kind}", _VOID, [kind.as_pointer(), WORD, WORD], define)


def carry_columns(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* acc, i64 columns, i64 block)``: close block number `block` when another row follows it.

    The block's sum becomes one row of the next level, and its accumulators start again.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        acc, columns, block = function.args
        start = b.block
        size = b.mul(columns, word(LANES))
        level, end = b.append_basic_block("level"), b.append_basic_block("done")
        b.branch(level)
        b.position_at_end(level)
        own, number = b.phi(acc.type), b.phi(WORD)
        above = _add_to_next_level(module, kind, how, b, own, columns, number)
        b.call(fill_start(module, kind, how), [own, size])
        last = b.icmp_signed("==", b.and_(number, word(BLOCK - 1)), word(BLOCK - 1))
        for phi, first, then in ((own, acc, above), (number, block, b.lshr(number, word(_SHIFT)))):
            phi.add_incoming(first, start)
            phi.add_incoming(then, level)
        b.cbranch(last, level, end)
        b.position_at_end(end)
        b.ret_void()

    return internal(module, f"{how.name}_carry_columns.{kind}", _VOID, [kind.as_pointer(), WORD, WORD], define)


def finish_columns(module: ir.Module, kind: ir.Type, how: RowFold = SUM) -> ir.Function:
    """``void (kind* acc, i64 columns, i64 rows, kind* out)``: the sums, once all rows are in."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        acc, columns, rows, out = function.args
        few = b.icmp_signed("<", rows, word(LANES))
        live = b.select(few, rows, word(LANES))
        block = b.lshr(b.sub(rows, word(1)), word(_SHIFT))
        with _levels(b, rows, acc, block) as walk:
            size, own, number = walk.carried
            above = _add_to_next_level(module, kind, how, b, own, columns, number)
            walk.next = [_blocks(b, size), above, b.lshr(number, word(_SHIFT))]
        b.call(fold_rows(module, kind, how), [walk.carried[1], columns, live])
        with b.if_then(b.icmp_signed("==", rows, word(0))):
            b.call(fill_start(module, kind, how), [acc, columns])
        _each(b, columns, out, [walk.carried[1]], lambda sums: sums)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"{how.name}_finish_columns.{kind}", _VOID, [pointer, WORD, WORD, pointer], define)
