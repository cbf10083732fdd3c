"""Elements a few places apart, such as the columns of a narrow matrix, or in reversed order: a loop for the distances
that they have now.

Vectors hold all elements in between if the text says how far they are apart, and are turned round if that is -1. So a
kernel begins with a second form, for the distances of the traced call::

    if n0 == 4:
        for c in range(n1):
            t1 = b0[c * 4]
            t2 = b0[n2 + c * 4]
            ...
        return 0
"""

from __future__ import annotations

from typing import Any

from common.compiler.close_steps import CLOSE
from common.core.numerics import LANES
from common.core.sizes import hint
from static.lowering.codegen.build import build
from static.lowering.codegen.loop_nest import InnerNest, Nest
from static.lowering.groups import Group
from static.lowering.ir.items import size_key

WRITTEN = 64
"""Steps up to which elements that take much computing are written by vectors: each goes to its place by itself."""
EACH = 4
"""Operations for each such element, of which vectors save more than that takes."""


def close_form(group: Group, escaping: set[int], nest: Nest) -> tuple[dict[int, int], list[Any]] | None:
    """Distances of the traced call by their arguments, and the form for them; None if none is short or negative."""
    if nest.inner is None or hint(nest.inner) < LANES:
        return None
    written = sum(item.window is not None for item in group.items)
    most = WRITTEN if len(group.items) >= EACH * written else CLOSE
    known: dict[Any, int] = {}
    certain: dict[int, int] = {}
    for item in group.items:
        for access in item.accesses if item.window is None else [*item.accesses, item.window]:
            step = nest.strides(access.strides)[1]
            last = most if access is item.window else CLOSE
            if (2 <= hint(step) <= last or hint(step) == -1) and size_key(step) not in known:
                known[size_key(step)] = hint(step)
                certain[nest.argument(step)] = hint(step)
    if not known:
        return None
    return certain, build(group, escaping, part=InnerNest(group, nest, known)).kernel.body


__all__ = ["close_form"]
