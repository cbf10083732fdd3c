"""A scan as a scan over segments: the outer loop saves the carry of each, the inner one runs again."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from common.core.errors import ArgumentError
from common.core.tree import flatten, unflatten
from common.ops.shape.cat import cat
from common.ops.shape.view import reshape_
from common.tensor.base import TensorBase


def in_segments(
    scan: Callable[..., Any], f: Callable[..., Any], init: Any, xs: Any, count: Any, reverse: bool, size: Any
) -> Any:
    """``scan(f, init, xs)`` in segments of `size` iterations; those that are left over come last.

    Raises
    ------
    ArgumentError : the size is less than 1.
    """
    rows, structure = xs
    size = index(size)
    if size < 1:
        raise ArgumentError(f"scan: checkpoint is {size}; a segment has at least one iteration")
    segments = count // size
    whole = segments * size
    first = count - whole if reverse else 0

    def tree(leaves: list[TensorBase]) -> Any:
        return unflatten(structure, leaves)

    main = tree([_reshaped(x[first : first + whole], (segments, size)) for x in rows])
    rest = tree([x[:first] if reverse else x[whole:] for x in rows])
    carry, ys = scan(lambda c, x: scan(f, c, x, size, reverse), init, main, segments, reverse)
    carry, last = scan(f, carry, rest, count - whole, reverse)
    parts, y_structure = flatten(ys)
    joined = []
    for y, end in zip(parts, flatten(last)[0], strict=True):
        y = _reshaped(y, (whole,), 2)
        joined.append(cat([end, y] if reverse else [y, end], 0))
    return carry, unflatten(y_structure, joined)


def _reshaped(x: TensorBase, sizes: tuple[Any, ...], replaced: int = 1) -> Any:
    """A tensor with other sizes in place of its first ones."""
    return reshape_(x, new_shape=(*sizes, *tuple(x.shape)[replaced:]))
