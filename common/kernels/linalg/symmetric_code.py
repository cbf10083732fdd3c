"""Machine code of `common.kernels.linalg.symmetric`."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import WORD, ForLoop, While, word, zero
from common.kernels.linalg.elimination import FRACTION, SMALLEST
from common.kernels.linalg.lane_code import Code, LaneFunctions, Matrices
from common.kernels.linalg.symmetric import ROUNDING, STEPS

__all__ = ["FUNCTIONS"]

_D, _E, _W, _FACTORS, _FAILED = map(word, range(5))
"""Rows of the working memory: diagonals and those beside them, a vector, factors of reflections, and in its first
element whether a matrix has failed.
"""


Row = tuple[Matrices, ir.Value]


def _sum(c: Code, start: ir.Value, stop: ir.Value, x: Row, y: Row) -> ir.Value:
    """The sum of products of two rows' elements, one after the other."""
    with c.range(start, stop, c.zeros) as (loop, i):
        product = c.b.fmul(x[0].load(x[1], i), y[0].load(y[1], i))
        loop.next = [c.b.fadd(loop.carried[0], product)]
    return loop.carried[0]


def _mirror(c: Code, a: Matrices, upper: ir.Value, n: ir.Value) -> ir.Value:
    """Copy one triangle to the other, and return powers of two by which all was divided."""
    b = c.b
    from_above = b.icmp_signed("!=", upper, word(0))
    with ForLoop(b, n, 1, c.zeros) as row:
        i = row.index
        with c.range(word(0), b.add(i, word(1)), row.carried[0]) as (column, j):
            value = b.select(from_above, a.load(j, i), a.load(i, j))
            a.store(value, i, j)
            a.store(value, j, i)
            size = c.magnitude(value)
            column.next = [b.select(b.fcmp_ordered(">", size, column.carried[0]), size, column.carried[0])]
        row.next = column.carried
    most = row.carried[0]
    power = c.floats(b.and_(c.bits(most), c.word(~FRACTION)))
    power = b.select(b.fcmp_ordered("<", most, c.number(SMALLEST)), c.number(SMALLEST), power)
    with ForLoop(b, n, 1) as row:
        divisor = c.along(power)
        c.change([(a, row.index)], word(0), n, lambda x: (b.fdiv(x, divisor),))
    return power


def _make_tridiagonal(c: Code, a: Matrices, work: Matrices, n: ir.Value) -> None:
    """Diagonals and those beside them; row k of a matrix keeps reflection k, right of the diagonal."""
    b = c.b
    with ForLoop(b, b.sub(n, word(1)), 1) as column:
        k = column.index
        start = b.add(k, word(1))
        first, rest = a.load(k, start), _sum(c, b.add(k, word(2)), n, (a, k), (a, k))
        root = c.root(b.fadd(b.fmul(first, first), rest))
        nothing = b.fcmp_ordered("==", rest, c.zeros)
        turned = b.select(b.fcmp_ordered(">", first, c.zeros), b.fneg(root), root)
        beside = b.select(nothing, first, turned)
        work.store(a.load(k, k), _D, k)
        work.store(beside, _E, k)
        head = b.fsub(first, beside)
        a.store(head, k, start)
        factor = b.fdiv(c.number(2.0), b.fadd(rest, b.fmul(head, head)))
        factor = b.select(nothing, c.zeros, factor)
        work.store(factor, _FACTORS, k)
        c.change([(work, _W)], start, n, lambda w: (zero(w.type),))
        with c.range(start, n) as (_, j):
            number = c.along(a.load(k, j))
            c.change([(work, _W), (a, j)], start, n, lambda w, x, v=number: (b.fadd(w, b.fmul(v, x)),))
        scale = c.along(factor)
        c.change([(work, _W)], start, n, lambda w: (b.fmul(w, scale),))
        inner = _sum(c, start, n, (work, _W), (a, k))
        along = c.along(b.fmul(b.fmul(c.number(0.5), factor), inner))
        c.change([(work, _W), (a, k)], start, n, lambda w, v: (b.fsub(w, b.fmul(along, v)),))
        with c.range(start, n) as (_, i):
            v, w = c.along(a.load(k, i)), c.along(work.load(_W, i))
            c.change(
                [(a, i), (work, _W), (a, k)], start, n,
                lambda x, y, z, v=v, w=w: (b.fsub(x, b.fadd(b.fmul(v, y), b.fmul(w, z))),),
            )  # fmt: skip
    last = b.sub(n, word(1))
    work.store(a.load(last, last), _D, last)
    work.store(c.zeros, _E, last)


def _reflect(c: Code, a: Matrices, z: Matrices, work: Matrices, n: ir.Value) -> None:
    """The reflections of the rows of identity matrices, the last one first."""
    b = c.b
    with ForLoop(b, n, 1) as row:
        c.change([(z, row.index)], word(0), n, lambda x: (zero(x.type),))
        z.store(c.ones, row.index, row.index)
    with ForLoop(b, b.sub(n, word(1)), 1) as column:
        k = b.sub(b.sub(n, word(2)), column.index)
        start, factor = b.add(k, word(1)), work.load(_FACTORS, k)
        with c.range(start, n) as (_, r):
            along = c.along(b.fmul(factor, _sum(c, start, n, (z, r), (a, k))))
            c.change([(z, r), (a, k)], start, n, lambda x, v, t=along: (b.fsub(x, b.fmul(t, v)),))


def _find_block(c: Code, work: Matrices, x: ir.Value, n: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The last place of the block that begins at x, and the diagonal's element there."""
    b = c.b
    last = b.sub(n, word(1))
    with ForLoop(b, b.sub(last, x), 1, c.everywhere(last), work.load(_D, last)) as loop:
        i = b.sub(b.sub(n, word(2)), loop.index)
        sizes = b.fadd(c.magnitude(work.load(_D, i)), c.magnitude(work.load(_D, b.add(i, word(1)))))
        small = b.fcmp_ordered("<=", c.magnitude(work.load(_E, i)), b.fmul(c.number(ROUNDING), sizes))
        loop.next = [
            b.select(small, c.everywhere(i), loop.carried[0]), b.select(small, work.load(_D, i), loop.carried[1])
        ]  # fmt: skip
    return loop.carried[0], loop.carried[1]


def _step(
    c: Code, work: Matrices, z: Matrices, block: tuple[ir.Value, ir.Value, ir.Value], vectors: ir.Value, x: ir.Value,
    n: ir.Value,
) -> None:  # fmt: skip
    """One step of the QR algorithm for the block from x to `last`, where it is active."""
    b, (active, last, end) = c.b, block
    here, beside = work.load(_D, x), work.load(_E, x)
    g = b.fdiv(b.fsub(work.load(_D, b.add(x, word(1))), here), b.fmul(c.number(2.0), beside))
    r = c.root(b.fadd(b.fmul(g, g), c.ones))
    g = b.fadd(g, b.select(b.fcmp_ordered("<", g, c.zeros), b.fneg(r), r))
    g = b.fadd(b.fsub(end, here), b.fdiv(beside, g))
    with ForLoop(b, b.sub(b.sub(n, word(1)), x), 1, g, c.ones, c.ones, c.zeros) as loop:
        g, sine, cosine, p = loop.carried
        i = b.sub(b.sub(n, word(2)), loop.index)
        next_, place = b.add(i, word(1)), c.everywhere(i)
        live = b.and_(active, b.icmp_signed("<", place, last))
        f, h = b.fmul(sine, work.load(_E, i)), b.fmul(cosine, work.load(_E, i))
        r = c.root(b.fadd(b.fmul(f, f), b.fmul(g, g)))
        ends = b.icmp_signed("==", c.everywhere(next_), last)
        work.store(b.select(live, b.select(ends, c.zeros, r), work.load(_E, next_)), _E, next_)
        still = b.fcmp_ordered("==", r, c.zeros)
        s, t = b.select(still, c.zeros, b.fdiv(f, r)), b.select(still, c.ones, b.fdiv(g, r))
        lower = work.load(_D, next_)
        moved = b.fsub(lower, p)
        turn = b.fadd(
            b.fmul(b.fsub(work.load(_D, i), moved), s), b.fmul(b.fmul(c.number(2.0), t), h)
        )
        q = b.fmul(s, turn)
        work.store(b.select(live, b.fadd(moved, q), lower), _D, next_)
        loop.next = [
            b.select(live, b.fsub(b.fmul(t, turn), h), g), b.select(live, s, sine), b.select(live, t, cosine),
            b.select(live, q, p),
        ]  # fmt: skip
        with b.if_then(b.and_(vectors, c.any(live))):
            kept, along_s, along_t = c.along(live), c.along(s), c.along(t)

            def turned(u: ir.Value, v: ir.Value) -> tuple[ir.Value, ir.Value]:
                return (
                    b.select(kept, b.fadd(b.fmul(along_s, v), b.fmul(along_t, u)), u),
                    b.select(kept, b.fsub(b.fmul(along_t, v), b.fmul(along_s, u)), v),
                )

            c.change([(z, next_), (z, i)], word(0), n, turned)
    g, _, _, p = loop.carried
    work.store(b.select(active, b.fsub(work.load(_D, x), p), work.load(_D, x)), _D, x)
    work.store(b.select(active, g, work.load(_E, x)), _E, x)


def _make_diagonal(c: Code, work: Matrices, z: Matrices, vectors: ir.Value, n: ir.Value) -> None:
    """Step by step, until each place from the first on is a block of its own."""
    b = c.b
    with ForLoop(b, b.sub(n, word(1)), 1, c.none) as place:
        x = place.index
        start = word(1), word(0), place.carried[0]
        with While(b, lambda goes_on, *_: b.icmp_signed("!=", goes_on, word(0)), *start) as loop:
            _, step, failed = loop.carried
            last, end = _find_block(c, work, x, n)
            active = b.icmp_signed("!=", last, c.everywhere(x))
            some, spent = c.any(active), b.icmp_signed("==", step, word(STEPS))
            goes_on = b.and_(some, b.not_(spent))
            with b.if_then(goes_on):
                _step(c, work, z, (active, last, end), vectors, x, n)
            given_up = b.select(spent, b.select(active, c.word(1), failed), failed)
            loop.next = [b.zext(goes_on, WORD), b.add(step, word(1)), given_up]
        place.next = [loop.carried[2]]
    work.store(c.floats(place.carried[0]), _FAILED, word(0))


def _sort(c: Code, work: Matrices, z: Matrices, vectors: ir.Value, n: ir.Value) -> None:
    """Exchange neighbours until the eigenvalues ascend."""
    b = c.b
    with ForLoop(b, n, 1) as done, ForLoop(b, b.sub(b.sub(n, word(1)), done.index), 1) as loop:
        j = loop.index
        next_ = b.add(j, word(1))
        first, second = work.load(_D, j), work.load(_D, next_)
        above = b.fcmp_ordered(">", first, second)
        with b.if_then(c.any(above)):
            work.store(b.select(above, second, first), _D, j)
            work.store(b.select(above, first, second), _D, next_)
            with b.if_then(vectors):
                where = c.along(above)
                c.change(
                    [(z, j), (z, next_)], word(0), n, lambda u, v: (b.select(where, v, u), b.select(where, u, v))
                )


def _diagonalize(
    c: Code, at: ir.Value, rows: ir.Value, found: ir.Value, upper: ir.Value, vectors: ir.Value, n: ir.Value
) -> None:
    """Eigenvalues in the first row at `found`, eigenvectors in `rows` if they are wanted, and which have failed."""
    b, wanted = c.b, c.b.icmp_signed("!=", vectors, word(0))
    a, z, work = Matrices(c, at, n), Matrices(c, rows, n), Matrices(c, found, n)
    power = _mirror(c, a, upper, n)
    _make_tridiagonal(c, a, work, n)
    with b.if_then(wanted):
        _reflect(c, a, z, work, n)
    _make_diagonal(c, work, z, wanted, n)
    _sort(c, work, z, wanted, n)
    scale = c.along(power)
    c.change([(work, _D)], word(0), n, lambda x: (b.fmul(x, scale),))


FUNCTIONS = LaneFunctions({"diagonalize": (_diagonalize, 6)})
"""``diagonalize_of_8`` and ``diagonalize_of_1``."""
