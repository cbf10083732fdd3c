"""The primitive operations that every scalar definition in Twingrad is written over.

A *scalar definition* is a Python function over values with operators (``+ - * /``, unary ``-``,
comparisons, ``& | ^ ~ << >>``) and the functions of this module. The same source has two backends:

- numpy arrays: the oracle, no compiler involved (run it through `evaluate`);
- `common.compiler.llvm_primitives.LlvmValue`: instructions for the compiled kernels.

Both give the same bits, because every primitive is exact: an IEEE 754 operation, an integer operation that
wraps, or a choice fixed here. Nothing is contracted into an FMA, reassociated or promoted. Two operands
have the same dtype; a Python number takes the dtype of the other operand. The sign and payload of a NaN are
unspecified, so a definition never lets them reach a result that is not NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "Value", "absolute", "beyond", "bits", "by_number", "ceil", "constant", "convert", "copysign", "dtype_of",
    "evaluate", "fills_registers", "floor", "floor_divide", "fma", "from_bits", "is_float", "lookup", "lshr", "rarely",
    "remainder", "repeat_while", "rint", "select", "shl", "sqrt", "transfer_sign", "trunc", "trunc_divide",
]  # fmt: skip

Value: TypeAlias = Any
"""A numpy array, a numpy scalar or an `LlvmValue`: whatever the backend computes with."""

_INTEGER_OF = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}
_FLOAT_OF = {integer: floating for floating, integer in _INTEGER_OF.items()}


def evaluate(definition: Callable[..., Value], *arrays: np.ndarray) -> Value:
    """Run a scalar definition on numpy arrays, without numpy's floating-point warnings.

    Examples
    --------
    >>> evaluate(lambda x: 1.0 / x, np.array([0.0, 2.0], np.float32))
    array([inf, 0.5], dtype=float32)
    """
    with np.errstate(all="ignore"):
        return definition(*arrays)


def _is_numpy(x: Value) -> bool:
    return isinstance(x, (np.ndarray, np.generic))


def by_number(
    definition: Callable[..., Value], known: Callable[[float], Callable[..., Value] | None]
) -> Callable[..., Value]:
    """Return a definition that kernels call by another, if there is one for the last operand that their text says.

    The bits are the same; LLVM need not find out what is left of the definition.
    """
    definition.by_number = known  # type: ignore[attr-defined]
    return definition


def dtype_of(x: Value) -> np.dtype[Any]:
    """Return the numpy dtype of a value of either backend."""
    dtype: np.dtype[Any] = x.dtype
    return dtype


def is_float(x: Value) -> bool:
    """Tell whether a value is float32 or float64."""
    return dtype_of(x).kind == "f"


def constant(number: float | bool, like: Value) -> Value:
    """Return ``number`` as a value of the dtype and backend of ``like``, rounded once."""
    if _is_numpy(like):
        return like.dtype.type(number)
    return like.constant(number)


def bits(x: Value) -> Value:
    """Return the bit pattern of a float as a signed integer of the same width."""
    return x.view(_INTEGER_OF[dtype_of(x)]) if _is_numpy(x) else x.bits()


def from_bits(x: Value) -> Value:
    """Return the float whose bit pattern is the int32 or int64 ``x``; the inverse of `bits`."""
    return x.view(_FLOAT_OF[dtype_of(x)]) if _is_numpy(x) else x.from_bits()


def select(condition: Value, x: Value, y: Value) -> Value:
    """Return ``x`` where ``condition`` holds and ``y`` elsewhere; both are evaluated.

    One of ``x`` and ``y`` may be a Python number.
    """
    if not _is_numpy(condition):
        return condition.select(x, y)
    dtype = dtype_of(x if _is_numpy(x) else y)
    return np.where(condition, np.asarray(x, dtype), np.asarray(y, dtype))


def repeat_while(condition: Callable[[Value], Value], step: Callable[[Value], Value], x: Value) -> Value:
    """Return ``x`` after ``x = step(x)`` as long as ``condition(x)`` holds, element by element.

    For what is rare and cannot be bounded well: a loop inside a loop is not vectorised.
    """
    if not _is_numpy(x):
        return x.repeat_while(condition, step)
    active = condition(x)
    while np.any(active):
        x = np.where(active, step(x), x)
        active = active & condition(x)
    return x


def shl(x: Value, count: int) -> Value:
    """Shift an integer left by a constant ``0 <= count < width``; bits that leave are lost."""
    return x << count


def lshr(x: Value, count: int) -> Value:
    """Shift an integer right by a constant ``0 <= count < width``, filling with zeros whatever its sign."""
    if not _is_numpy(x):
        return x.lshr(count)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (x.view(unsigned) >> unsigned.type(count)).view(x.dtype)


def absolute(x: Value) -> Value:
    """Return the magnitude; the most negative integer is its own magnitude, as integers wrap."""
    return np.absolute(x) if _is_numpy(x) else x.absolute()


def transfer_sign(magnitude: Value, sign: Value) -> Value:
    """Return ``|magnitude|`` with the sign bit of ``sign``; where ``sign`` is NaN, ``magnitude`` must be too.

    The sign of a NaN differs between folded and run-time code: use `copysign` when ``sign`` alone may be NaN.
    """
    return np.copysign(magnitude, sign) if _is_numpy(magnitude) else magnitude.transfer_sign(sign)


def copysign(magnitude: Value, sign: Value) -> Value:
    """Return ``|magnitude|`` with the sign of ``sign``; a NaN counts as positive."""
    return transfer_sign(magnitude, select(sign == sign, sign, 1.0))


def sqrt(x: Value) -> Value:
    """Return the square root, correctly rounded (IEEE 754); NaN below zero, and sqrt(-0) = -0."""
    return np.sqrt(x) if _is_numpy(x) else x.sqrt()


def fma(x: Value, y: Value, z: Value) -> Value:
    """Return x * y + z, rounded once."""
    if not _is_numpy(x):
        return x.fused(y, z)
    from common.compiler.exact_sums import fma as fused

    return fused(*map(np.asarray, (x, y, z)))[()]


def floor(x: Value) -> Value:
    """Return the largest integral float <= x."""
    return np.floor(x) if _is_numpy(x) else x.floor()


def ceil(x: Value) -> Value:
    """Return the smallest integral float >= x."""
    return np.ceil(x) if _is_numpy(x) else x.ceil()


def trunc(x: Value) -> Value:
    """Return the float rounded to an integral value towards zero."""
    return np.trunc(x) if _is_numpy(x) else x.trunc()


def rint(x: Value) -> Value:
    """Return the float rounded to the nearest integral value, ties to even."""
    return np.rint(x) if _is_numpy(x) else x.rint()


def beyond(value: Value, x: Value, bound: float, definition: Callable[..., Value], *operands: Value) -> Value:
    """Return ``value``, but ``definition(x)`` where ``|x| > bound``; a NaN is not beyond.

    With `operands`, floats of the same dtype, it is ``definition(*operands)``.
    For arguments that are rare: `definition` runs for them only, and a loop over ordinary ones stays as fast as
    without it. A definition has a name of its own; its branches and tables cost nothing elsewhere.
    """
    if not _is_numpy(x):
        return value.beyond(x, bound, definition, *operands)
    chosen = np.absolute(x) > bound
    if not np.any(chosen):
        return value
    result = np.array(value)
    result[chosen] = definition(*(np.asarray(z)[chosen] for z in operands or (x,)))
    return result[()]


def rarely(value: Value, condition: Value, other: Callable[[], Value]) -> Value:
    """Return ``value``, but ``other()`` where the condition holds.

    For what most vectors need in no element, and some in many: a vector without such an element does not compute it.
    """
    return value.rarely(condition, other) if hasattr(value, "rarely") else select(condition, other(), value)


def fills_registers(x: Value) -> bool:
    """Whether x is a `common.compiler.whole_vectors.WholeVector`, with fewer instructions for the same bits."""
    return getattr(x, "fills_registers", False)


def lookup(table: tuple[int, ...], index: Value) -> Value:
    """Return ``table[index]`` for an int64 index inside the table: scalar code, so inside `beyond`."""
    return np.asarray(table, np.int64)[index] if _is_numpy(index) else index.lookup(table)


def convert(x: Value, dtype: Any) -> Value:
    """Convert to another dtype, with every case defined.

    To bool: ``x != 0`` (so NaN gives True). Integer to float, float64 to float32: rounded once to nearest
    even. Integer to integer: wraps. Float to integer: towards zero; NaN gives 0 and values out of range,
    infinities included, the nearest end of the range.
    """
    target = np.dtype(dtype)
    if not _is_numpy(x):
        return x.convert(target)
    if target.kind == "b":
        return x != 0
    if is_float(x) and target.kind in "iu":
        return _saturate(x, target)
    return x.astype(target)


def _saturate(x: np.ndarray, target: np.dtype[Any]) -> np.ndarray:
    """Convert floats to integers: NaN to 0, out of range to the ends of the range."""
    info = np.iinfo(target)
    low, above = x.dtype.type(info.min), x.dtype.type(2.0 ** (target.itemsize * 8 - (target.kind == "i")))
    inside = (x > low - 1) & (x < above) if info.min == 0 else (x >= low) & (x < above)
    whole = np.where(inside, x, x.dtype.type(0)).astype(target)
    return np.where(x >= above, target.type(info.max), np.where(x < low, target.type(info.min), whole))


def trunc_divide(x: Value, y: Value) -> Value:
    """Divide integers, rounding towards zero. INT_MIN / -1 = INT_MIN (wraps); x / 0 = 0, never a trap.

    Engines refuse a zero divisor before the kernel runs; the 0 here only keeps the kernel defined.
    """
    if not _is_numpy(x) and not _is_numpy(y):
        return x.trunc_divide(y) if hasattr(x, "trunc_divide") else constant(x, y).trunc_divide(y)
    dtype = dtype_of(x if _is_numpy(x) else y)
    x, y = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(y, dtype))
    if dtype.kind == "u":
        return np.where(y == 0, dtype.type(0), x // np.where(y == 0, dtype.type(1), y))
    safe = np.where((y == 0) | (y == -1), dtype.type(1), y)
    floored = x // safe
    # floor and truncation differ by one where the quotient is negative and inexact
    quotient = floored + ((floored < 0) & (floored * safe != x)).astype(dtype)
    return np.where(y == -1, -x, np.where(y == 0, dtype.type(0), quotient))


def floor_divide(x: Value, y: Value) -> Value:
    """Divide integers, rounding down (Python's //). INT_MIN // -1 = INT_MIN, x // 0 = 0."""
    if (found := _divided_down(x, y)) is not None:
        return found[0]
    quotient = trunc_divide(x, y)
    rest = x - quotient * y
    if dtype_of(quotient).kind == "u":
        return quotient
    lower = (rest != 0) & ((rest < 0) != (y < 0)) & (y != 0)
    return quotient - convert(lower, dtype_of(quotient))


def remainder(x: Value, y: Value) -> Value:
    """Return ``x - floor_divide(x, y) * y`` of integers: the divisor's sign (Python's %); x % 0 = 0."""
    if (found := _divided_down(x, y)) is not None:
        return found[1]
    rest = x - floor_divide(x, y) * y
    return select(y != 0, rest, 0) if not isinstance(y, int) else rest


def _divided_down(x: Value, y: Value) -> tuple[Value, Value] | None:
    """Quotient, rounded down, and remainder, where a backend finds both at once."""
    one = x if hasattr(x, "dtype") else constant(x, y)
    return one.divide_down(y) if hasattr(one, "divide_down") else None
