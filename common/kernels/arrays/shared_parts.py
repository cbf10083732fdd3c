"""Kernels whose units of work do not depend on each other, and that threads share: text that such a kernel begins with.

The last int of such a kernel is 0. Where there are threads and enough work it calls itself once for each part: the int
is then how many parts there are, and a further one which of them it is.
"""

from __future__ import annotations

from common.compiler.loop_ir import STEP, Call, If, Let, Return, Run, Statement, text

__all__ = ["PARTS", "WHOLE", "in_parts", "parts"]

PARTS = 4
"""Parts that a kernel is cut into: one that a busy machine delays leaves some to the other threads."""
WHOLE = 0
"""The last int of a call for all of the work."""
_SHARED = 1 << 16
"""Elements that are read or written from which on threads share: one thread takes some 10 us for them."""


def in_parts(at: int, units: str, elements: str, x: str) -> str:
    """Lines of `parts`."""
    return text(parts(at, units, elements, x), STEP) + "\n"


def parts(at: int, units: str, elements: str, x: str) -> list[Statement]:
    """Statements that leave the work to threads, where that pays, or set the units to do: from `low` to before `high`,
    and the number of the ``part``, 0 if it is all of them.

    Parameters
    ----------
    at : which int is the last one.
    units, elements : how many there are, as expressions of args.
    x : a buffer.
    """
    shared = f"args[{at}] == {WHOLE} and {elements} >= {_SHARED} and there_are_helpers({x}) != 0"
    call = Run(Call("share_parts", ("bufs", "args", x, at, PARTS)))
    own = [
        Let("part", f"args[{at + 1}]"),
        Let("low", f"{units} * part // args[{at}]"),
        Let("high", f"{units} * (part + 1) // args[{at}]"),
    ]
    whole = [Let("part", "0"), Let("low", "0"), Let("high", units)]
    return [If(shared, [call, Return("0")]), *whole, If(f"args[{at}] != {WHOLE}", own)]
