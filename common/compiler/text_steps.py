"""TextSteps of a scalar definition as lines of Python: a value that is used more than once gets a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_BOOL = np.dtype(np.bool_)
LONG = 90
"""Letters of an expression of which parts get names."""


def type_name(dtype: Any) -> str:
    """The name of a dtype in the text."""
    dtype = np.dtype(dtype)
    return "bool_" if dtype == _BOOL else dtype.name


def literal(number: Any, dtype: Any) -> str:
    """A number of a dtype, exactly."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        value = np.asarray(number).astype(dtype)[()]
    if dtype == _BOOL:
        return str(bool(value))
    if dtype.kind in "iu":
        return f"{dtype.name}({int(value)})"
    x = float(value)
    told = repr(x) if math.isfinite(x) else "np.nan" if math.isnan(x) else f"{'-' * (x < 0)}np.inf"
    return f"{dtype.name}({told})"


@dataclass(eq=False)
class TextStep:
    """One operation of a definition.

    Attributes
    ----------
    form : its text over `operands`, or the whole text of an `atom`.
    name : the variable that holds it, once it has one.
    parts : of a loop, which begins with its first operand: the steps of its condition, and of what follows.
    """

    form: str
    operands: tuple[TextStep, ...] = ()
    atom: bool = False
    name: str = ""
    parts: tuple[StepPart, ...] = ()


class StepPart(NamedTuple):
    """TextSteps in order, and the one that they are for."""

    order: list[TextStep]
    result: TextStep


class StepWriting:
    """Where the steps of a definition go as it runs: those of a loop's parts to lists of their own."""

    def __init__(self, home: Any) -> None:
        self.home = home
        self.order: list[TextStep] = []
        self.count = 0

    def part(self, definition: Callable[[Any], Any], x: Any) -> StepPart:
        """How a part of a loop uses a value."""
        outer, self.order = self.order, []
        try:
            return StepPart(self.order, definition(x).step)
        finally:
            self.order = outer

    def lines(self, part: StepPart) -> list[str]:
        """Assignments, in order, of values that are used more than once, or would make a long line."""
        inside = {id(step) for step in part.order}
        uses: dict[int, int] = {id(part.result): 1}
        waiting = [part.result]
        while waiting:
            for x in waiting.pop().operands:
                uses[id(x)] = uses.get(id(x), 0) + 1
                if uses[id(x)] == 1 and id(x) in inside:
                    waiting.append(x)
        lines: list[str] = []
        for step in part.order:
            if id(step) not in uses or step.atom:
                continue
            if step.parts:
                lines += self._loop(step)
                continue
            while len(written(step)) > LONG:
                inlined = [x for x in step.operands if not x.name and not x.atom and id(x) in inside]
                if not inlined:
                    break
                lines.append(self._named(max(inlined, key=lambda x: len(read(x)))))
            if uses[id(step)] > 1:
                lines.append(self._named(step))
        return lines

    def _named(self, step: TextStep) -> str:
        """Give a step a name: its assignment."""
        text = written(step)
        step.name = self.variable("t")
        return f"{step.name} = {text}"

    def variable(self, letter: str) -> str:
        """A new name."""
        self.count += 1
        return f"{letter}{self.count - 1}"

    def _loop(self, step: TextStep) -> list[str]:
        asked, following = step.parts
        before, body = self.lines(asked), self.lines(following)
        body.append(f"{step.name} = {read(following.result, bare=True)}")
        condition = read(asked.result, bare=True)
        if before:
            head, body = "while True:", [*before, f"if not ({condition}):", "    break", *body]
        else:
            head = f"while {condition}:"
        return [f"{step.name} = {read(step.operands[0], bare=True)}", head, *(f"    {line}" for line in body)]


def written(step: TextStep) -> str:
    """The operation of a step as an expression."""
    return step.form.format(*(read(x) for x in step.operands))


def read(step: TextStep, bare: bool = False) -> str:
    """A step where it is used: its name, or its expression, in brackets unless `bare`."""
    if step.name:
        return step.name
    if step.atom:
        return step.form
    text = written(step)
    return text if bare or _is_call(text) else f"({text})"


def _is_call(text: str) -> bool:
    """Whether an expression is one call or name, which needs no brackets."""
    head, bracket, _ = text.partition("(")
    if not head.replace(".", "").replace("_", "").isalnum():
        return False
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter in ")]" and depth == 0 and i < len(text) - 1:
            return False
    return bool(bracket) or text.isidentifier()
