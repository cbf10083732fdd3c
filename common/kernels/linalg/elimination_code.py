"""Machine code of `common.kernels.linalg.elimination`: eight matrices at once, each in a lane of vectors of float64.

Element (i, j) of a matrix with `columns` columns is the vector number ``i columns + j``. Needs llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llvmlite import ir

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.kernels.arrays.code_blocks import WORD, ForLoop, spread, wide, word
from common.kernels.linalg.elimination import FRACTION, LN2_HIGH, LN2_LOW, ONE, ROOT_HALF, SERIES, SMALLEST

__all__ = ["LANES", "define_all"]

LANES = 8
_VECTOR, _WORDS = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(WORD, LANES)
_ZEROS, _ONES = ir.Constant(_VECTOR, None), ir.Constant(_VECTOR, [1.0] * LANES)
_NONE = ir.Constant(_WORDS, None)


class _Matrix:
    """Vectors of elements at an address."""

    def __init__(self, b: ir.IRBuilder, address: ir.Value, columns: ir.Value) -> None:
        self._b, self._columns = b, columns
        self._start = b.inttoptr(address, ir.PointerType())

    def _place(self, i: ir.Value, j: ir.Value) -> ir.Value:
        number = self._b.add(self._b.mul(i, self._columns), j)
        return self._b.gep(self._start, [number], source_etype=_VECTOR)

    def load(self, i: ir.Value, j: ir.Value) -> ir.Value:
        return self._b.load(self._place(i, j), align=8, typ=_VECTOR)

    def store(self, value: ir.Value, i: ir.Value, j: ir.Value) -> None:
        self._b.store(value, self._place(i, j), align=8)


@contextmanager
def _range(b: ir.IRBuilder, start: ir.Value, stop: ir.Value, *carried: ir.Value) -> Iterator[tuple[ForLoop, ir.Value]]:
    """``for i in range(start, stop)``: the loop, for what it carries along, and i."""
    with ForLoop(b, b.sub(stop, start), 1, *carried) as loop:
        yield loop, b.add(start, loop.index)


def _any(b: ir.IRBuilder, condition: ir.Value) -> ir.Value:
    return b.icmp_unsigned("!=", b.bitcast(condition, ir.IntType(LANES)), ir.Constant(ir.IntType(LANES), 0))


def _magnitude(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return b.bitcast(b.and_(b.bitcast(x, _WORDS), ir.Constant(_WORDS, [2**63 - 1] * LANES)), _VECTOR)


def _less(b: ir.IRBuilder, to: _Matrix, i: ir.Value, j: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """An element without a product."""
    return b.fsub(to.load(i, j), b.fmul(x, y))


def _eliminate(b: ir.IRBuilder, at: ir.Value, sides: ir.Value, found: ir.Value, n: ir.Value, count: ir.Value) -> None:
    """Matrix and right sides as `elimination._eliminated` leaves them; at `found` determinants, signs and infos, and
    pivots as vectors from number 4 on.
    """
    parts = (_Matrix(b, at, n), n), (_Matrix(b, sides, count), count)
    a, out = parts[0][0], _Matrix(b, found, word(1))
    with ForLoop(b, n, 1, _ONES, _ONES, _NONE) as column:
        k, (det, sign, info) = column.index, column.carried
        here, below = spread(b, k, LANES), b.add(k, word(1))
        with _range(b, below, n, _magnitude(b, a.load(k, k)), here) as (search, i):
            best, place = search.carried
            size = _magnitude(b, a.load(i, k))
            more = b.fcmp_ordered(">", size, best)
            search.next = [b.select(more, size, best), b.select(more, spread(b, i, LANES), place)]
        place = search.carried[1]
        moved = b.icmp_signed("!=", place, here)
        with b.if_then(_any(b, moved)), _range(b, below, n) as (_, i):
            exchanged = b.icmp_signed("==", place, spread(b, i, LANES))
            with b.if_then(_any(b, exchanged)):
                for matrix, columns in parts:
                    with ForLoop(b, columns, 1) as row:
                        upper, lower = matrix.load(k, row.index), matrix.load(i, row.index)
                        matrix.store(b.select(exchanged, lower, upper), k, row.index)
                        matrix.store(b.select(exchanged, upper, lower), i, row.index)
        out.store(b.bitcast(b.add(place, spread(b, word(1), LANES)), _VECTOR), b.add(k, word(4)), word(0))
        pivot = a.load(k, k)
        nothing = b.fcmp_ordered("==", pivot, _ZEROS)
        divisor = b.select(nothing, _ONES, pivot)
        with _range(b, below, n) as (_, i):
            factor = b.fdiv(a.load(i, k), divisor)
            a.store(factor, i, k)
            for (matrix, columns), first in zip(parts, (below, word(0)), strict=True):
                with _range(b, first, columns) as (_, j):
                    matrix.store(_less(b, matrix, i, j, factor, matrix.load(k, j)), i, j)
        negative = b.fcmp_ordered("<", pivot, _ZEROS)
        sign, det = b.select(moved, b.fneg(sign), sign), b.select(moved, b.fneg(det), det)
        first = b.and_(nothing, b.icmp_signed("==", info, _NONE))
        column.next = [
            b.fmul(det, pivot), b.select(nothing, _ZEROS, b.select(negative, b.fneg(sign), sign)),
            b.select(first, spread(b, below, LANES), info),
        ]  # fmt: skip
    det, sign, info = column.carried
    for number, value in enumerate((det, sign, b.bitcast(info, _VECTOR))):
        out.store(value, word(number), word(0))


def _substitute(
    b: ir.IRBuilder, at: ir.Value, sides: ir.Value, upper: ir.Value, unitriangular: ir.Value, n: ir.Value,
    count: ir.Value,
) -> None:  # fmt: skip
    """The right sides as `elimination._substituted` leaves them."""
    a, x = _Matrix(b, at, n), _Matrix(b, sides, count)
    backwards = b.icmp_signed("!=", upper, word(0))
    with ForLoop(b, n, 1) as row:
        k = b.select(backwards, b.sub(b.sub(n, word(1)), row.index), row.index)
        with b.if_then(b.icmp_signed("==", unitriangular, word(0))):
            pivot = a.load(k, k)
            with ForLoop(b, count, 1) as side:
                x.store(b.fdiv(x.load(k, side.index), pivot), k, side.index)
        start, stop = b.select(backwards, word(0), b.add(k, word(1))), b.select(backwards, k, n)
        with _range(b, start, stop) as (_, i):
            factor = a.load(i, k)
            with ForLoop(b, count, 1) as side:
                x.store(_less(b, x, i, side.index, factor, x.load(k, side.index)), i, side.index)


def _factor(b: ir.IRBuilder, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """Matrices as `elimination.cholesky` leaves them, without its zeros; infos at `found`."""
    a = _Matrix(b, at, n)
    root = ir.Function(b.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.sqrt.v{LANES}f64")
    with ForLoop(b, n, 1, _NONE) as column:
        k, (info,) = column.index, column.carried
        below, pivot = b.add(k, word(1)), a.load(k, k)
        positive = b.fcmp_ordered(">", pivot, _ZEROS)
        first = b.and_(b.not_(positive), b.icmp_signed("==", info, _NONE))
        info = b.select(first, spread(b, below, LANES), info)
        live = b.icmp_signed("==", info, _NONE)
        size = b.select(live, b.call(root, [pivot]), pivot)
        a.store(size, k, k)
        with _range(b, below, n) as (_, i):
            a.store(b.select(live, b.fdiv(a.load(i, k), size), a.load(i, k)), i, k)
        with _range(b, below, n) as (_, i):
            factor = a.load(i, k)
            with _range(b, below, b.add(i, word(1))) as (_, j):
                a.store(b.select(live, _less(b, a, i, j, factor, a.load(j, k)), a.load(i, j)), i, j)
        column.next = [info]
    _Matrix(b, found, word(1)).store(b.bitcast(column.carried[0], _VECTOR), word(0), word(0))


def _take_logarithms(b: ir.IRBuilder, at: ir.Value, found: ir.Value, n: ir.Value) -> None:
    """What `elimination.logarithms_of_determinants` makes of pivots, as vector number 3 at `found`."""
    a, out = _Matrix(b, at, n), _Matrix(b, found, word(1))

    def words(value: int) -> ir.Constant:
        return ir.Constant(_WORDS, [value] * LANES)

    def floats(value: float) -> ir.Constant:
        return ir.Constant(_VECTOR, [value] * LANES)

    infinity = floats(float("inf"))
    with ForLoop(b, n, 1, _ONES, _ZEROS) as row:
        product, exponent = row.carried
        size = _magnitude(b, a.load(row.index, row.index))
        tiny = b.fcmp_ordered("<", size, floats(SMALLEST))
        ordinary = b.and_(b.fcmp_ordered(">", size, _ZEROS), b.fcmp_ordered("<", size, infinity))
        bits = b.bitcast(b.select(tiny, b.fmul(size, floats(2.0**54)), size), _WORDS)
        significand = b.bitcast(b.or_(b.and_(bits, words(FRACTION)), words(ONE)), _VECTOR)
        power = b.sub(b.sub(b.ashr(bits, words(52)), words(1023)), b.select(tiny, words(54), _NONE))
        row.next = [
            b.fmul(product, b.select(ordinary, significand, size)),
            b.fadd(exponent, b.sitofp(b.select(ordinary, power, _NONE), _VECTOR)),
        ]
    product, exponent = row.carried
    bits = b.bitcast(product, _WORDS)
    field = b.and_(b.sub(bits, words(ROOT_HALF)), words(~FRACTION))
    exponent = b.fadd(exponent, b.sitofp(b.ashr(field, words(52)), _VECTOR))
    f = b.fsub(b.bitcast(b.sub(bits, field), _VECTOR), _ONES)
    half, s = b.fmul(b.fmul(floats(0.5), f), f), b.fdiv(f, b.fadd(floats(2.0), f))
    z, series = b.fmul(s, s), floats(SERIES[-1])
    for number in SERIES[-2::-1]:
        series = b.fadd(b.fmul(series, z), floats(number))
    tail = b.fadd(b.fmul(s, b.fadd(half, b.fmul(z, series))), b.fmul(exponent, floats(LN2_LOW)))
    logarithm = b.fadd(b.fmul(exponent, floats(LN2_HIGH)), b.fsub(f, b.fsub(half, tail)))
    logarithm = b.select(b.fcmp_ordered("<", product, infinity), logarithm, product)
    nothing = b.fcmp_ordered("==", product, _ZEROS)
    out.store(b.select(nothing, floats(float("-inf")), logarithm), word(3), word(0))


_FUNCTIONS: dict[str, tuple[Callable[..., None], int]] = {
    "eliminate": (_eliminate, 5), "substitute": (_substitute, 6), "factor": (_factor, 3),
    "take_logarithms": (_take_logarithms, 3),
}  # fmt: skip


def _address(name: str) -> int:
    write, arguments = _FUNCTIONS[name]
    module, symbol = ir.Module(), f"twingrad_{name}_lanes"
    function = ir.Function(module, ir.FunctionType(WORD, [WORD] * arguments), symbol)
    function.attributes.add("nounwind")
    wide(function)
    b = ir.IRBuilder(function.append_basic_block())
    write(b, *function.args)
    b.ret(word(0))
    return load_ir(str(module), symbol)


def define_all() -> None:
    """Let native source call ``eliminate_lanes`` and the others by their names."""
    for name in _FUNCTIONS:
        llvm_engine.define(f"twingrad_{name}_lanes", partial(_address, name))
