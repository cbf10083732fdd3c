"""Layouts of parts of values, and where divisions of a dimension into parts meet."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any

import numpy as np

from common.compiler.close_steps import CLOSE, NEAR
from common.core.sizes import Dim, hint, same
from common.core.spec import numel
from common.kernels.arrays.reducers import REDUCERS, SUM
from static.graph import Node
from static.lowering.ir.items import ArrayBuffer, Const, Item, Layout, Sizes, is_literal, size_key
from static.lowering.ir.program_values import is_dense

FEWEST = 256
"""Elements of an array for which a loop of its own is compiled: the kernel that copies is there already."""
MOST = 64
"""Parts of a value: what is done with it takes a step for each of them."""


def part(layout: Layout, dim: int, start: Any, size: Any) -> Layout:
    """`size` elements along a dimension from `start` on."""
    if is_literal(start, 0) and same(size, layout.shape[dim]):
        return layout
    shape = (*layout.shape[:dim], size, *layout.shape[dim + 1 :])
    if isinstance(layout.root, Const):
        return Layout(layout.root, 0, shape, (0,) * len(shape), False)
    return Layout(layout.root, layout.offset + start * layout.strides[dim], shape, layout.strides, False)


def seen(node: Node, layout: Layout, attrs: dict[str, Any]) -> Layout:
    """The layout behind a view that never copies."""
    assert node.op is not None
    placed = node.op.strided(layout.offset, layout.shape, layout.strides, **attrs)
    if isinstance(layout.root, Const):
        return Layout(layout.root, 0, placed[1], (0,) * len(placed[1]), False)
    offset, shape, strides = placed
    return Layout(layout.root, offset, shape, strides, is_dense(layout.root, offset, shape, strides))


def with_one(layout: Layout, dim: int, whole: Sizes) -> Layout:
    """A layout with a new dimension of size 1, along which others follow in a value of the sizes `whole`.

    Its sizes are those of the value, which may be told by other names than its own: so one loop may have them all.
    """
    strides = layout.strides or (0,) * len(layout.shape)
    shape, strides = (*whole[:dim], 1, *whole[dim + 1 :]), (*strides[:dim], 0, *strides[dim:])
    return Layout(layout.root, layout.offset, shape, strides, layout.dense)


def of_number(number: Const, shape: Sizes, dim: int, size: Any) -> Layout:
    """A part in which every element is a number."""
    return Layout(number, 0, (*shape[:dim], size, *shape[dim + 1 :]), (0,) * len(shape), False)


def some(dim: int, layouts: list[Layout]) -> tuple[int, list[Layout]] | None:
    """The parts that are not known to be empty, if there are not too many."""
    some = [layout for layout in layouts if not is_literal(layout.shape[dim], 0)]
    return (dim, some) if 0 < len(some) <= MOST else None


def one_dim(shape: Sizes, starts: Sizes, sizes: Sizes, steps: Sizes) -> tuple[int, Any, Any] | None:
    """The dimension along which a slice is a part, and how much lies before and behind it; None if there are more."""
    moved = [
        d
        for d, (n, start, size) in enumerate(zip(shape, starts, sizes, strict=True))
        if not (is_literal(start, 0) and same(size, n))
    ]
    if len(moved) > 1 or not shape or any(not is_literal(step, 1) for step in steps):
        return None
    dim = moved[0] if moved else 0
    rest = shape[dim] - starts[dim] - sizes[dim]
    return dim, starts[dim], known if type(known := size_key(rest)) is int else rest


def cuts(*divisions: Sequence[Any]) -> list[tuple[Any, list[tuple[int, Any]]]] | None:
    """Where several divisions of one size cut it: sizes, and in each of the divisions the part and the place in it.

    None where it is not known, without relying on the sizes of one call, which of two parts ends first.
    """
    indices, starts = [0] * len(divisions), list[Any]([0] * len(divisions))
    out: list[tuple[Any, list[tuple[int, Any]]]] = []
    while all(i < len(division) for i, division in zip(indices, divisions, strict=True)):
        left = [division[i] - start for division, i, start in zip(divisions, indices, starts, strict=True)]
        last = [i == len(division) - 1 for i, division in zip(indices, divisions, strict=True)]
        rests = next(
            (
                rests
                for first in left
                if None not in (rests := [_rest(n, first, is_last) for n, is_last in zip(left, last, strict=True)])
            ),
            None,
        )
        if rests is None:
            return None
        size = next(n for n, rest in zip(left, rests, strict=True) if is_literal(rest, 0))
        out.append((size, list(zip(indices, starts, strict=True))))
        for k, rest in enumerate(rests):
            done = is_literal(rest, 0) or all(last)
            indices[k], starts[k] = (indices[k] + 1, 0) if done else (indices[k], starts[k] + size)
    return out if all(i == len(division) for i, division in zip(indices, divisions, strict=True)) else None


def _rest(whole: Any, part: Any, is_last: bool) -> Any:
    """The rest of `whole` behind `part`; None if that may be negative. The last part contains all others."""
    rest = size_key(whole - part)
    if type(rest) is int:
        return rest if rest >= 0 else None
    return whole - part if is_last else None


def is_computed(layout: Layout, node: Node | None = None) -> bool:
    """Whether a layout is all of what an elementwise item makes, which stems from `node` if that is given."""
    maker = layout.root.maker if isinstance(layout.root, ArrayBuffer) and layout.dense else None
    return maker is not None and maker.kind == "map" and not maker.puts and node in (None, maker.node)


def is_put_by_loop(layout: Layout, steps: Sizes) -> bool:
    """Whether the elements of a part are written to their places, so far apart, by a loop, and not by a copy.

    What computes them writes them, by vectors or some steps further apart one by one. So do loops that read elements
    side by side, and write them between those of other arrays; a copy would move one after the other.
    """
    if is_computed(layout) and (not steps or 1 <= hint(steps[-1]) <= NEAR):
        return True
    own = [step for n, step in zip(layout.shape, layout.strides, strict=True) if not is_literal(n, 1)]
    close = bool(own) and is_literal(own[-1], 1) and 1 < hint(steps[-1]) <= CLOSE
    return close and hint(numel(layout.shape)) >= FEWEST


def is_zero(layout: Layout) -> bool:
    """Whether every element is known to be +0.0, or 0."""
    root = layout.root
    if not isinstance(root, Const) or isinstance(root.value, Dim):
        return False
    return root.value == 0 and copysign(1, root.value) > 0


def is_as_plus_zero(layout: Layout, dtype: np.dtype[Any]) -> bool:
    """Whether adding +0.0 to any element changes nothing: only -0.0 is changed, and no sum that begins with +0.0 is."""
    root = layout.root
    if root.dtype != dtype:
        return False
    if dtype.kind in "iu" or is_zero(layout):
        return True
    return isinstance(root, ArrayBuffer) and root.maker is not None and _adds_zero(root.maker)


def _adds_zero(item: Item) -> bool:
    if item.kind in ("rows", "cols"):
        return REDUCERS[item.function] is SUM and item.dtype == item.out.dtype
    numbers = [Layout(o.source, 0, (), (), False) for o in item.operands if isinstance(o.source, Const)]
    return item.kind == "map" and item.function == SUM.join and any(map(is_zero, numbers))
