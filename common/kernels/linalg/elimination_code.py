"""Machine code of `common.kernels.linalg.elimination`: of eight matrices at once, or of one.

Element (i, j) of a matrix with `columns` columns is number ``i columns + j``: a vector of float64, each of whose lanes
is a matrix, or one float64, and vectors are parts of rows. Needs llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llvmlite import ir

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    ForStrips,
    load_some,
    spread,
    store_some,
    wide,
    word,
    zero,
)
from common.kernels.linalg.elimination import FRACTION, LN2_HIGH, LN2_LOW, ONE, ROOT_HALF, SERIES, SMALLEST

__all__ = ["LANES", "define_all"]

LANES = 8
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


class _Matrices:
    """One matrix, or one in each lane of vectors, at an address."""

    def __init__(self, code: _Code, address: ir.Value, columns: ir.Value) -> None:
        self._code, self._b, self.columns = code, code.b, columns
        self._start = code.b.inttoptr(address, ir.PointerType())

    def place(self, i: ir.Value, j: ir.Value) -> ir.Value:
        """The address of an element."""
        number = self._b.add(self._b.mul(i, self.columns), j)
        return self._b.gep(self._start, [number], source_etype=self._code.kind)

    def load(self, i: ir.Value, j: ir.Value) -> ir.Value:
        """An element."""
        return self._b.load(self.place(i, j), align=8, typ=self._code.kind)

    def store(self, value: ir.Value, i: ir.Value, j: ir.Value) -> None:
        """Write an element."""
        self._b.store(value, self.place(i, j), align=8)

    def change(
        self, rows: tuple[ir.Value, ir.Value], first: ir.Value, stop: ir.Value,
        compute: Callable[[ir.Value, ir.Value], tuple[ir.Value, ...]],
    ) -> None:  # fmt: skip
        """Write what is computed of two rows' elements from `first` to `stop`, into the first row, or into both."""
        b, (i, k) = self._b, rows
        if self._code.lanes > 1:
            with self._code.range(first, stop) as (_, j):
                for row, value in zip(rows, compute(self.load(i, j), self.load(k, j)), strict=False):
                    self.store(value, row, j)
            return
        with ForStrips(b, b.sub(stop, first), LANES) as (start, length):
            j = b.add(first, start)
            parts = [load_some(b, self.place(row, j), length, zero(_VECTOR)) for row in rows]
            for row, value in zip(rows, compute(*parts), strict=False):
                store_some(b, value, self.place(row, j), length)


class _Code:
    """Writes a function for several matrices or for one."""

    def __init__(self, b: ir.IRBuilder, lanes: int) -> None:
        self.b, self.lanes = b, lanes
        self.kind = ir.VectorType(_DOUBLE, lanes) if lanes > 1 else _DOUBLE
        self._words = ir.VectorType(WORD, lanes) if lanes > 1 else WORD
        self.ones, self.zeros, self.none = self.number(1.0), self.number(0.0), self.word(0)

    def number(self, value: float) -> ir.Constant:
        """A float64 in all lanes."""
        return ir.Constant(self.kind, [value] * self.lanes if self.lanes > 1 else value)

    def word(self, value: int) -> ir.Constant:
        """An int64 in all lanes."""
        return ir.Constant(self._words, [value] * self.lanes if self.lanes > 1 else value)

    def everywhere(self, x: ir.Value) -> ir.Value:
        """A word in all lanes."""
        return spread(self.b, x, self.lanes) if self.lanes > 1 else x

    def along(self, x: ir.Value) -> ir.Value:
        """An element as what elements of its row, or of its matrix, are computed with."""
        return x if self.lanes > 1 else spread(self.b, x, LANES)

    def floats(self, x: ir.Value) -> ir.Value:
        """Words as float64 of these bits."""
        return self.b.bitcast(x, self.kind)

    def bits(self, x: ir.Value) -> ir.Value:
        """The bits of float64 as words."""
        return self.b.bitcast(x, self._words)

    def converted(self, x: ir.Value) -> ir.Value:
        """Words as float64 of these values."""
        return self.b.sitofp(x, self.kind)

    def magnitude(self, x: ir.Value) -> ir.Value:
        """|x|."""
        return self.floats(self.b.and_(self.bits(x), self.word(2**63 - 1)))

    def any(self, condition: ir.Value) -> ir.Value:
        """Whether a condition holds in some lane."""
        if self.lanes == 1:
            return condition
        lanes = ir.IntType(self.lanes)
        return self.b.icmp_unsigned("!=", self.b.bitcast(condition, lanes), ir.Constant(lanes, 0))

    @contextmanager
    def range(self, start: ir.Value, stop: ir.Value, *carried: ir.Value) -> Iterator[tuple[ForLoop, ir.Value]]:
        """``for i in range(start, stop)``: the loop, for what it carries along, and i."""
        with ForLoop(self.b, self.b.sub(stop, start), 1, *carried) as loop:
            yield loop, self.b.add(start, loop.index)

    def subtract(
        self, x: _Matrices, i: ir.Value, k: ir.Value, first: ir.Value, stop: ir.Value, factor: ir.Value,
        where: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Subtract row k times a factor from row i, product and difference rounded by themselves."""
        b, factor = self.b, self.along(factor)
        kept = None if where is None else self.along(where)

        def difference(u: ir.Value, v: ir.Value) -> tuple[ir.Value]:
            found = b.fsub(u, b.fmul(factor, v))
            return (found if kept is None else b.select(kept, found, u),)

        x.change((i, k), first, stop, difference)

    def tell(self, found: ir.Value, *values: ir.Value) -> None:
        """Write vectors, the first of whose lanes are used."""
        for number, value in enumerate(values):
            self.tell_one(found, word(number), value)

    def tell_one(self, found: ir.Value, number: ir.Value, value: ir.Value) -> None:
        """Write the vector with a number."""
        start = self.b.inttoptr(found, ir.PointerType())
        self.b.store(value, self.b.gep(start, [number], source_etype=_VECTOR), align=8)


def _exchanged(b: ir.IRBuilder, where: ir.Value, u: ir.Value, v: ir.Value) -> tuple[ir.Value, ir.Value]:
    return b.select(where, v, u), b.select(where, u, v)


def _eliminate(c: _Code, at: ir.Value, sides: ir.Value, found: ir.Value, n: ir.Value, count: ir.Value) -> None:
    """Matrices and right sides as `elimination._eliminated` leaves them; at `found` determinants, signs and infos, and
    pivots as vectors from number 4 on.
    """
    b, a, x = c.b, _Matrices(c, at, n), _Matrices(c, sides, count)
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
                    matrix.change((i, k), word(0), matrix.columns, partial(_exchanged, b, c.along(exchanged)))
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
    c: _Code, at: ir.Value, sides: ir.Value, upper: ir.Value, unitriangular: ir.Value, n: ir.Value, count: ir.Value
) -> None:
    """The right sides as `elimination._substituted` leaves them."""
    b, a, x = c.b, _Matrices(c, at, n), _Matrices(c, sides, count)
    backwards = b.icmp_signed("!=", upper, word(0))
    with ForLoop(b, n, 1) as row:
        k = b.select(backwards, b.sub(b.sub(n, word(1)), row.index), row.index)
        with b.if_then(b.icmp_signed("==", unitriangular, word(0))):
            pivot = c.along(a.load(k, k))
            x.change((k, k), word(0), count, lambda u, v: (b.fdiv(u, pivot),))
        start, stop = b.select(backwards, word(0), b.add(k, word(1))), b.select(backwards, k, n)
        with c.range(start, stop) as (_, i):
            c.subtract(x, i, k, word(0), count, a.load(i, k))


def _factor(c: _Code, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """Lower triangles as `elimination.triangular_factors` leaves them; infos at `found`.

    What is found below the diagonal stands to the right of it too, where a row is subtracted from the others.
    """
    b, a = c.b, _Matrices(c, at, n)
    name = f"llvm.sqrt.{f'v{c.lanes}' if c.lanes > 1 else ''}f64"
    root = ir.Function(b.module, ir.FunctionType(c.kind, [c.kind]), name)
    with ForLoop(b, n, 1, c.none) as column:
        k, (info,) = column.index, column.carried
        below, pivot = b.add(k, word(1)), a.load(k, k)
        positive = b.fcmp_ordered(">", pivot, c.zeros)
        first = b.and_(b.not_(positive), b.icmp_signed("==", info, c.none))
        info = b.select(first, c.everywhere(below), info)
        live = b.icmp_signed("==", info, c.none)
        with b.if_then(c.any(live)):
            size = b.select(live, b.call(root, [pivot]), pivot)
            a.store(size, k, k)
            with c.range(below, n) as (_, i):
                value = b.select(live, b.fdiv(a.load(i, k), size), a.load(i, k))
                a.store(value, i, k)
                a.store(value, k, i)
            with c.range(below, n) as (_, i):
                c.subtract(a, i, k, below, b.add(i, word(1)), a.load(i, k), live)
        column.next = [info]
    c.tell(found, *column.carried)


def _take_logarithms(c: _Code, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """What `elimination.logarithms_of_determinants` makes of pivots, as vector number 3 at `found`."""
    b, a = c.b, _Matrices(c, at, n)
    infinity = c.number(float("inf"))
    with ForLoop(b, n, 1, c.ones, c.zeros) as row:
        product, exponent = row.carried
        size = c.magnitude(a.load(row.index, row.index))
        tiny = b.fcmp_ordered("<", size, c.number(SMALLEST))
        ordinary = b.and_(b.fcmp_ordered(">", size, c.zeros), b.fcmp_ordered("<", size, infinity))
        bits = c.bits(b.select(tiny, b.fmul(size, c.number(2.0**54)), size))
        significand = c.floats(b.or_(b.and_(bits, c.word(FRACTION)), c.word(ONE)))
        power = b.sub(b.sub(b.ashr(bits, c.word(52)), c.word(1023)), b.select(tiny, c.word(54), c.none))
        row.next = [
            b.fmul(product, b.select(ordinary, significand, size)),
            b.fadd(exponent, c.converted(b.select(ordinary, power, c.none))),
        ]
    product, exponent = row.carried
    bits = c.bits(product)
    field = b.and_(b.sub(bits, c.word(ROOT_HALF)), c.word(~FRACTION))
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


_FUNCTIONS: dict[str, tuple[Callable[..., None], int]] = {
    "eliminate": (_eliminate, 5), "substitute": (_substitute, 6), "factor": (_factor, 3),
    "take_logarithms": (_take_logarithms, 3),
}  # fmt: skip


def _address(name: str, lanes: int) -> int:
    write, arguments = _FUNCTIONS[name]
    module, symbol = ir.Module(), f"twingrad_{name}_of_{lanes}"
    function = ir.Function(module, ir.FunctionType(WORD, [WORD] * arguments), symbol)
    function.attributes.add("nounwind")
    wide(function)
    b = ir.IRBuilder(function.append_basic_block())
    write(_Code(b, lanes), *function.args)
    b.ret(word(0))
    return load_ir(str(module), symbol)


def define_all() -> list[str]:
    """Let native source call ``eliminate_of_8``, ``eliminate_of_1`` and the others; return their names."""
    made = {f"{name}_of_{lanes}": partial(_address, name, lanes) for name in _FUNCTIONS for lanes in (1, LANES)}
    for name, address in made.items():
        llvm_engine.define(f"twingrad_{name}", address)
    return list(made)
