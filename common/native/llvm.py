"""The LLVM backend of the primitives: the same scalar definitions, emitted as instructions.

Every instruction is plain IEEE 754 or two's complement: no fast-math flag is ever set, so LLVM may neither
contract, reassociate nor assume the absence of NaN; vectorising such code keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from common.native.rare import emit_beyond, emit_lookup

__all__ = ["LlvmValue", "emit_scalar", "llvm_type"]

_BOOL = np.dtype(np.bool_)
_TYPES: dict[np.dtype[Any], ir.Type] = {
    np.dtype(np.float32): ir.FloatType(),
    np.dtype(np.float64): ir.DoubleType(),
    _BOOL: ir.IntType(1),
    **{np.dtype(f"{kind}{size}"): ir.IntType(8 * size) for kind in "iu" for size in (1, 2, 4, 8)},
}


def llvm_type(dtype: Any) -> ir.Type:
    """Return the LLVM type that holds one value of a dtype in a register (bool: i1)."""
    return _TYPES[np.dtype(dtype)]


def emit_scalar(
    builder: ir.IRBuilder,
    definition: Callable[..., Any],
    operands: Sequence[tuple[ir.Value, Any]],
    module: ir.Module | None = None,
) -> tuple[ir.Value, np.dtype[Any]]:
    """Emit a scalar definition at the builder's position.

    Parameters
    ----------
    builder : IRBuilder
        Where the instructions go. Definitions are branch-free; `repeat_while` alone makes blocks, and leaves the
        builder at the end of the last one.
    definition : callable
        Written over `common.native.primitives`.
    operands : sequence of (IR value, dtype)
        A bool may come as i1 or, as in memory, as i8.
    module : Module, optional
        Where intrinsics are declared; by default the builder's own module.

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
    result = definition(*[_operand(builder, module or builder.module, *pair) for pair in operands])
    if not isinstance(result, LlvmValue):
        raise TypeError(f"a scalar definition must return a value computed from its operands, not {result!r}")
    return result.ir, result.dtype


def _operand(builder: ir.IRBuilder, module: ir.Module, value: ir.Value, dtype: Any) -> LlvmValue:
    dtype = np.dtype(dtype)
    if dtype == _BOOL and value.type == ir.IntType(8):
        value = builder.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
    if value.type != _TYPES[dtype]:
        raise TypeError(f"operand declared {dtype} has LLVM type {value.type}")
    return LlvmValue(builder, module, value, dtype)


class LlvmValue:
    """One scalar in a register: a builder, an IR value and its numpy dtype."""

    __slots__ = ("_builder", "_module", "dtype", "ir")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: ir.IRBuilder, module: ir.Module, value: ir.Value, dtype: np.dtype[Any]) -> None:
        self._builder, self._module, self.ir, self.dtype = builder, module, value, dtype

    def __repr__(self) -> str:
        return f"LlvmValue({self.dtype}, {self.ir})"

    def __bool__(self) -> bool:
        raise TypeError("a scalar definition must not branch on a value: use select(condition, x, y)")

    # ---------------------------------------------------------------- construction
    def _new(self, value: ir.Value, dtype: np.dtype[Any] | None = None) -> LlvmValue:
        return LlvmValue(self._builder, self._module, value, self.dtype if dtype is None else dtype)

    def constant(self, number: Any) -> LlvmValue:
        """Return ``number`` in this value's dtype, rounded once."""
        if self.dtype.kind == "f":
            typed: Any = float(self.dtype.type(number))
        else:
            typed = int(self.dtype.type(number))  # raises OverflowError when out of range, as numpy does
        return self._new(ir.Constant(_TYPES[self.dtype], typed))

    def _coerce(self, other: Any) -> LlvmValue:
        if isinstance(other, LlvmValue):
            if other.dtype != self.dtype:
                raise TypeError(f"operands of one operation must have one dtype: {self.dtype} and {other.dtype}")
            return other
        if type(other) in (int, float, bool) or (isinstance(other, np.generic) and other.dtype == self.dtype):
            if type(other) is float and self.dtype.kind != "f":
                raise TypeError(f"a float constant cannot take the dtype {self.dtype}")
            return self.constant(other)
        raise TypeError(f"cannot combine a {self.dtype} value with {other!r}")

    @property
    def _float(self) -> bool:
        return self.dtype.kind == "f"

    def _binary(self, other: Any, float_op: str | None, integer_op: str | None, swap: bool = False) -> LlvmValue:
        op = float_op if self._float else integer_op
        if op is None or (self.dtype == _BOOL and op not in ("and_", "or_", "xor")):
            raise TypeError(f"operation {float_op or integer_op} is not defined for {self.dtype}")
        left, right = self, self._coerce(other)
        if swap:
            left, right = right, left
        return self._new(getattr(self._builder, op)(left.ir, right.ir))

    # ---------------------------------------------------------------- arithmetic
    def __add__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fadd", "add")

    def __radd__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fadd", "add", swap=True)

    def __sub__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fsub", "sub", swap=True)

    def __mul__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fmul", "mul")

    def __rmul__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fmul", "mul", swap=True)

    def __truediv__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fdiv", None)

    def __rtruediv__(self, other: Any) -> LlvmValue:
        return self._binary(other, "fdiv", None, swap=True)

    def __neg__(self) -> LlvmValue:
        if self._float:
            return self._new(self._builder.fneg(self.ir))
        return self.constant(0) - self

    # ---------------------------------------------------------------- bits
    def __and__(self, other: Any) -> LlvmValue:
        return self._binary(other, None, "and_")

    def __or__(self, other: Any) -> LlvmValue:
        return self._binary(other, None, "or_")

    def __xor__(self, other: Any) -> LlvmValue:
        return self._binary(other, None, "xor")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> LlvmValue:
        return self ^ (True if self.dtype == _BOOL else self._ones())

    def _ones(self) -> LlvmValue:
        return self._new(ir.Constant(_TYPES[self.dtype], -1))

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
        shifted = self._binary(count, None, op)
        if type(count) is int and 0 <= count < width:
            return shifted
        amount = self._coerce(count).ir
        inside = self._builder.icmp_unsigned("<", amount, ir.Constant(amount.type, width))
        return self._new(inside, _BOOL).select(shifted, beyond)

    def bits(self) -> LlvmValue:
        """Reinterpret a float as a signed integer."""
        return self._bitcast({"f4": "i4", "f8": "i8"})

    def from_bits(self) -> LlvmValue:
        """Reinterpret an int32 or int64 as a float."""
        return self._bitcast({"i4": "f4", "i8": "f8"})

    def _bitcast(self, table: dict[str, str]) -> LlvmValue:
        target = np.dtype(table[self.dtype.str[1:]])
        return self._new(self._builder.bitcast(self.ir, _TYPES[target]), target)

    # ---------------------------------------------------------------- comparison and choice
    def _compare(self, op: str, other: Any) -> LlvmValue:
        right = self._coerce(other).ir
        if self._float:  # != holds for NaN, every other comparison with NaN is false
            compare = self._builder.fcmp_unordered if op == "!=" else self._builder.fcmp_ordered
        else:
            compare = self._builder.icmp_signed if self.dtype.kind == "i" else self._builder.icmp_unsigned
        return self._new(compare(op, self.ir, right), _BOOL)

    def __lt__(self, other: Any) -> LlvmValue:
        return self._compare("<", other)

    def __le__(self, other: Any) -> LlvmValue:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> LlvmValue:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> LlvmValue:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> LlvmValue:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Any) -> LlvmValue:  # type: ignore[override]
        return self._compare("!=", other)

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

    # ---------------------------------------------------------------- functions
    def _intrinsic(self, name: str, *others: LlvmValue) -> LlvmValue:
        if not self._float:
            raise TypeError(f"{name} is not defined for {self.dtype}")
        kind = _TYPES[self.dtype]
        signature = ir.FunctionType(kind, [kind] * (1 + len(others)))
        function = self._module.declare_intrinsic(f"llvm.{name}", [kind], signature)
        return self._new(self._builder.call(function, [self.ir, *(other.ir for other in others)]))

    def absolute(self) -> LlvmValue:
        """Magnitude; integers wrap."""
        if self._float:
            return self._intrinsic("fabs")
        return self if self.dtype.kind in "ub" else (self < 0).select(-self, self)

    def transfer_sign(self, sign: Any) -> LlvmValue:
        """Magnitude of this value, sign bit of the other."""
        return self._intrinsic("copysign", self._coerce(sign))

    def sqrt(self) -> LlvmValue:
        """Correctly rounded square root."""
        return self._intrinsic("sqrt")

    def floor(self) -> LlvmValue:
        """Round down."""
        return self._intrinsic("floor")

    def ceil(self) -> LlvmValue:
        """Round up."""
        return self._intrinsic("ceil")

    def trunc(self) -> LlvmValue:
        """Round towards zero."""
        return self._intrinsic("trunc")

    def rint(self) -> LlvmValue:
        """Round to nearest, ties to even (the rounding mode is never changed)."""
        return self._intrinsic("rint")

    def beyond(self, x: LlvmValue, bound: float, definition: Callable[..., Any], *operands: LlvmValue) -> LlvmValue:
        """Return this value, but ``definition(x)`` where |x| > bound; of other operands if there are any."""
        if any(z.dtype != self.dtype for z in (x, *operands)) or not self._float:
            raise TypeError(f"beyond needs floats of one dtype, got {self.dtype} and {x.dtype}")

        def emit(builder: ir.IRBuilder, *arguments: ir.Value) -> ir.Value:
            return emit_scalar(builder, definition, [(z, self.dtype) for z in arguments], self._module)[0]

        others = [z.ir for z in operands]
        return self._new(emit_beyond(self._builder, self._module, self.ir, x.ir, others, bound, definition, emit))

    def lookup(self, table: tuple[int, ...]) -> LlvmValue:
        """Return ``table[self]``."""
        return self._new(emit_lookup(self._builder, self._module, table, self.ir))

    def trunc_divide(self, other: Any) -> LlvmValue:
        """Integer division towards zero that never traps: x / 0 = 0 and INT_MIN / -1 = INT_MIN."""
        divisor = self._coerce(other)
        zero = divisor == 0
        if self.dtype.kind == "u":
            quotient = self._binary(zero.select(1, divisor), None, "udiv")
            return zero.select(0, quotient)
        negate = divisor == -1
        quotient = self._binary((zero | negate).select(1, divisor), None, "sdiv")
        return negate.select(-self, zero.select(0, quotient))

    def convert(self, dtype: Any) -> LlvmValue:
        """Convert to another dtype, see `common.native.primitives.convert`."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self
        if target == _BOOL:
            return self != 0
        build, kind = self._builder, _TYPES[target]
        unsigned = self.dtype.kind in "ub"
        if self._float and target.kind == "f":
            return self._new((build.fpext if target.itemsize == 8 else build.fptrunc)(self.ir, kind), target)
        if self._float:
            name = f"llvm.fpto{'s' if target.kind == 'i' else 'u'}i.sat"
            function = self._module.declare_intrinsic(
                name, [kind, _TYPES[self.dtype]], ir.FunctionType(kind, [_TYPES[self.dtype]])
            )
            return self._new(build.call(function, [self.ir]), target)
        if target.kind == "f":
            return self._new((build.uitofp if unsigned else build.sitofp)(self.ir, kind), target)
        if kind.width > _TYPES[self.dtype].width:
            return self._new((build.zext if unsigned else build.sext)(self.ir, kind), target)
        if kind.width < _TYPES[self.dtype].width:
            return self._new(build.trunc(self.ir, kind), target)
        return self._new(self.ir, target)
