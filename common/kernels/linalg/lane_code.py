"""Machine code that computes with eight small matrices at once, or with one.

Element (i, j) of a matrix with `columns` columns is number ``i columns + j``: a vector of float64, each of whose lanes
is a matrix, or one float64, and vectors are parts of rows. Needs llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from llvmlite import ir

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    first_lanes,
    load_some,
    spread,
    store_some,
    wide,
    word,
    zero,
)

__all__ = ["LANES", "Code", "LaneFunctions", "Matrices"]

LANES = 8
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


class Matrices:
    """One matrix, or one in each lane of vectors, at an address."""

    def __init__(self, code: Code, address: ir.Value, columns: ir.Value) -> None:
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


class Code:
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

    def root(self, x: ir.Value) -> ir.Value:
        """The square root."""
        name = f"llvm.sqrt.{f'v{self.lanes}' if self.lanes > 1 else ''}f64"
        root = self.b.module.globals.get(name) or ir.Function(
            self.b.module, ir.FunctionType(self.kind, [self.kind]), name
        )
        return self.b.call(root, [x])

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

    def change(
        self, rows: Sequence[tuple[Matrices, ir.Value]], first: ir.Value, stop: ir.Value,
        compute: Callable[..., tuple[ir.Value, ...]],
    ) -> None:  # fmt: skip
        """Write what is computed of several rows' elements from `first` to `stop`, into the first ones of them."""
        b = self.b
        if self.lanes > 1:
            with self.range(first, stop) as (_, j):
                for (x, row), value in zip(rows, compute(*(x.load(row, j) for x, row in rows)), strict=False):
                    x.store(value, row, j)
            return
        count = b.sub(stop, first)
        whole = b.and_(count, word(-LANES))
        with ForLoop(b, whole, LANES) as loop:
            places = [x.place(row, b.add(first, loop.index)) for x, row in rows]
            parts = [b.load(place, align=8, typ=_VECTOR) for place in places]
            for place, value in zip(places, compute(*parts), strict=False):
                b.store(value, place, align=8)
        rest = b.sub(count, whole)
        with b.if_then(b.icmp_signed("!=", rest, word(0))):
            places = [x.place(row, b.add(first, whole)) for x, row in rows]
            mask = first_lanes(b, LANES, rest)
            parts = [load_some(b, place, mask, zero(_VECTOR)) for place in places]
            for place, value in zip(places, compute(*parts), strict=False):
                store_some(b, value, place, mask)

    def subtract(
        self, x: Matrices, i: ir.Value, k: ir.Value, first: ir.Value, stop: ir.Value, factor: ir.Value,
        where: ir.Value | None = None,
    ) -> None:  # fmt: skip
        """Subtract row k times a factor from row i, product and difference rounded by themselves."""
        b, factor = self.b, self.along(factor)
        kept = None if where is None else self.along(where)

        def difference(u: ir.Value, v: ir.Value) -> tuple[ir.Value]:
            found = b.fsub(u, b.fmul(factor, v))
            return (found if kept is None else b.select(kept, found, u),)

        self.change([(x, i), (x, k)], first, stop, difference)

    def tell(self, found: ir.Value, *values: ir.Value) -> None:
        """Write vectors, the first of whose lanes are used."""
        for number, value in enumerate(values):
            self.tell_one(found, word(number), value)

    def tell_one(self, found: ir.Value, number: ir.Value, value: ir.Value) -> None:
        """Write the vector with a number."""
        start = self.b.inttoptr(found, ir.PointerType())
        self.b.store(value, self.b.gep(start, [number], source_etype=_VECTOR), align=8)


class LaneFunctions:
    """Functions that native source may call, for eight matrices and for one.

    Parameters
    ----------
    written : name -> what writes the function, after its `Code`, and of how many words.
    """

    def __init__(self, written: Mapping[str, tuple[Callable[..., None], int]]) -> None:
        self._written = written

    def define(self) -> list[str]:
        """Let native source call ``name_of_8`` and ``name_of_1``; return these names."""
        each = [(name, lanes) for name in self._written for lanes in (1, LANES)]
        made = {f"{name}_of_{lanes}": partial(self.address, name, lanes) for name, lanes in each}
        for name, address in made.items():
            llvm_engine.define(f"twingrad_{name}", address)
        return list(made)

    def address(self, name: str, lanes: int) -> int:
        """The address of a function."""
        write, arguments = self._written[name]
        module, symbol = ir.Module(), f"twingrad_{name}_of_{lanes}"
        function = ir.Function(module, ir.FunctionType(WORD, [WORD] * arguments), symbol)
        function.attributes.add("nounwind")
        wide(function)
        b = ir.IRBuilder(function.append_basic_block())
        write(Code(b, lanes), *function.args)
        b.ret(word(0))
        return load_ir(str(module), symbol)
