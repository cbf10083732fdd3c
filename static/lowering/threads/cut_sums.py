"""Sums, products and extremes of whole arrays, cut for threads by the blocks of their definition.

S of an array is S of the list of S of its blocks of BLOCK elements (see `common.core.numerics`), wherever the blocks
are summed. So a kernel that threads share makes that list, with everything else that its loop does, and a second one,
of a thousandth of the elements, sums it and does what follows. A maximum of maxima is the maximum, NaN and zeros
included.
"""

from __future__ import annotations

from typing import Any

from common.compiler.loop_ir import Call, If, Let, Loop, Place, Store
from common.core.numerics import BLOCK
from common.kernels.arrays.mapped_sums import IN_LANES
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.lowering.codegen.build import Built
from static.lowering.codegen.loop_nest import Nest
from static.lowering.ir.kernel_memory import Scratch

_SHIFT = BLOCK.bit_length() - 1
TOTALS = {reducer.row: reducer.row for reducer in REDUCERS.values()}
TOTALS |= {f"block_{name}": SUM.row for name in IN_LANES}
"""The reducer of a block, and that of the list of results."""


def over_blocks(built: Built) -> tuple[list[Any], Loop, list[Any]] | None:
    """Statements before a loop over blocks, that loop, and what follows; None if nothing whole is reduced first."""
    nest = built.nest
    if nest.rows or nest.inner is None:
        return None
    body = [s for s in built.kernel.body if not isinstance(s, Loop) or s.body]
    first = next((i for i, s in enumerate(body) if isinstance(s, Loop)), len(body))
    head, rest = body[:first], body[first:]
    if not all(isinstance(s, (Let, Store)) for s in head):
        return None
    if not rest or rest[0].var != "k0":
        return _of_calls(nest, head, rest)
    before: list[Any] = []
    none: list[Any] = []
    for s in head:  # an array without elements has no blocks: its list has one, which is zero
        of_list = isinstance(s, Store) and isinstance(nest.bound[int(s.place.buffer[1:])], Scratch)
        (none if of_list else before).append(s)
    return before, rest[0], [*([If(f"{nest.size(nest.inner)} < 1", none)] if none else []), *rest[1:]]


def _of_calls(nest: Nest, head: list[Any], rest: list[Any]) -> tuple[list[Any], Loop, list[Any]] | None:
    """The same where functions reduce the whole array, before any loop."""
    assert nest.inner is not None
    size = nest.size(nest.inner)
    whole = [i for i, s in enumerate(head) if isinstance(s, Let) and _reduces(s.value, size)]
    if not whole:
        return None
    inside: list[Any] = [Let("k1", f"min(k0 + {BLOCK}, {size})")]
    after = [*head[whole[0] :], *rest]
    for i in whole:
        function, (buffer, base, _) = head[i].value.function, head[i].value.arguments
        dtype = nest.dtypes[int(buffer[1:])]
        if dtype.kind != "f":
            return None
        parts = nest.slot(nest.scratch(dtype, (nest.inner + BLOCK - 1) // BLOCK))
        value = Call(function, (buffer, "k0" if base == "0" else f"{base} + k0", "k1 - k0"))
        inside.append(Store(Place(parts, f"(k0 >> {_SHIFT})"), value))
        total = Call(TOTALS[function], (parts, "0", f"(({size} + {BLOCK - 1}) >> {_SHIFT})"))
        after[i - whole[0]] = Let(head[i].name, total, head[i].dtype)
    return head[: whole[0]], Loop("k0", size, inside, step=str(BLOCK)), after


def _reduces(value: Any, size: str) -> bool:
    return isinstance(value, Call) and value.function in TOTALS and value.arguments[2] == size


def bound_in(bound: list[Any], used: set[str]) -> list[Any]:
    """The slots of a kernel that uses some of another one's: other scratch memory stays with that one."""
    return [
        thing if f"b{i}" in used or not isinstance(thing, Scratch) else Scratch(thing.dtype, thing.dtype.itemsize)
        for i, thing in enumerate(bound)
    ]
