"""Refusals: messages to a program that asks a trace for values that only a run knows."""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import ItemsView, Iterator, Mapping, Set, ValuesView
from typing import Any

from common.core.errors import ArgumentError, TraceError
from common.core.source_lines import locate, user_frame
from common.tensor.base import TensorBase
from static.graph import Source
from static.tracing.tracer import Tracer

#: Containers in which values could hide, where a compiled function cannot put new ones.
_OTHER = (Iterator, Set, Mapping, ValuesView, ItemsView, deque)


def refuse_hidden(name: str, result: Any) -> None:
    """Refuse a part of a function's result that is no tensor but may hold some.

    Raises
    ------
    ArgumentError : it is a set, a view of a dictionary or the like with a traced value in it, or an iterator.
    """
    if isinstance(result, _OTHER):
        values = result.values() if isinstance(result, Mapping) else result
        if isinstance(result, Iterator) or any(isinstance(x, Tracer) for x in values):
            raise ArgumentError(
                f"{name} returns a {type(result).__name__}, whose values only its trace has; return them in tuples, "
                "lists or dictionaries"
            )


class Refusals:
    """Errors of a trace that name the user's line and the way out.

    Attributes
    ----------
    name : of the traced function.
    decide : what answers instead, see `static.tracing.decisions`.
    """

    name: str
    decide: Any

    def _source(self) -> Source:
        return locate(*user_frame(3))

    def refuse_value(self, x: TensorBase) -> None:
        """Explain that a traced value has no elements yet."""
        file, line, function = self._source()
        code = linecache.getline(file, line).strip()
        made = x.payload.node.source if isinstance(x, Tracer) else None
        if self.decide is not None and self.decide.follows:
            raise TraceError(
                f"{file}:{line} in {function}: `{code}` needs the elements of a value that {self.name} computes inside "
                "a loop, a branch or a backward pass, where one trace stands for all runs: use cond, while_loop or "
                "where(condition, a, b) there"
            )
        what = f"a value of {x.payload.spec} made at {made[0]}:{made[1]}" if made else "a captured tensor"
        raise TraceError(
            f"{file}:{line} in {function}: `{code}` needs the elements of {what}, but {self.name} is being traced and "
            "they exist only when the compiled program runs. A Python `if`, `while`, int(), float() or .item() on a "
            "traced value cannot be recorded: use cond, while_loop or where(condition, a, b), return "
            "the value and decide outside, or pass what decides as a bool argument, which is static. Or let "
            'function(control_flow="guard") trace each path when it first occurs, or "convert" rewrite if and loops.'
        )

    def no_text(self, x: TensorBase, spec: str) -> TraceError:
        """The error for a traced number that is to become text, which would be that of the traced call for ever."""
        file, line, function = self._source()
        return TraceError(
            f"{file}:{line} in {function}: a traced number cannot be formatted ({spec!r}) in {self.name}: the text "
            "would be made once per path, not once per call; float(x) fixes the number and traces a path for each value"
        )

    def refuse_size(self, function: str, instead: str) -> None:
        """Explain that the size of a result would depend on the elements.

        Raises
        ------
        TraceError : always.
        """
        file, line, place = self._source()
        raise TraceError(
            f"{file}:{line} in {place}: {function}(): the size of the result depends on the data, but {self.name} is "
            f"being traced, where sizes are fixed before there are elements: {instead}"
        )

    def refuse_data(self, x: TensorBase) -> None:
        """Explain how state is written inside a traced function.

        Raises
        ------
        TraceError : always.
        """
        file, line, function = self._source()
        code = linecache.getline(file, line).strip()
        raise TraceError(
            f"{file}:{line} in {function}: `{code}` replaces the array of a tensor while {self.name} is being traced, "
            "which the compiled program cannot repeat. Write to the tensor instead: `with no_grad(): "
            "p.copy_(value)`, `p.sub_(...)`, `p.add_(...)`."
        )
