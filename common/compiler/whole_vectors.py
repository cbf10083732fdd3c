"""Values in vector registers of AVX-512, which has instructions for what else takes many of them.

They take numbers apart and scale them by powers of two, subnormal numbers and infinities too. Scalar definitions ask
`common.compiler.primitives.fills_registers`, and say the same bits with fewer instructions (`common.kernels.math`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from common.compiler.llvm_primitives import LlvmValue

__all__ = ["WholeVector"]

_NEAREST = ir.Constant(ir.IntType(32), 4)
"""The rounding that the thread has set, which is to the nearest."""

_FROM_ONE_TO_TWO = ir.Constant(ir.IntType(32), 0b1100)
"""Significands in [1, 2); the sign of zero is dropped, negative numbers give NaN."""


class WholeVector(LlvmValue):
    """An `LlvmValue` that knows instructions of AVX-512."""

    __slots__ = ()

    converts = True

    @property
    def fills_registers(self) -> bool:
        """Whether these instructions exist: of one float, or of vectors from 128 bits on."""
        return self._float and (self._lanes == 1 or self._lanes * self.dtype.itemsize >= 16)

    def scaled(self, count: LlvmValue) -> LlvmValue:
        """Return this value times 2^count, rounded once, for a count that is a whole number or an infinity."""
        return self._instruction("scalef", [self.ir, count.ir], ())

    def binary_exponent(self) -> LlvmValue:
        """Return the largest k with 2^k <= |x| as a float; -inf of 0."""
        return self._instruction("getexp", [self.ir], ())

    def significand(self) -> LlvmValue:
        """Return m in [1, 2) with x = m 2^k; 1 of 0 and infinity, NaN below zero."""
        return self._instruction("getmant", [self.ir], (_FROM_ONE_TO_TWO,))

    def _instruction(self, name: str, operands: list[ir.Value], extra: tuple[ir.Value, ...]) -> LlvmValue:
        if self._lanes > 1:
            return self._new(self._of_registers(name, operands, extra))
        kind, first = ir.VectorType(self.ir.type, 16 // self.dtype.itemsize), ir.Constant(ir.IntType(32), 0)
        others = ir.Constant(kind, ir.Undefined)
        vectors = [self._builder.insert_element(others, x, first) for x in operands]
        return self._new(self._builder.extract_element(self._of_registers(name, vectors, extra), first))

    def _of_registers(self, name: str, operands: list[ir.Value], extra: tuple[ir.Value, ...]) -> ir.Value:
        """An instruction on vectors; on each half of what one register does not hold."""
        count, size, build = operands[0].type.count, self.dtype.itemsize, self._builder
        whole = max(1 << (count - 1).bit_length(), 16 // size)
        if whole != count:  # no register has so many lanes: the first one again and again where nothing is
            lanes = _lanes([*range(count), *[0] * (whole - count)])
            found = self._of_registers(name, [build.shuffle_vector(x, x, lanes) for x in operands], extra)
            return build.shuffle_vector(found, found, _lanes(range(count)))
        if count * size > 64:
            half = count // 2
            parts = [
                self._of_registers(
                    name, [build.shuffle_vector(x, x, _lanes(range(first, first + half))) for x in operands], extra
                )
                for first in (0, half)
            ]
            return build.shuffle_vector(*parts, _lanes(range(count)))
        kind, mask = operands[0].type, ir.IntType(max(count, 8))
        rounding = (_NEAREST,) * (count * size == 64)
        arguments = [*operands, *extra, operands[0], ir.Constant(mask, -1), *rounding]
        full = f"llvm.x86.avx512.mask.{name}.p{'sd'[size == 8]}.{8 * count * size}"
        function = self._module.globals.get(full) or ir.Function(
            self._module, ir.FunctionType(kind, [x.type for x in arguments]), full
        )
        return build.call(function, arguments)


def _lanes(numbers: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))
