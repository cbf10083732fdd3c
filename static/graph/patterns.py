"""Parts of a program that differ in their operands only: one pattern, and the operands of its copies."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.op import Op
from common.core.spec import Spec
from static.graph import Source

Key = tuple[int, int]


class Line(NamedTuple):
    """A node of a pattern: what its copies share, and which of the values at hand they read."""

    op: Op
    operands: list[int]
    attrs: dict[str, Any]
    specs: list[Spec]
    source: Source
    scope: str


class Pattern(NamedTuple):
    """A recorded part of a program, to be repeated.

    Attributes
    ----------
    first, last : ids of its first and its last node.
    given : keys of the values with which it began.
    outside : values and numbers that it reads besides.
    lines : its nodes. At hand are the values given, those outside, and the results of the lines before.
    results : which of these its results are.
    """

    first: int
    last: int
    given: list[Key]
    outside: list[Any]
    lines: list[Line]
    results: dict[str, int]


class Copy(NamedTuple):
    """Nodes that follow from a pattern and the values with which they begin."""

    pattern: Pattern
    given: list[Key]
