"""The LLVM backend of the primitives: the same scalar definitions, emitted as instructions.

Every instruction is plain IEEE 754 or two's complement: no fast-math flag is ever set, so LLVM may neither
contract, reassociate nor assume the absence of NaN; vectorising such code keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from common.compiler import whole_numbers
from common.compiler.rare_branches import emit_beyond, emit_lookup
from common.compiler.registers import OneByOne
from common.compiler.scalar_value import ScalarValue

__all__ = ["LlvmValue", "emit_scalar", "llvm_type"]

_BOOL = np.dtype(np.bool_)
_INT32 = np.dtype(np.int32)
_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_WHOLE_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and_", "|": "or_", "^": "xor"}
_TYPES: dict[np.dtype[Any], ir.Type] = {
    np.dtype(np.float32): ir.FloatType(),
    np.dtype(np.float64): ir.DoubleType(),
    _BOOL: ir.IntType(1),
    **{np.dtype(f"{kind}{size}"): ir.IntType(8 * size) for kind in "iu" for size in (1, 2, 4, 8)},
}


def llvm_type(dtype: Any, lanes: int = 1) -> ir.Type:
    """Return the LLVM type that holds one value of a dtype in a register (bool: i1), or a vector of values."""
    kind = _TYPES[np.dtype(dtype)]
    return kind if lanes == 1 else ir.VectorType(kind, lanes)


def emit_scalar(
    builder: ir.IRBuilder,
    definition: Callable[..., Any],
    operands: Sequence[tuple[ir.Value, Any]],
    module: ir.Module | None = None,
    lanes: int = 1,
    known: Sequence[bool] = (),
    values: type[LlvmValue] | None = None,
) -> tuple[ir.Value, np.dtype[Any]]:
    """Emit a scalar definition at the builder's position.

    Parameters
    ----------
    builder : IRBuilder
        Where the instructions go. Definitions are branch-free; `repeat_while` and `rarely` alone make blocks, and leave
        the builder at the end of the last one.
    definition : callable
        Written over `common.compiler.primitives`.
    operands : sequence of (IR value, dtype)
        A bool may come as i1 or, as in memory, as i8.
    module : Module, optional
        Where intrinsics are declared; by default the builder's own module.
    lanes : int
        Operands are vectors of so many values, and so is the result.
    known : sequence of bool, optional
        Which operands will be numbers in the text once LLVM has inlined the definition: it divides by these itself.
    values : type, optional
        Of the values that the definition gets: `LlvmValue`, or one that knows more instructions.

    Returns
    -------
    (IR value, dtype)
        A bool comes as i1.

    Raises
    ------
    TypeError
        The definition mixes dtypes, branches on a value, or returns something that is not a value.

    Examples
    --------
    >>> function = ir.Function(ir.Module(), ir.FunctionType(ir.FloatType(), [ir.FloatType()]), "f")
    >>> builder = ir.IRBuilder(function.append_basic_block())
    >>> value, dtype = emit_scalar(builder, lambda x: x * x + 1.0, [(function.args[0], np.float32)])
    >>> print(dtype, value.type)
    float32 float
    """
    given = [_operand(values or LlvmValue, builder, module or builder.module, lanes, *pair) for pair in operands]
    for value, number in zip(given, known):
        value.is_known = number
    result = definition(*given)
    if not isinstance(result, LlvmValue):
        raise TypeError(f"a scalar definition must return a value computed from its operands, not {result!r}")
    return result.ir, result.dtype


def _operand(
    values: type[LlvmValue], builder: ir.IRBuilder, module: ir.Module, lanes: int, value: ir.Value, dtype: Any
) -> LlvmValue:
    dtype = np.dtype(dtype)
    if dtype == _BOOL and value.type == ir.IntType(8):
        value = builder.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
    if value.type != llvm_type(dtype, lanes):
        raise TypeError(f"operand declared {dtype} has LLVM type {value.type}")
    return values(builder, module, value, dtype, lanes)


class _Splat(ir.Constant):  # type: ignore[misc]
    """A constant in every lane; llvmlite would write each of them."""

    def __init__(self, scalar: ir.Constant, lanes: int) -> None:
        self.type, self.constant, self.scalar = ir.VectorType(scalar.type, lanes), scalar.constant, scalar

    def _get_reference(self) -> str:
        return f"splat ({self.scalar})"


class LlvmValue(ScalarValue):
    """One scalar, or one per lane of a vector, in a register: a builder, an IR value and its numpy dtype."""

    __slots__ = ("_builder", "_lanes", "_module", "ir", "is_known")

    converts = False
    """Whether there are instructions for vectors of int64 and floats."""

    def __init__(
        self, builder: ir.IRBuilder, module: ir.Module, value: ir.Value, dtype: np.dtype[Any], lanes: int = 1
    ) -> None:
        self._builder, self._module, self.ir, self.dtype, self._lanes = builder, module, value, dtype, lanes
        self.is_known = isinstance(value, ir.Constant)

    def __repr__(self) -> str:
        return f"LlvmValue({self.dtype}, {self.ir})"

    # ---------------------------------------------------------------- construction
    def _new(self, value: ir.Value, dtype: np.dtype[Any] | None = None) -> LlvmValue:
        return type(self)(self._builder, self._module, value, self.dtype if dtype is None else dtype, self._lanes)

    def _type(self, dtype: np.dtype[Any]) -> ir.Type:
        return llvm_type(dtype, self._lanes)

    def _number(self, number: Any) -> ir.Constant:
        """A number in this value's dtype, in each lane."""
        scalar = ir.Constant(_TYPES[self.dtype], number)
        if self._lanes == 1:
            return scalar
        return _Splat(scalar, self._lanes)

    def constant(self, number: Any) -> LlvmValue:
        """Return ``number`` in this value's dtype, rounded once."""
        if self.dtype.kind == "f":
            typed: Any = float(self.dtype.type(number))
        else:
            typed = int(self.dtype.type(number))  # raises OverflowError when out of range, as numpy does
        return self._new(self._number(typed))

    def _operation(self, sign: str, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        op = (_FLOAT_OPS if self._float else _WHOLE_OPS)[sign]
        return self._new(getattr(self._builder, op)(left.ir, right.ir))

    def _whole(self, op: str, other: Any) -> LlvmValue:
        """An instruction on integers."""
        if self.dtype.kind not in "iu":
            raise TypeError(f"operation {op} is not defined for {self.dtype}")
        return self._new(getattr(self._builder, op)(self.ir, self._coerce(other).ir))

    # ---------------------------------------------------------------- arithmetic
    def __neg__(self) -> LlvmValue:
        if self._float:
            return self._new(self._builder.fneg(self.ir))
        return self.constant(0) - self

    # ---------------------------------------------------------------- bits
    def __invert__(self) -> LlvmValue:
        return self ^ (True if self.dtype == _BOOL else self._ones())

    def _ones(self) -> LlvmValue:
        return self._new(self._number(-1))

    def __lshift__(self, count: Any) -> LlvmValue:
        return self._shift(count, "shl", self.constant(0))

    def __rshift__(self, count: Any) -> LlvmValue:
        if self.dtype.kind == "u":
            return self._shift(count, "lshr", self.constant(0))
        return self._shift(count, "ashr", (self < 0).select(self._ones(), self.constant(0)))

    def lshr(self, count: int) -> LlvmValue:
        """Shift right, filling with zeros."""
        return self._shift(count, "lshr", self.constant(0))

    def _shift(self, count: Any, op: str, beyond: LlvmValue) -> LlvmValue:
        """Shift; a count outside [0, width) leaves nothing but fill, as numpy defines and LLVM does not."""
        width = 8 * self.dtype.itemsize
        shifted = self._whole(op, count)
        if type(count) is int and 0 <= count < width:
            return shifted
        inside = self._builder.icmp_unsigned("<", self._coerce(count).ir, self._number(width))
        return self._new(inside, _BOOL).select(shifted, beyond)

    def bits(self) -> LlvmValue:
        """Reinterpret a float as a signed integer."""
        return self._bitcast({"f4": "i4", "f8": "i8"})

    def from_bits(self) -> LlvmValue:
        """Reinterpret an int32 or int64 as a float."""
        return self._bitcast({"i4": "f4", "i8": "f8"})

    def _bitcast(self, table: dict[str, str]) -> LlvmValue:
        target = np.dtype(table[self.dtype.str[1:]])
        return self._new(self._builder.bitcast(self.ir, self._type(target)), target)

    # ---------------------------------------------------------------- comparison and choice
    def _compare(self, op: str, other: Any) -> LlvmValue:
        right = self._coerce(other).ir
        if self._float:  # != holds for NaN, every other comparison with NaN is false
            compare = self._builder.fcmp_unordered if op == "!=" else self._builder.fcmp_ordered
        else:
            compare = self._builder.icmp_signed if self.dtype.kind == "i" else self._builder.icmp_unsigned
        return self._new(compare(op, self.ir, right), _BOOL)

    def select(self, x: Any, y: Any) -> LlvmValue:
        """Return ``x`` where this bool holds, else ``y``."""
        if self.dtype != _BOOL:
            raise TypeError(f"a condition must be bool, not {self.dtype}")
        typed = x if isinstance(x, LlvmValue) else y
        if not isinstance(typed, LlvmValue):
            raise TypeError("select needs a dtype: at least one of its two choices must be a value")
        left, right = typed._coerce(x), typed._coerce(y)
        return typed._new(self._builder.select(self.ir, left.ir, right.ir))

    def repeat_while(
        self, condition: Callable[[LlvmValue], LlvmValue], step: Callable[[LlvmValue], LlvmValue]
    ) -> LlvmValue:
        """Take steps from this value for as long as the condition holds."""
        self._must_be_one("repeat_while")
        build, before = self._builder, self._builder.block
        test, body, after = (build.append_basic_block(f"repeat.{part}") for part in ("test", "body", "after"))
        build.branch(test)
        build.position_at_end(test)
        phi = build.phi(self.ir.type)
        phi.add_incoming(self.ir, before)
        current = self._new(phi)
        build.cbranch(condition(current).ir, body, after)
        build.position_at_end(body)
        following = step(current)
        phi.add_incoming(following.ir, build.block)
        build.branch(test)
        build.position_at_end(after)
        return current

    def rarely(self, condition: LlvmValue, other: Callable[[], LlvmValue]) -> LlvmValue:
        """Return this value, but ``other()`` where the condition holds; vectors branch around it."""
        if self._lanes == 1 and not getattr(self, "fills_registers", False):
            return condition.select(other(), self)  # LLVM makes vectors of loops without branches
        build, before = self._builder, self._builder.block
        some, after = (build.append_basic_block(f"rarely.{part}") for part in ("some", "after"))
        word = ir.IntType(self._lanes)
        lanes = condition.ir if self._lanes == 1 else build.bitcast(condition.ir, word)
        build.cbranch(build.icmp_unsigned("!=", lanes, ir.Constant(word, 0)), some, after)
        build.position_at_end(some)
        found = condition.select(other(), self)
        last = build.block
        build.branch(after)
        build.position_at_end(after)
        phi = build.phi(self.ir.type)
        phi.add_incoming(self.ir, before)
        phi.add_incoming(found.ir, last)
        return self._new(phi)

    # ---------------------------------------------------------------- functions
    def _exact(self, name: str, *others: LlvmValue) -> LlvmValue:
        return self._call(f"llvm.{name}", [self.dtype], self.dtype, *others)

    def _call(self, name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any], *others: LlvmValue) -> LlvmValue:
        """Call an intrinsic function of this value and others, which is overloaded for dtypes."""
        full = ".".join([name, *(f"v{self._lanes}" * (self._lanes > 1) + _TYPES[d].intrinsic_name for d in dtypes)])
        operands = [self.ir, *(other.ir for other in others)]
        function = self._module.globals.get(full) or ir.Function(
            self._module, ir.FunctionType(self._type(result), [operand.type for operand in operands]), full
        )
        return self._new(self._builder.call(function, operands), result)

    def _must_be_one(self, name: str) -> None:
        if self._lanes > 1:
            raise OneByOne(name)

    def beyond(self, x: LlvmValue, bound: float, definition: Callable[..., Any], *operands: LlvmValue) -> LlvmValue:
        """Return this value, but ``definition(x)`` where |x| > bound; of other operands if there are any."""
        if any(z.dtype != self.dtype for z in (x, *operands)) or not self._float:
            raise TypeError(f"beyond needs floats of one dtype, got {self.dtype} and {x.dtype}")

        def emit(builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
            return emit_scalar(builder, definition, [(z, self.dtype) for z in arguments], self._module)[0]

        others, kind = [z.ir for z in operands], _TYPES[self.dtype]
        call = emit_beyond(self._module, kind, self._lanes, bound, definition, emit, len(others))
        return self._new(self._builder.call(call, [x.ir, self.ir, *others]))

    def lookup(self, table: tuple[int, ...]) -> LlvmValue:
        """Return ``table[self]``."""
        self._must_be_one("lookup")
        return self._new(emit_lookup(self._builder, self._module, table, self.ir))

    def trunc_divide(self, other: Any) -> LlvmValue:
        """Integer division towards zero that never traps: x / 0 = 0 and INT_MIN / -1 = INT_MIN."""
        divisor = self._coerce(other)
        zero = divisor == 0
        if self.dtype.kind == "u":
            quotient = self._whole("udiv", zero.select(1, divisor))
            return zero.select(0, quotient)
        negate = divisor == -1
        safe = (zero | negate).select(1, divisor)
        quotient = self._whole("sdiv", safe) if self._lanes == 1 or divisor.is_known else self._quotient(safe)
        return negate.select(-self, zero.select(0, quotient))

    def _quotient(self, divisor: LlvmValue) -> LlvmValue:
        """Signed division towards zero of vectors, by what is neither 0 nor -1.

        Processors divide vectors of floats only, and LLVM would divide lane by lane. The quotient of floats that hold
        the integers is right: it is no integer unless the exact one is, from which it is further away than it rounds.
        """
        found = self.divide_down(divisor)
        if found is not None:
            quotient, rest = found
            return quotient + ((quotient < 0) & (rest != 0)).convert(self.dtype)
        wide = np.dtype(np.float64 if self.dtype.itemsize == 4 else np.float32)
        return (self.convert(wide) / divisor.convert(wide)).whole_part(self.dtype)

    def whole_part(self, dtype: np.dtype[Any]) -> LlvmValue:
        """A float without its fraction, in a dtype that holds it."""
        return self._new(self._builder.fptosi(self.ir, self._type(dtype)), dtype)

    def divide_down(self, other: Any) -> tuple[LlvmValue, LlvmValue] | None:
        """Quotient, rounded down, and remainder of vectors of int64, which no float holds; None of anything else."""
        given = self._coerce(other)
        if self._lanes == 1 or given.is_known or self.dtype != np.dtype(np.int64):
            return None
        small = (given + 1).convert(np.uint64) <= 2
        by = small.select(2, given)
        quotient, rest = (whole_numbers.divided if self.converts else whole_numbers.divided_by_branches)(self, by)
        return small.select(self * given, quotient), small.select(0, rest)

    def _truncated(self, target: np.dtype[Any]) -> LlvmValue:
        """``llvm.fptosi.sat``, which LLVM would compute lane by lane: convert what is in range, and choose the rest."""
        info, bound = np.iinfo(target), 2.0 ** (8 * target.itemsize - 1)
        if target.itemsize < 4:  # whose ends are floats, and integers of 32 bits
            inside = (self > float(info.min)).select(self, float(info.min))
            inside = (inside < float(info.max)).select(inside, float(info.max))
            whole = self._new(self._builder.fptosi(inside.ir, self._type(_INT32)), _INT32)
            return (self != self).select(0, whole.convert(target))
        inside = (self > -bound).select(self, -bound)
        last = float(np.nextafter(self.dtype.type(bound), self.dtype.type(0)))
        inside = (inside < last).select(inside, last)
        whole = self._new(self._builder.fptosi(inside.ir, self._type(target)), target)
        whole = (self >= bound).select(int(info.max), whole)
        return (self != self).select(0, whole)

    def convert(self, dtype: Any) -> LlvmValue:
        """Convert to another dtype, see `common.compiler.primitives.convert`."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self
        if target == _BOOL:
            return self != 0
        build, kind, unsigned = self._builder, self._type(target), self.dtype.kind in "ub"
        if self._float and target.kind == "f":
            return self._new((build.fpext if target.itemsize == 8 else build.fptrunc)(self.ir, kind), target)
        if self._float and self._lanes > 1 and (target.kind == "i" or target.itemsize < 4):
            if self.converts or target.itemsize < 8:
                return self._truncated(target)
            wide = self.convert(np.float64)
            return whole_numbers.to_whole(wide).rarely(whole_numbers.is_large(wide), lambda: self._truncated(target))
        if self._float:
            return self._call(f"llvm.fpto{'s' if target.kind == 'i' else 'u'}i.sat", [target, self.dtype], target)
        if (
            target == np.dtype(np.float64)
            and self.dtype == np.dtype(np.int64)
            and self._lanes > 1
            and not self.converts
        ):
            return whole_numbers.to_double(self)
        if target.kind == "f":
            return self._new((build.uitofp if unsigned else build.sitofp)(self.ir, kind), target)
        if self.dtype == _BOOL or target.itemsize > self.dtype.itemsize:
            return self._new((build.zext if unsigned else build.sext)(self.ir, kind), target)
        if target.itemsize < self.dtype.itemsize:
            return self._new(build.trunc(self.ir, kind), target)
        return self._new(self.ir, target)
