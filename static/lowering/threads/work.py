"""How long kernels take, by a rough count, and whether their loops are worth cutting for threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from common.core.spec import numel
from static.lowering.codegen.row_stages import is_cheap
from static.lowering.groups import Group
from static.lowering.ir.items import Item

SMALL_ELEMENTS = 1 << 14
"""Spaces known to be smaller than this are not cut: waking a thread takes longer than their loops."""


def may_be_large(group: Group) -> bool:
    """Whether a group may have so many elements that cutting it pays; True where sizes are not known yet."""
    count = numel(group.dims)
    return not isinstance(count, int) or count >= SMALL_ELEMENTS


def picoseconds(groups: Sequence[Group]) -> Any:
    """About how long a kernel takes in one thread, by elements touched and elementary functions: an int or a Dim."""
    return sum(_of_item(item) for group in groups for item in group.items)


def _of_item(item: Item) -> Any:
    if item.kind == "native":  # a product: 50 multiplications per nanosecond in float32
        return sum(math.prod(call.ints[:4]) * item.dtype.itemsize * 5 for call in item.calls)
    return numel(item.dims) * (item.out.dtype.itemsize * (20 if is_cheap(item) else 125))
