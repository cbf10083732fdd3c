"""Definitions as LLVM IR text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

FEW = 6
"""Instructions that are written where they are needed: as a function they take longer to parse and to inline."""

FUNCTION = "(definition)"
"""The name of a definition in its text."""

KERNEL = "(kernel)"
"""The name of the kernel that calls a machine function, in the text of that."""

_NAME = re.compile(r'%"([^"]+)"')


class ScalarText(NamedTuple):
    """A scalar definition for operands of certain dtypes and lanes.

    Attributes
    ----------
    dtype, cost : of its result; how many instructions it has.
    symbols : names and texts of the functions that it calls.
    text : it as a function, which is named `FUNCTION`.
    parameters, lines, result : its operands, instructions and result if it has few instructions, else no lines.
    """

    dtype: str
    cost: int
    symbols: tuple[tuple[str, str], ...]
    text: str
    parameters: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] | None = None
    result: str = ""

    def write(self, register: Callable[[str], str], operands: Sequence[str]) -> str:
        """Write the instructions by `register`, which returns the register of the result of each; return the result."""
        known = dict(zip(self.parameters, operands, strict=True))

        def put(text: str) -> str:
            return _NAME.sub(lambda found: known[found[1]], text)

        for name, instruction in self.lines or ():
            known[name] = register(put(instruction))
        return put(self.result)


class MachineText(NamedTuple):
    """A `common.compiler.machine_functions.MachineFunction` for buffers of a dtype.

    Attributes
    ----------
    name, result : of the function, and its LLVM type.
    symbols : names and texts of it and of what it calls.
    """

    name: str
    result: str
    symbols: tuple[tuple[str, str], ...]
