"""The third backend of the primitives: the same scalar definitions, written as Python that numba compiles.

A value is an expression of text. What is used more than once gets a name, in the order in which the definition
computes it; so the text reads like the definition, and its bits are those of the other two backends.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.compiler.scalar_value import ScalarValue
from common.compiler.text_steps import StepPart, StepWriting, TextStep, literal, read, type_name

__all__ = ["FunctionText", "TextValue", "text_of"]

_BOOL = np.dtype(np.bool_)


@dataclass
class FunctionText:
    """Functions of one file, by name: text, and the tables that they read.

    Attributes
    ----------
    functions : name -> text, each after those that it calls.
    """

    functions: dict[str, str] = field(default_factory=dict)
    tables: dict[tuple[int, ...], str] = field(default_factory=dict)
    made: dict[Any, tuple[str, np.dtype[Any]]] = field(default_factory=dict)

    def scalar(self, name: str, definition: Callable[..., Any], dtypes: Sequence[Any]) -> tuple[str, np.dtype[Any]]:
        """The function that a scalar definition is for operands of some dtypes, and the dtype of its result."""
        key = definition, tuple(map(np.dtype, dtypes))
        if key not in self.made:
            kinds = dict.fromkeys(map(type_name, dtypes))
            own = "_".join([name.strip("_"), *kinds])
            taken = {made for made, _ in self.made.values()}
            own = own if own not in taken else f"{own}_{len(taken)}"
            operands = [f"x{i}" for i in range(len(dtypes))] if len(dtypes) > 1 else ["x"]
            text, dtype = text_of(self, definition, list(zip(operands, dtypes, strict=True)))
            lines = [f"def {own}({', '.join(operands)}):", *(f"    {line}" for line in text)]
            self.functions[own] = ast.unparse(ast.parse("\n".join(lines))) + "\n"
            self.made[key] = own, dtype
        return self.made[key]

    def table(self, numbers: tuple[int, ...]) -> str:
        """The name of an array of int64."""
        return self.tables.setdefault(tuple(numbers), f"TABLE{len(self.tables)}")


def text_of(
    home: FunctionText, definition: Callable[..., Any], operands: Sequence[tuple[str, Any]]
) -> tuple[list[str], np.dtype[Any]]:
    """The lines of a function that computes a scalar definition, the last one its return, and the result's dtype.

    Raises
    ------
    TypeError : the definition mixes dtypes, branches on a value, or returns something that is not a value.
    """
    writing = StepWriting(home)
    values = [TextValue(writing, TextStep(name, atom=True), np.dtype(dtype)) for name, dtype in operands]
    result = definition(*values)
    if not isinstance(result, TextValue):
        raise TypeError(f"a scalar definition must return a value computed from its operands, not {result!r}")
    lines = writing.lines(StepPart(writing.order, result.step))
    return [*lines, f"return {read(result.step, bare=True)}"], result.dtype


class TextValue(ScalarValue):
    """One scalar as text: the step that computes it, and its numpy dtype."""

    __slots__ = ("_writing", "step")

    def __init__(self, writing: StepWriting, step: TextStep, dtype: np.dtype[Any]) -> None:
        self._writing, self.step, self.dtype = writing, step, dtype

    def __repr__(self) -> str:
        return f"TextValue({self.dtype}, {read(self.step)})"

    # ---------------------------------------------------------------- construction
    def _new(self, form: str, *operands: TextValue, dtype: Any = None) -> TextValue:
        step = TextStep(form, tuple(x.step for x in operands))
        self._writing.order.append(step)
        return TextValue(self._writing, step, self.dtype if dtype is None else np.dtype(dtype))

    def _wrapped(self, form: str, *operands: TextValue) -> TextValue:
        """An operation on integers, which Python makes wider."""
        narrow = self.dtype.kind in "iu" and self.dtype != np.int64
        return self._new(f"{self.dtype.name}({form})" if narrow else form, *operands)

    def constant(self, number: Any) -> TextValue:
        """Return ``number`` in this value's dtype, rounded once."""
        return TextValue(self._writing, TextStep(literal(number, self.dtype), atom=True), self.dtype)

    def _operation(self, sign: str, left: TextValue, right: TextValue) -> TextValue:
        return self._wrapped(f"{{0}} {sign} {{1}}", left, right)

    def __neg__(self) -> TextValue:
        return self._wrapped("-{0}", self)

    # ---------------------------------------------------------------- bits
    def __invert__(self) -> TextValue:
        return self._new("not {0}", self) if self.dtype == _BOOL else self._wrapped("~{0}", self)

    def __lshift__(self, count: Any) -> TextValue:
        return self._shift(count, "{0} << {1}", self.constant(0))

    def __rshift__(self, count: Any) -> TextValue:
        if self.dtype.kind == "u":
            return self.lshr(count)
        beyond = (self < 0).select(self.constant(-1), self.constant(0))
        return self._shift(count, "{0} >> {1}", beyond)

    def lshr(self, count: Any) -> TextValue:
        """Shift right, filling with zeros."""
        unsigned = f"uint{8 * self.dtype.itemsize}"
        return self._shift(count, f"{unsigned}({{0}}) >> {unsigned}({{1}})", self.constant(0))

    def _shift(self, count: Any, form: str, beyond: TextValue) -> TextValue:
        """Shift; a count outside [0, width) leaves nothing but fill."""
        width = 8 * self.dtype.itemsize
        other = self._coerce(count)
        if type(count) is int and 0 <= count < width:
            return self._shifted(form.replace("{1}", str(count)), self)
        inside = (other >= 0) & (other < width) if self.dtype.kind == "i" else other < width
        safe = inside.select(other, other.constant(0))
        return inside.select(self._shifted(form, self, safe), beyond)

    def _shifted(self, form: str, *operands: TextValue) -> TextValue:
        """A shift, whose result numba makes wider, or unsigned."""
        return self._new(f"{self.dtype.name}({form})", *operands)

    def bits(self) -> TextValue:
        """Reinterpret a float as a signed integer."""
        return self._cast({"f4": "int32", "f8": "int64"})

    def from_bits(self) -> TextValue:
        """Reinterpret an int32 or int64 as a float."""
        return self._cast({"i4": "float32", "i8": "float64"})

    def _cast(self, table: dict[str, str]) -> TextValue:
        target = table[self.dtype.str[1:]]
        return self._new(f"{self.dtype.name}({{0}}).view({target})", self, dtype=target)

    # ---------------------------------------------------------------- comparison and choice
    def _compare(self, sign: str, other: Any) -> TextValue:
        return self._new(f"{{0}} {sign} {{1}}", self, self._coerce(other), dtype=_BOOL)

    def select(self, x: Any, y: Any) -> TextValue:
        """Return ``x`` where this bool holds, else ``y``."""
        if self.dtype != _BOOL:
            raise TypeError(f"a condition must be bool, not {self.dtype}")
        typed = x if isinstance(x, TextValue) else y
        if not isinstance(typed, TextValue):
            raise TypeError("select needs a dtype: at least one of its two choices must be a value")
        left, right = typed._coerce(x), typed._coerce(y)
        return typed._new("{0} if {1} else {2}", left, self, right)

    def repeat_while(
        self, condition: Callable[[TextValue], TextValue], step: Callable[[TextValue], TextValue]
    ) -> TextValue:
        """Take steps from this value for as long as the condition holds."""
        made = self._new("", self)
        name = self._writing.variable("r")
        inner = TextValue(self._writing, TextStep(name, atom=True), self.dtype)
        parts = self._writing.part(condition, inner), self._writing.part(step, inner)
        own = {id(x) for part in parts for x in part.order}
        outer = (x for part in parts for y in (*part.order, part.result) for x in (y, *y.operands) if id(x) not in own)
        made.step.parts, made.step.name = parts, name
        # twice, so that what the loop reads from outside has a name before it
        made.step.operands += tuple(dict.fromkeys(x for x in outer if not x.atom)) * 2
        return made

    # ---------------------------------------------------------------- functions
    def _exact(self, name: str, *others: TextValue) -> TextValue:
        operands = ", ".join(f"{{{i}}}" for i in range(1 + len(others)))
        own = {"fabs": "abs", "fma": "fma"}.get(name, f"np.{name}")
        return self._new(f"{own}({operands})", self, *others)

    def beyond(self, x: TextValue, bound: float, definition: Callable[..., Any], *operands: TextValue) -> TextValue:
        """Return this value, but ``definition(x)`` where |x| > bound; of other operands if there are any."""
        given = operands or (x,)
        called, _ = self._writing.home.scalar(definition.__name__, definition, [z.dtype for z in given])
        arguments = ", ".join(f"{{{2 + i}}}" for i in range(len(given)))
        limit = literal(bound, x.dtype)
        return self._new(f"{called}({arguments}) if abs({{1}}) > {limit} else {{0}}", self, x, *given)

    def lookup(self, table: tuple[int, ...]) -> TextValue:
        """Return ``table[self]``."""
        return self._new(f"{self._writing.home.table(table)}[{{0}}]", self)

    def trunc_divide(self, other: Any) -> TextValue:
        """Integer division towards zero that never traps: x / 0 = 0 and INT_MIN / -1 = INT_MIN."""
        divisor = self._coerce(other)
        zero = divisor == 0
        if self.dtype.kind == "u":
            return zero.select(self.constant(0), self._wrapped("{0} // {1}", self, zero.select(1, divisor)))
        negate = divisor == -1
        safe = (zero | negate).select(1, divisor)
        floored = self._wrapped("{0} // {1}", self, safe)
        quotient = floored + ((floored < 0) & (floored * safe != self)).convert(self.dtype)
        return negate.select(-self, zero.select(0, quotient))

    def convert(self, dtype: Any) -> TextValue:
        """Convert to another dtype, see `common.compiler.primitives.convert`."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self
        if target == _BOOL:
            return self != 0
        if self._float and target.kind in "iu":
            return self._saturated(target)
        return self._new(f"{type_name(target)}({{0}})", self, dtype=target)

    def _saturated(self, target: np.dtype[Any]) -> TextValue:
        """Convert a float to integers: NaN to 0, out of range to the ends of the range."""
        info = np.iinfo(target)
        low, above = float(info.min), 2.0 ** (target.itemsize * 8 - (target.kind == "i"))
        inside = (self > low - 1) & (self < above) if info.min == 0 else (self >= low) & (self < above)
        whole = self._new(f"{target.name}({{0}})", inside.select(self, 0.0), dtype=target)
        return (self >= above).select(whole.constant(info.max), (self < low).select(whole.constant(info.min), whole))
