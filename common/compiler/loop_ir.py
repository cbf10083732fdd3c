"""Loop IR: a kernel as loops, loads, scalar lets, reductions and stores; prints as its Python source.

Grammar::

    kernel    ::= buffers arguments statement*
    statement ::= let name expression | store place expression | loop var start stop step statement*
                | if condition statement* | while condition statement* | break | run function argument* | return status
    expression::= name | place | constant | call function expression* | place if condition else (constant | place)
    place     ::= buffer [ base + step * var + beside ]

The eager engine, the optimisers and the compiler write their loops in it. The printed source is both what
`common.compiler.compile` compiles and plain Python, as which the tests run it too (`tests.helpers.python_kernels`).
Classes are written out: `dataclass` would take longer than the first ops of an eager script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from common.compiler.literals import dtype_name, literal

STEP = "    "
"""By how much a body is indented."""


class Place:
    """One element of a buffer: ``buffer[base + step * var + beside]``; each is a name or number, or empty."""

    __slots__ = ("base", "beside", "buffer", "step", "var")

    def __init__(self, buffer: str, base: str = "", var: str = "", step: str = "", beside: str = "") -> None:
        self.buffer, self.base, self.var, self.step, self.beside = buffer, base, var, step, beside

    def __str__(self) -> str:
        moving = f"{self.var} * {self.step}" if self.step else self.var
        return f"{self.buffer}[{' + '.join(filter(None, (self.base, moving, self.beside))) or '0'}]"

    def __eq__(self, other: object) -> bool:
        return type(other) is Place and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Guarded:
    """The element at a place where a condition holds, elsewhere a constant or another element: that alone is read.

    The place exists where `holds`, a condition, does, or where a variable is from `start` on and before `stop`; what is
    empty asks nothing. In its place may stand the name of an element of the row.
    """

    __slots__ = ("holds", "outside", "place", "start", "stop", "var")

    def __init__(
        self,
        place: Place | str,
        outside: Constant | Place,
        holds: str = "",
        var: str = "",
        start: str = "",
        stop: str = "",
    ) -> None:
        self.place, self.outside, self.holds, self.var, self.start, self.stop = place, outside, holds, var, start, stop

    def __str__(self) -> str:
        tests = self.holds, self.start and f"{self.var} >= {self.start}", self.stop and f"{self.var} < {self.stop}"
        return f"{self.place} if {' and '.join(filter(None, tests))} else {self.outside}"


class Constant:
    """A number in a dtype, rounded once."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: Any, dtype: np.dtype[Any]) -> None:
        self.value, self.dtype = value, dtype

    def __str__(self) -> str:
        return literal(self.value, self.dtype)


class Call:
    """A scalar function, or a reduction over a row, applied to names, places and texts of ints."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: str, arguments: Sequence[Any]) -> None:
        self.function, self.arguments = function, tuple(arguments)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


def replaced(value: Any, place: Callable[[Place], Any], name: Callable[[str], str]) -> Any:
    """An expression of calls with other places and names."""
    match value:
        case Place():
            return place(value)
        case Call():
            return Call(value.function, tuple([replaced(x, place, name) for x in value.arguments]))
        case str():
            return name(value)
    return value


def text(statements: Iterable[Any], indent: str = "") -> str:
    """Statements as source, for kernels that are templates."""
    return "\n".join(line for statement in statements for line in statement.lines(indent))


class Statement:
    """A line of source, or one that ends in a colon and the body below it."""

    __slots__ = ("body",)
    body: list[Any]

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}{self}"
        for statement in getattr(self, "body", ()):
            yield from statement.lines(indent + STEP)


class Let(Statement):
    """``name = value``; `dtype` is that of a value which is no load."""

    __slots__ = ("dtype", "name", "value")

    def __init__(self, name: str, value: Any, dtype: np.dtype[Any] | None = None) -> None:
        self.name, self.value, self.dtype = name, value, dtype

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class Store(Statement):
    """``place = value``"""

    __slots__ = ("place", "value")

    def __init__(self, place: Place, value: Any) -> None:
        self.place, self.value = place, value

    def __str__(self) -> str:
        return f"{self.place} = {self.value}"


class Run(Statement):
    """A call for its effect on buffers."""

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call = call

    def __str__(self) -> str:
        return str(self.call)


class Return(Statement):
    """End the kernel with a status."""

    __slots__ = ("status",)

    def __init__(self, status: str) -> None:
        self.status = status

    def __str__(self) -> str:
        return f"return {self.status}"


class Break(Statement):
    """Leave the innermost loop."""

    __slots__ = ()

    def __str__(self) -> str:
        return "break"


class If(Statement):
    """``if condition:``"""

    __slots__ = ("condition",)

    def __init__(self, condition: str, body: list[Any]) -> None:
        self.condition, self.body = condition, body

    def __str__(self) -> str:
        return f"if {self.condition}:"


class Repeat(Statement):
    """``while condition:``"""

    __slots__ = ("condition",)

    def __init__(self, condition: str, body: list[Any]) -> None:
        self.condition, self.body = condition, body

    def __str__(self) -> str:
        return f"while {self.condition}:"


class Loop(Statement):
    """``for var in range(start, stop, step):``; a loop without statements prints as nothing."""

    __slots__ = ("start", "step", "stop", "var")

    def __init__(self, var: str, stop: str, body: list[Any] | None = None, start: str = "0", step: str = "1") -> None:
        self.var, self.stop, self.start, self.step = var, stop, start, step
        self.body = [] if body is None else body

    def __str__(self) -> str:
        bounds = [self.stop] if self.start == "0" and self.step == "1" else [self.start, self.stop]
        return f"for {self.var} in range({', '.join([*bounds, *([] if self.step == '1' else [self.step])])}):"

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        return super().lines(indent) if self.body else iter(())


class Kernel:
    """A function ``(bufs, args) -> status``.

    Attributes
    ----------
    buffers : dtype per slot; slot k is named ``b<k>``.
    arguments : number of int arguments; argument k is named ``n<k>``.
    long : of how many instructions an elementary function is for which several vectors side by side are worth their
        code, where loops over columns are long; else 0.
    apart : whether its results lie in no operand's memory, so that elements may be written twice.
    first : the arguments for which its first form is, by their positions, see `with_form`.
    """

    __slots__ = ("_text", "apart", "arguments", "body", "buffers", "first", "long")

    def __init__(
        self, buffers: Sequence[np.dtype[Any]], arguments: int, body: list[Any], long: int = 0, apart: bool = False
    ) -> None:
        self.buffers, self.arguments, self.body, self.long, self._text = buffers, arguments, body, long, ""
        self.apart = apart
        self.first: dict[int, int] = {}

    def with_form(
        self, buffers: Sequence[np.dtype[Any]], arguments: int, first: dict[int, int], body: list[Any], long: int
    ) -> Kernel:
        """Return the kernel with more buffers and arguments, and a first form for certain ones: ``if n0 == 3:``."""
        condition = " and ".join(f"n{argument} == {number}" for argument, number in first.items())
        made = Kernel(buffers, arguments, [If(condition, [*body, Return("0")]), *self.body], long)
        made.first = first
        return made

    def source(self, name: str) -> str:
        """The text of the kernel under a name; equal kernels have equal text."""
        self._text = self._text or self._written()
        return f"def {name}{self._text}"

    def _written(self) -> str:
        lines = ["(bufs, args):"]
        # Registers of 512 bits pay for the polynomials of elementary functions, and cost nothing elsewhere.
        lines.append(f"    wide({f'{self.long}, True' if self.apart else self.long or ''})")
        for slot, dtype in enumerate(self.buffers):
            lines.append(f"    b{slot} = buffer(bufs, {slot}, {dtype_name(dtype)})")
        lines += [f"    n{k} = args[{k}]" for k in range(self.arguments)]
        for statement in self.body:
            lines += statement.lines(STEP)
        lines.append("    return 0")
        return "\n".join(lines) + "\n"


def lengthened(source: str, long: int) -> str:
    """A kernel for longer loops: with another number in place of a `Kernel.long` of 0."""
    return source.replace("wide()", f"wide({long})", 1).replace("wide(0, ", f"wide({long}, ", 1)


def form_of(source: str, first: bool) -> str:
    """One of the forms of a kernel that `Kernel.with_form` has made, as a kernel that does not serve the other's sizes.

    Both take the same arguments.  A plan knows which of them it needs, and the other one takes as long to compile.
    """
    head, _, forms = source.partition("\n    if ")
    form, end, others = forms.partition("\n        return 0\n")
    return f"{head}\n    if {form}{end}    return 1\n" if first else f"{head}\n{others}"
