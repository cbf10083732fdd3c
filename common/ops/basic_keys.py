"""Basic keys of ints, slices, None and Ellipsis: one slice and one reshape, which are views."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import Attrs, apply
from common.core.errors import ArgumentError, IndexRangeError
from common.core.op import Op
from common.core.sizes import Dim
from common.ops.shape.slices import select_, slice_


def basic(x: Any, keys: tuple[Any, ...]) -> Any:
    """`x` at a key whose entries select by position alone."""
    if not mode.tracing and is_plain(keys):
        op, attrs = known_part(x.shape, hashable(keys))
    else:
        op, attrs = _part(place(x.shape, keys))
    return apply(op, (x,), attrs)


def hashable(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """A plain key with tuples for slices, which have no hash before Python 3.12."""
    return tuple([(bound(k.start), bound(k.stop), bound(k.step)) if type(k) is slice else k for k in keys])


def bound(x: Any) -> Any:
    """A bound of a slice, or an int of a key, as None, int or Dim: what has an `__index__` is an int.

    Raises
    ------
    ArgumentError : it is none.
    """
    if x is None or type(x) is int or isinstance(x, Dim):
        return x
    try:
        return index(x)
    except TypeError:
        raise ArgumentError(
            f"slice indices must be integers or None or have an __index__ method, not {type(x).__name__}"
        ) from None


@lru_cache(maxsize=4096)
def known_part(extents: tuple[int, ...], keys: tuple[Any, ...]) -> tuple[Op, Attrs]:
    """The view that a plain key stands for: op and attributes."""
    return _part(_known_place(extents, keys))


def _part(placed: tuple[Any, ...]) -> tuple[Op, Attrs]:
    starts, sizes, steps, dims = placed
    if dims is None:
        return slice_, Attrs(starts=starts, sizes=sizes, steps=steps)
    return select_, Attrs(starts=starts, sizes=sizes, steps=steps, dims=dims)


def is_plain(keys: tuple[Any, ...]) -> bool:
    """Whether a key holds nothing but Python's own ints, slices, None and Ellipsis."""
    return _PLAIN_KEYS.issuperset(map(type, keys))


def is_basic(k: Any) -> bool:
    """Whether an entry of a key selects by position alone."""
    if isinstance(k, slice):
        return not any(hasattr(type(b), "__op_priority__") for b in (k.start, k.stop, k.step))
    return k is None or k is Ellipsis or (isinstance(k, (int, np.integer, Dim)) and not isinstance(k, bool))


_PLAIN_KEYS = frozenset((int, slice, type(None), type(Ellipsis)))


@lru_cache(maxsize=4096)
def _known_place(extents: tuple[int, ...], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """`place` for sizes that are numbers and a hashable key."""
    return _place(extents, tuple(slice(*k) if type(k) is tuple else k for k in keys))


def place(extents: tuple[Any, ...], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Starts, sizes and steps of a basic key, and the dimensions that it keeps, None for a new one; None for all.

    Raises
    ------
    IndexRangeError : an int outside its dimension, too many indices, or more than one ellipsis.
    ArgumentError : a step that is not positive.
    """
    if mode.tracing or not is_plain(keys):
        return _place(extents, tuple([_in_ints(k) for k in keys]))
    return _known_place(extents, hashable(keys))


def _in_ints(k: Any) -> Any:
    """An entry of a basic key with Python's own ints."""
    if isinstance(k, slice):
        return slice(bound(k.start), bound(k.stop), bound(k.step))
    return k if k is Ellipsis else bound(k)


def _place(extents: tuple[Any, ...], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if used > len(extents):
        raise IndexRangeError(f"too many indices for tensor of dimension {len(extents)}")
    starts: list[Any] = []
    sizes: list[Any] = []
    steps: list[Any] = []
    dims: list[Any] = []
    seen = False

    def take(start: Any, size: Any, step: Any) -> None:
        starts.append(start)
        sizes.append(size)
        steps.append(step)

    for k in keys:
        if k is None:
            dims.append(None)
            continue
        if k is Ellipsis:
            if seen:
                raise IndexRangeError("an index can only have a single ellipsis ('...')")
            seen = True
            for _ in range(len(extents) - used):
                dims.append(len(starts))
                take(0, extents[len(starts)], 1)
            continue
        extent = extents[len(starts)]
        if isinstance(k, slice):
            start, size, step = _slice_range(k, extent)
            dims.append(len(starts))
            take(start, size, step)
        else:
            if k < -extent or k >= extent:
                raise IndexRangeError(f"index {k} is out of bounds for dimension {len(starts)} with size {extent}")
            take(k + extent if k < 0 else k, 1, 1)
    for n in extents[len(starts) :]:
        dims.append(len(starts))
        take(0, n, 1)
    plain = all(isinstance(k, slice) or k is Ellipsis for k in keys)
    return tuple(starts), tuple(sizes), tuple(steps), None if plain else tuple(dims)


def _slice_range(k: slice, extent: Any) -> tuple[Any, Any, Any]:
    """Start, size and step of a slice over a dimension."""
    step = 1 if k.step is None else k.step
    if step <= 0:
        raise ArgumentError("step must be greater than zero")
    if k.start is None and k.stop is None and step == 1:
        return 0, extent, 1
    start = 0 if k.start is None else k.start
    stop = extent if k.stop is None else k.stop
    start = _clip(start + extent if start < 0 else start, extent)
    stop = _clip(stop + extent if stop < 0 else stop, extent)
    size = (stop - start + step - 1) // step if stop >= start else 0  # a slice that becomes empty is no other case
    return start, size, step


def _clip(index: Any, extent: Any) -> Any:
    if index < 0:
        return 0
    return extent if index > extent else index
