"""Loop IR: what a kernel does, as loops, loads, scalar lets, reductions and stores; prints as its Python source.

Grammar::

    kernel    ::= buffers arguments statement*
    statement ::= let name expression | store place expression | loop var start stop step statement*
                | if condition statement* | while condition statement* | break | run function argument* | return status
    expression::= name | place | constant | call function expression*
    place     ::= buffer [ base + step * var ]

The printed source is both what `common.compiler.compile` compiles and plain Python, as which the tests
run it too (`tests.helpers.python_kernels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.compiler.literals import dtype_name, literal

STEP = "    "
"""By how much a body is indented."""


@dataclass(frozen=True, slots=True)
class Place:
    """One element of a buffer: ``buffer[base + step * var]``; base and var are names of ints or empty."""

    buffer: str
    base: str = ""
    var: str = ""
    step: str = ""

    def __str__(self) -> str:
        moving = f"{self.var} * {self.step}" if self.step else self.var
        return f"{self.buffer}[{' + '.join(filter(None, (self.base, moving))) or '0'}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number in a dtype, rounded once."""

    value: Any
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return literal(self.value, self.dtype)


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function, or a reduction over a row, applied to names, places and texts of ints."""

    function: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(slots=True)
class Let:
    """``name = value``; `dtype` is that of a value which is no load."""

    name: str
    value: Any
    dtype: np.dtype[Any] | None = None

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}{self.name} = {self.value}"


@dataclass(slots=True)
class Store:
    """``place = value``"""

    place: Place
    value: Any

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}{self.place} = {self.value}"


@dataclass(slots=True)
class Run:
    """A call for its effect on buffers."""

    call: Call

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}{self.call}"


@dataclass(slots=True)
class If:
    """``if condition:``"""

    condition: str
    body: list[Any]

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}if {self.condition}:"
        for statement in self.body:
            yield from statement.lines(indent + STEP)


@dataclass(slots=True)
class Return:
    """End the kernel with a status."""

    status: str

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}return {self.status}"


@dataclass(slots=True)
class Repeat:
    """``while condition:``"""

    condition: str
    body: list[Any]

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}while {self.condition}:"
        for statement in self.body:
            yield from statement.lines(indent + STEP)


@dataclass(slots=True)
class Break:
    """Leave the innermost loop."""

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        yield f"{indent}break"


@dataclass(slots=True)
class Loop:
    """``for var in range(start, stop, step):``; a loop without statements prints as nothing."""

    var: str
    stop: str
    body: list[Any] = field(default_factory=list)
    start: str = "0"
    step: str = "1"

    def lines(self, indent: str = "") -> Iterator[str]:
        """The statement as source."""
        if not self.body:
            return
        bounds = [self.stop] if self.start == "0" and self.step == "1" else [self.start, self.stop]
        if self.step != "1":
            bounds.append(self.step)
        yield f"{indent}for {self.var} in range({', '.join(bounds)}):"
        for statement in self.body:
            yield from statement.lines(indent + STEP)


@dataclass(slots=True)
class Kernel:
    """A function ``(bufs, args) -> status``.

    Attributes
    ----------
    buffers : dtype per slot; slot k is named ``b<k>``.
    arguments : number of int arguments; argument k is named ``n<k>``.
    """

    buffers: list[np.dtype[Any]]
    arguments: int
    body: list[Any]
    _text: str = field(default="", init=False, repr=False, compare=False)

    def source(self, name: str) -> str:
        """The text of the kernel under a name; equal kernels have equal text."""
        self._text = self._text or self._written()
        return f"def {name}{self._text}"

    def _written(self) -> str:
        lines = ["(bufs, args):"]
        # Registers of 512 bits pay for the polynomials of elementary functions, and cost nothing elsewhere.
        lines.append("    wide()")
        for slot, dtype in enumerate(self.buffers):
            lines.append(f"    b{slot} = buffer(bufs, {slot}, {dtype_name(dtype)})")
        lines += [f"    n{k} = args[{k}]" for k in range(self.arguments)]
        for statement in self.body:
            lines += statement.lines(STEP)
        lines.append("    return 0")
        return "\n".join(lines) + "\n"
