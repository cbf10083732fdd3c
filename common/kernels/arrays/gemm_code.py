"""Machine code of matrix products, in the order that `common.kernels.arrays.gemm` defines. Needs llvmlite.

A product is computed panel by panel. A panel is `DEEP` rows of the right operand, a few vectors wide; it is copied,
transposed if need be, to where its rows lie side by side. Then it is multiplied with a few rows of the left operand at
a time: their sums stay in registers, a chain of fused multiply-adds per element. Rows beyond the last are the last one
again, columns beyond the last are zeros, or the last again, that nothing stores; so every element is computed by the
same instructions, wherever it lies in a matrix, a batch or a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from common.compiler import llvm_engine
from common.core.numerics import DEEP
from common.kernels.arrays.code_blocks import (
    WORD,
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
    prefetch,
    spread,
    store_lanes,
    store_some,
    word,
    zero,
)
from common.kernels.arrays.transposed_vectors import transposed

_LEAST = 16, 192, 64
"""Rows, columns and inner size from which on the left operand is copied block by block too."""

_KEPT = 2**19
"""Bytes of the left operand, or of its copy, that meet one panel after the other: what a second-level cache holds."""

_PANELS, _TOGETHER = 4, 32
"""Panels of the right operand, and rows of the left one, that are copied at a time: a few lines of a cache per row."""

_AHEAD = 8
"""How many rows ahead the processor is asked for what is copied; it foresees no steps from page to page."""

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
    """The tile that fits the processor's registers: 32 of 64 bytes, 16 of 32, or 16 of 16. No bit depends on it."""
    _, features = llvm_engine.cpu()
    if "+avx512f" in features:
        return Tile(64 // align(kind), 8, 3)
    if "+avx2" in features:
        return Tile(32 // align(kind), 4, 3)
    return Tile(16 // align(kind), 4, 2)


def by_blocks(b: ir.IRBuilder, module: ir.Module, kind: ir.Type, operands: list[ir.Value]) -> None:
    """Write c = op(a) @ op(b), row-major, of ``(a, b, c, m, n, k, lda, ldb, ldc, trans_a, trans_b)``."""
    tall, wide, deep = (b.icmp_signed(">=", x, word(least)) for x, least in zip(operands[3:6], _LEAST, strict=True))
    with b.if_else(b.and_(tall, b.and_(wide, deep))) as (often, rarely):
        with often:
            b.call(_blocks(module, kind, True), operands)
        with rarely:
            b.call(_blocks(module, kind, False), operands)


def _of_products(kind: ir.Type) -> list[ir.Type]:
    """Types of the arguments of `multiply`."""
    return [kind.as_pointer()] * 3 + [WORD] * 8


def _blocks(module: ir.Module, kind: ir.Type, packs: bool) -> ir.Function:
    """The same, block by block; if `packs`, of the left operand too there is a copy, block by block.

    A copy pays where many panels meet it: few rows of the left operand at a time lie side by side then, wherever they
    were. Rows some powers of two apart would share a few sets of every cache, and each be on a page of its own.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        left, right, out, m, n, k, lda, ldb, ldc, trans_a, trans_b = function.args
        shape = tile(kind)
        swath = shape.columns * (_PANELS if packs else 1)
        panels = b.alloca(kind, (DEEP + shape.width) * swath)
        plain_a, plain_b = (b.icmp_signed("==", trans, word(0)) for trans in (trans_a, trans_b))
        down, along = b.select(plain_a, lda, word(1)), b.select(plain_a, word(1), lda)
        deeper, wider = b.select(plain_b, ldb, word(1)), b.select(plain_b, word(1), ldb)
        tall = _KEPT // (DEEP * align(kind))
        copy = b.alloca(kind, (DEEP + shape.width) * tall) if packs else left
        for scratch in (panels, copy) if packs else (panels,):
            scratch.align = 64

        def pack(across: int, plain: ir.Value, *rest: ir.Value) -> None:
            """Copy panels of so many columns, of a matrix that is stored by rows or by columns."""
            with b.if_else(plain) as (copied, transposed):
                with copied:
                    b.call(_copy(module, kind, across), rest)
                with transposed:
                    b.call(transpose(module, kind, across), rest)

        heights, depths, strips = ForStrips(b, m, tall), ForStrips(b, k, DEEP), ForStrips(b, n, swath)
        with heights as (i, height), depths as (p, depth):
            rows = b.gep(left, [b.add(b.mul(i, down), b.mul(p, along))])
            walk = [rows, down, along, down]
            if packs:
                with ForStrips(b, height, _TOGETHER) as (r, some):
                    into = b.gep(copy, [b.mul(r, depth)])
                    pack(shape.rows, b.not_(plain_a), b.gep(rows, [b.mul(r, down)]), lda, depth, some, into)
                walk = [copy, word(1), word(shape.rows), depth]
            with strips as (j, columns):
                source = b.gep(right, [b.add(b.mul(p, deeper), b.mul(j, wider))])
                pack(shape.columns, plain_b, source, ldb, depth, columns, panels)
                with ForStrips(b, columns, shape.columns) as (c, there):
                    panel = b.gep(panels, [b.mul(c, depth)])
                    into = b.gep(out, [b.add(b.mul(i, ldc), b.add(j, c))])
                    b.call(_all_rows(module, kind), [*walk, height, panel, depth, there, into, ldc, p])
        b.ret_void()

    return internal(module, f"{'packed' if packs else 'plain'}_blocks.{kind}", _VOID, _of_products(kind), define)


# -------------------------------------------------------------------- panels
def panel_width(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 ()``: columns of a panel of the right operand."""
    return _number(module, f"panel_width.{kind}", tile(kind).columns)


def panel_height(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 ()``: rows of a panel of the left operand."""
    return _number(module, f"panel_height.{kind}", tile(kind).rows)


def _number(module: ir.Module, name: str, value: int) -> ir.Function:
    return internal(module, name, WORD, [], lambda function, b: b.ret(word(value)))


def pack_left(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (source, ld, depth, rows, panels)``: rows cut into panels of the left operand."""
    return transpose(module, kind, tile(kind).rows)


def pack_left_turned(module: ir.Module, kind: ir.Type) -> ir.Function:
    """The same of a left operand that is stored by columns."""
    return _copy(module, kind, tile(kind).rows)


def pack_right_turned(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (source, ld, depth, columns, panels)``: a right operand, stored by columns, cut into its panels."""
    return transpose(module, kind, tile(kind).columns)


def multiply_panel(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, down, along, step, height, panel, depth, columns, out, ldc, p)``: see `_all_rows`."""
    return _all_rows(module, kind)


def multiply_windows(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, down, along, step, height, x, places, depth, columns, out, ldc, p, across, from, gap)``: windows.

    The same with windows where they lie in copies of an image: row d of the panel is at ``x[places[d]]``, a whole
    number. Its columns lie side by side, but for `gap` elements between `across` of them, of which the first is number
    `from`; across and from are multiples of a vector's width.
    """
    return _all_rows(module, kind, windows=True)


def _copy(module: ir.Module, kind: ir.Type, across: int) -> ir.Function:
    """``void (source, ld, depth, columns, panels)``: rows cut into panels of `across` columns, filled up with zeros.

    A panel has `depth` rows, which lie side by side.
    """
    side = min(tile(kind).width, across)
    missing = zero(ir.VectorType(kind, side))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        source, ld, depth, columns, panels = function.args
        with ForStrips(b, depth, 1) as (p, _):
            row, to = b.gep(source, [b.mul(p, ld)]), b.gep(panels, [b.mul(p, word(across))])
            with ForStrips(b, columns, across) as (j, there):
                part, into = b.gep(row, [j]), b.gep(to, [b.mul(j, depth)])
                prefetch(b, b.gep(part, [b.mul(ld, word(_AHEAD))]))
                for first in range(0, across, side):
                    taken = load_some(b, b.gep(part, [word(first)]), b.sub(there, word(first)), missing)
                    store_lanes(b, taken, b.gep(into, [word(first)]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"copy_{across}.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer], define)


def transpose(module: ir.Module, kind: ir.Type, across: int) -> ir.Function:
    """The same of columns: what fills up is the last one; behind the last panel there is room for more rows.

    By squares of half a register of AVX-512 at most: they take as long, and a third of the time to compile.
    """
    width = min(tile(kind).width, across)
    side = min(width, 32 // align(kind))
    missing = zero(ir.VectorType(kind, side))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        source, ld, depth, columns, panels = function.args
        with ForStrips(b, columns, across) as (first, there):
            panel, start = b.gep(panels, [b.mul(first, depth)]), b.gep(source, [b.mul(ld, first)])
            stop = b.and_(b.add(there, word(width - 1)), word(-width))
            with ForStrips(b, stop, side) as (j, _):
                last = b.sub(b.sub(there, word(1)), j)
                line = b.gep(start, [b.mul(ld, j)])
                lines = [b.gep(line, [b.mul(ld, least(b, word(lane), last))]) for lane in range(side)]
                with ForStrips(b, depth, side) as (p, count):
                    some = first_lanes(b, side, count)
                    square = transposed(b, [load_some(b, b.gep(line, [p]), some, missing) for line in lines])
                    to = b.gep(panel, [b.add(j, b.mul(p, word(across)))])
                    for lane, row in enumerate(square):
                        store_lanes(b, row, b.gep(to, [word(lane * across)]))
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"transpose_{across}.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer], define)


# -------------------------------------------------------------------- sums
def _all_rows(module: ir.Module, kind: ir.Type, windows: bool = False) -> ir.Function:
    """``void (a, down, along, step, height, panel, depth, columns, out, ldc, p)``: all rows with one panel.

    They are taken a few at a time, the first of which begins at ``a[r * step]``. Then the element of row r and depth d
    is at ``r * down + d * along``. If p is not 0, what `out` holds comes first.
    """
    shape = tile(kind)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, along, step, height, panel, *middle = function.args
        places, (depth, columns, out, ldc, p, *gaps) = middle[:windows], middle[windows:]
        if windows:
            whole = b.alloca(WORD, DEEP)
            with ForStrips(b, depth, 8) as (d, some):
                numbers = load_some(b, b.gep(places[0], [d]), some, zero(ir.VectorType(kind, 8)))
                store_lanes(b, b.fptosi(numbers, ir.VectorType(WORD, 8)), b.gep(whole, [d]))
            places = [whole]
        few = shape.rows // 4  # of narrow panels they would take as long: a chain waits for its last addition

        with ForStrips(b, height, shape.rows) as (r, there):
            source, into = b.gep(a, [b.mul(r, step)]), b.gep(out, [b.mul(r, ldc)])

            def some(rows: int, vectors: int) -> None:
                operands = source, down, along, there, panel, *places
                multiplied = _few_rows(module, kind, rows, vectors, windows)
                b.call(multiplied, [*operands, depth, columns, into, ldc, p, *gaps])

            def wide(vectors: int) -> None:
                kinds = [(few, shape.rows), (0, few)] if vectors == shape.vectors else [(0, shape.rows)]
                cases(b, there, kinds, lambda rows: some(rows, vectors))

            cases(b, columns, [(shape.width * (v - 1), v) for v in range(shape.vectors, 0, -1)], wide)
        b.ret_void()

    types = [kind.as_pointer(), WORD, *_of_rows(kind, windows)[1:]]
    if windows:
        types[6] = kind.as_pointer()
    return internal(module, f"all_{'windows' if windows else 'rows'}.{kind}", _VOID, types, define)


def _of_rows(kind: ir.Type, windows: bool) -> list[ir.Type]:
    """Types of the arguments of `_few_rows`."""
    pointer = kind.as_pointer()
    places, gaps = [WORD.as_pointer()] * windows, [WORD] * (3 * windows)
    return [pointer, WORD, WORD, WORD, pointer, *places, WORD, WORD, pointer, WORD, WORD, *gaps]


def _few_rows(module: ir.Module, kind: ir.Type, rows: int, vectors: int, windows: bool) -> ir.Function:
    """The same for `rows` rows at most, of which there are `height`, and a panel of so many vectors."""
    shape = tile(kind)
    nothing = zero(ir.VectorType(kind, shape.width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        a, down, along, height, panel, *middle = function.args
        places, (depth, columns, out, ldc, p, *gaps) = middle[:windows], middle[windows:]
        held = b.alloca(kind, rows * vectors * shape.width)
        held.align = 64
        last = b.sub(height, word(1))
        numbers = [least(b, word(r), last) for r in range(rows)]
        lines = [b.gep(a, [b.mul(r, down)]) for r in numbers]
        parts = [b.gep(panel, [word(v * shape.width)]) for v in range(vectors)]
        if gaps:
            across, start, gap = gaps
            for v in range(1, vectors):
                for many in (across, b.add(across, across)):
                    behind = b.icmp_signed(">=", b.add(start, word(v * shape.width)), many)
                    parts[v] = b.gep(parts[v], [b.select(behind, gap, word(0))])
        way = word(1 if windows else shape.columns)
        end = b.mul(depth, way)

        begin = word(0), word(0), *[nothing] * (rows * vectors)
        with While(b, lambda q, *_: b.icmp_signed("<", q, end), *begin) as walk:
            q, d, *sums = walk.carried
            place = q
            if windows:
                place = b.load(b.gep(places[0], [q]), align=8, typ=WORD)
            right = [load_lanes(b, b.gep(part, [place]), shape.width) for part in parts]
            added = []
            for r, line in enumerate(lines):
                element = spread(b, b.load(b.gep(line, [d])), shape.width)
                added += [fused(b, element, right[v], sums[r * vectors + v]) for v in range(vectors)]
            walk.next = [b.add(q, way), b.add(d, along), *added]
        sums = [walk.carried[2 + r * vectors :][:vectors] for r in range(rows)]
        store_sums(b, module, kind, sums, numbers, held, (height, columns, out, ldc, p))
        b.ret_void()

    name = f"{'windows' if windows else 'rows'}_{rows}x{vectors}.{kind}"
    return internal(module, name, _VOID, _of_rows(kind, windows), define)


def store_sums(
    b: ir.IRBuilder, module: ir.Module, kind: ir.Type, sums: Sequence[Sequence[ir.Value]], numbers: Sequence[ir.Value],
    held: ir.Value, to: tuple[ir.Value, ...],
) -> None:  # fmt: skip
    """Store the sums of a tile, or add them to what is there.

    Parameters
    ----------
    sums : vectors of each row.
    numbers : of these rows; the last one again for those that are not there.
    held : memory for all sums.
    to : height, columns, out, ldc and p, as of `_few_rows`.
    """
    height, columns, out, ldc, p = to
    width, rows, vectors = tile(kind).width, len(sums), len(sums[0])

    def store(into: ir.Value, stride: ir.Value, adds: bool = False) -> None:
        for number, row in zip(numbers, sums, strict=True):
            line = b.gep(into, [b.mul(number, stride)])
            for v, total in enumerate(row):
                place = b.gep(line, [word(v * width)])
                store_lanes(b, add(b, load_lanes(b, place, width), total) if adds else total, place)

    whole, first = b.icmp_signed("==", columns, word(width * vectors)), b.icmp_signed("==", p, word(0))
    with b.if_else(b.and_(whole, first)) as (alone, others):
        with alone:
            store(out, ldc)
        with others, b.if_else(b.and_(whole, b.icmp_signed("==", height, word(rows)))) as (later, cut):
            with later:
                store(out, ldc, adds=True)
            with cut:  # a row that is taken twice would be added twice
                stride = word(width * vectors)
                store(held, stride)
                b.call(join(module, kind), [held, stride, height, columns, out, ldc, p])


def join(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (sums, stride, height, columns, out, ldc, p)``: sums stored, or if p is not 0, added to what `out` holds.

    Where the last vector or the rows are not whole ones. Unrolled in `store_sums`, it would take longer to compile than
    all products.
    """
    width = tile(kind).width
    nothing = zero(ir.VectorType(kind, width))

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        apart(function)
        sums, stride, height, columns, out, ldc, p = function.args
        adds = b.icmp_signed("!=", p, word(0))
        with ForStrips(b, height, 1) as (r, _), ForStrips(b, columns, width) as (c, there):
            total = load_lanes(b, b.gep(sums, [b.add(b.mul(r, stride), c)]), width)
            into, some = b.gep(out, [b.add(b.mul(r, ldc), c)]), first_lanes(b, width, there)
            added = add(b, load_some(b, into, some, nothing), total)
            store_some(b, b.select(adds, added, total), into, there)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"join.{kind}", _VOID, [pointer, WORD, WORD, WORD, pointer, WORD, WORD], define)
