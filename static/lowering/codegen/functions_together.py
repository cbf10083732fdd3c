"""Elementary functions of numbers that do not need each other, by vectors.

An iteration over numbers takes some 20 instructions for each exponential. Of several, the arguments are laid side by
side into memory, a loop goes over them, and the results are read back::

    b9[0] = t4
    b9[1] = t9
    ...
    for c in range(9):
        e = b9[c]
        f = exp(e)
        b9[c] = f
    t5 = b9[0]
    t10 = b9[1]
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.compiler.loop_ir import Call, Let, Loop, Place, Store
from static.lowering.codegen.scalar_blocks import BLOCK_ITERATIONS, is_costly, names_of

FEWEST = 4
"""Functions that take longer one by one than what is laid into memory and read."""

Statements = list[Any]


def together(statements: Sequence[Any], slot: Callable[[np.dtype[Any]], str]) -> Statements:
    """The statements of an iteration, with equal functions of independent numbers in one loop each.

    Parameters
    ----------
    slot : names memory for `BLOCK_ITERATIONS` numbers of a dtype.
    """
    depth: dict[str, int] = {}
    plain, costly = dict[int, Statements](), dict[int, dict[Any, list[Let]]]()
    for x in statements:
        own = max((depth.get(name, 0) for name in names_of(x.value)), default=0)
        if isinstance(x, Let) and _is_function(x):
            costly.setdefault(own, {}).setdefault((x.value.function, x.dtype), []).append(x)
            own += 1
        else:
            plain.setdefault(own, []).append(x)
        if isinstance(x, Let):
            depth[x.name] = own
    if not any(_is_group(found) for groups in costly.values() for found in groups.values()):
        return list(statements)
    made: Statements = []
    for own in range(1 + max([*plain, *costly])):
        made += plain.get(own, [])
        for (function, dtype), found in costly.get(own, {}).items():
            made += _loop(function, dtype, found, slot(dtype)) if _is_group(found) else found
    return made


def _is_function(x: Let) -> bool:
    """Whether a statement computes an elementary function of one number, which has a name."""
    one = isinstance(x.value, Call) and len(x.value.arguments) == 1 and isinstance(x.value.arguments[0], str)
    return one and x.dtype is not None and is_costly(x)


def _is_group(found: Sequence[Let]) -> bool:
    return FEWEST <= len(found) <= BLOCK_ITERATIONS


def _loop(function: str, dtype: np.dtype[Any], found: Sequence[Let], slot: str) -> Statements:
    places = [Place(slot, str(k) if k else "") for k in range(len(found))]
    each = Place(slot, "", "c")
    return [
        *(Store(place, x.value.arguments[0]) for place, x in zip(places, found, strict=True)),
        Loop("c", str(len(found)), [Let("e", each), Let("f", Call(function, ("e",)), dtype), Store(each, "f")]),
        *(Let(x.name, place, dtype) for place, x in zip(places, found, strict=True)),
    ]


__all__ = ["together"]
