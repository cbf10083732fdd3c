"""Operands that do not lie in order: how loops read them, and fast copies of them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from common.core.shapes import contiguous_strides
from common.evaluate import kernels
from common.kernels.arrays.copying import (
    LONG,
    copy_args,
    copy_source,
    interleaved_source,
    merge_dims,
    stepped_source,
)

_LIMIT = 8192
FEW = 8
"""Rows side by side of which fewer are read one by one, in steps, and not turned together."""
_MUCH = 8192
"""Bytes of a row from which on the C library copies it as fast as a loop."""
WORTH = 4096
"""Elements from which on a loop for rows at a distance is worth its compilation: fewer are copied in order."""


@lru_cache(maxsize=_LIMIT)
def rows_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int | None] | None:
    """How many elements follow each other, and how far one such row is from the next; None if that varies.

    Where one element fills each row and these elements follow each other, None stands for the distance.
    """
    columns, d = 1, len(shape)
    while d and (shape[d - 1] == 1 or strides[d - 1] == 0):
        d -= 1
        columns *= shape[d]
    if columns > 1:
        step = itemsize
        for n, stride in zip(reversed(shape[:d]), reversed(strides[:d]), strict=True):
            if n != 1 and stride != step:
                return None
            step *= n
        return (columns, None) if d else None
    columns, d = 1, len(shape)
    while d and (shape[d - 1] == 1 or strides[d - 1] == columns * itemsize):
        d -= 1
        columns *= shape[d]
    if not d or strides[d - 1] % itemsize:
        return None
    distance, rows = strides[d - 1], 1
    for n, stride in zip(reversed(shape[:d]), reversed(strides[:d]), strict=True):
        if n != 1 and stride != rows * distance:
            return None
        rows *= n
    return columns, distance // itemsize


def lies_apart(op: Any, form: Any, attrs: Any) -> bool:
    """Whether a view of an array in order shows elements of which no two follow each other."""
    shape, _ = form
    placed = None if 0 in shape else op.strided(0, tuple(shape), contiguous_strides(tuple(shape)), **attrs)
    if placed is None:
        return False
    lengths, steps = merge_dims(placed[1], placed[2])
    return bool(lengths) and steps[-1] > 1


def dense(x: np.ndarray) -> np.ndarray:
    """An array in order."""
    return x if x.flags.c_contiguous else copied(x, x.shape, x.dtype)


def all_dense(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Arrays in order; one that comes twice is copied once."""
    made = {key: dense(x) for key, x in {id(x): x for x in arrays}.items()}
    return [made[id(x)] for x in arrays]


def copied(x: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A copy of an array that is not contiguous, or is repeated to `shape`."""
    out = np.empty(shape, dtype)
    if x.shape == shape and out.size >= LONG and x.flags.aligned:
        _way_of_copying(shape, x.strides, dtype)(x, out)
    else:
        np.copyto(out, x)
    return out


@lru_cache(maxsize=_LIMIT)
def reshaped(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, new_shape: tuple[int, ...]
) -> Callable[[np.ndarray], Any] | None:
    """A copy in order, under another shape, of arrays that lie so; it gives None for other ones. None for odd strides.

    Small copies take the loop too: it needs a third of numpy's time.
    """
    size = dtype.itemsize
    if any(s % size for s in strides) or not prod(shape):
        return None
    ints, empty = copy_args(shape, 0, [s // size for s in strides]), np.empty
    loop = kernels.compiled(copy_source(dtype), "copy")
    way = _way_of_copying(shape, strides, dtype) if prod(shape) >= WORTH else None

    def run(x: np.ndarray) -> Any:
        if x.strides != strides or x.shape != shape or x.dtype != dtype or not x.flags.aligned:
            return None
        out = empty(new_shape, dtype)
        if way is None:
            loop(x, out, *ints)
        else:
            way(x, out.reshape(shape))
        return out

    return run


@lru_cache(maxsize=_LIMIT)
def _way_of_copying(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype
) -> Callable[[np.ndarray, np.ndarray], Any]:
    """How arrays of one form are copied in order; numpy goes backwards, in steps, and across rows one by one, and calls
    the C library for each row.
    """
    size = dtype.itemsize
    last, columns, many = strides[-1], shape[-1], prod(shape) >= WORTH
    if many and not any(s % size for s in strides):
        (*lengths, across), (*apart, step) = merge_dims(shape, strides)
        few = len(lengths) <= 2 and min([n for n, s in zip(lengths, apart, strict=True) if s == size], default=1) < FEW
        near = step in (2 * size, 3 * size, 4 * size) or (step == size and across * size <= _MUCH)
        if few and near and across >= LONG:
            steps = kernels.compiled(stepped_source(dtype, step // size), "stepped_rows")
            ints = (*[1, 1, *lengths][-2:], across, *[s // size for s in [0, 0, *apart][-2:]])
            return lambda x, out: steps(x, out, *ints)
        if 0 < len(lengths) <= 2 and across < FEW + (size == 1) and apart[-1] == size and lengths[-1] >= LONG:
            meet = kernels.compiled(interleaved_source(dtype, across), "interleaved")
            places = (*[1, *lengths][-2:], [0, *apart][-2] // size, step // size)
            return lambda x, out: meet(x, out, *places)
    if many and abs(last) != size and size in map(abs, strides) and not any(s % size for s in strides):
        ways = tuple([slice(None, None, -1 if s == -size else 1) for s in strides])
        forward = [abs(s) if s == -size else s for s in strides]
        to = [d if w.step == 1 else -d for d, w in zip(contiguous_strides(shape), ways, strict=True)]
        merged = [*zip(*merge_dims(shape, [s // size for s in forward], to), strict=True)]
        units = [d for d, (n, step, _) in enumerate(merged[:-1]) if step == 1 and n >= FEW]
        if units:  # these rows are turned, whatever lies between them and the last dimension
            merged.insert(-1, merged.pop(units[0]))
        sizes, apart_by, places = zip(*merged, strict=True)
        args = copy_args(sizes, 0, apart_by, 0, places)
        copy = kernels.compiled(copy_source(dtype), "copy")
        return lambda x, out: copy(x[ways], out[ways], *args)
    if many and columns >= LONG and last == -size and not any(s % size for s in strides):
        args, copy = copy_args(shape, 0, [s // size for s in strides]), kernels.compiled(copy_source(dtype), "copy")
        return lambda x, out: copy(x, out, *args)
    of_numpy = last == size and columns * size > _MUCH
    if many and not of_numpy and not any(s % size for s in strides):
        args, copy = copy_args(shape, 0, [s // size for s in strides]), kernels.compiled(copy_source(dtype), "copy")
        return lambda x, out: copy(x, out, *args)
    return lambda x, out: np.copyto(out, x)


def joined(parts: Sequence[np.ndarray], shape: tuple[int, ...], dtype: np.dtype, dim: int) -> np.ndarray:
    """Arrays of one dtype, one after the other along a dimension."""
    out, at = np.empty(shape, dtype), 0
    if out.size < WORTH or not all(x.dtype == dtype and x.flags.aligned for x in parts):
        np.concatenate(parts, dim, out=out)
        return out
    for x in parts:
        n = x.shape[dim]
        if x.size:
            _way_of_joining(x.shape, x.strides, shape, dim, dtype)(x, out, at)
        at += n
    return out


@lru_cache(maxsize=_LIMIT)
def _way_of_joining(
    shape: tuple[int, ...], strides: tuple[int, ...], whole: tuple[int, ...], dim: int, dtype: np.dtype
) -> Callable[[np.ndarray, np.ndarray, int], Any]:
    """How arrays of one form are copied to what begins somewhere along a dimension of a larger one in order."""
    size, steps = dtype.itemsize, contiguous_strides(whole)
    before = (slice(None),) * dim

    def by_numpy(x: np.ndarray, out: np.ndarray, at: int) -> None:
        np.copyto(out[(*before, slice(at, at + shape[dim]))], x)

    lengths, source, target = merge_dims(shape, strides, [s * size for s in steps])
    if any(s % size for s in strides) or not lengths or (source[-1], target[-1]) != (size, size):
        return by_numpy
    if lengths[-1] * size > _MUCH:
        return by_numpy
    ndim, first, _, *rest = copy_args(shape, 0, [s // size for s in strides], 0, steps)
    copy = kernels.compiled(copy_source(dtype), "copy")
    return lambda x, out, at: copy(x, out, ndim, first, at * steps[dim], *rest)


def overwrite(target: np.ndarray, source: np.ndarray) -> None:
    """Write an array to the memory of another one, as numpy does; a large one by the loops that copy."""
    if target.size >= WORTH and source.shape == target.shape and source.dtype == target.dtype:
        if target.flags.behaved and source.flags.aligned and not np.may_share_memory(target, source):
            return write(target, source)
    target[...] = source
    return None


def write(target: np.ndarray, source: np.ndarray) -> None:
    """Write an array to the memory of another one of its form, which lies apart in any way."""
    order, way = _way_of_writing(target.shape, target.strides, source.strides, target.dtype)
    way(source.transpose(order), target.transpose(order))


@lru_cache(maxsize=_LIMIT)
def _way_of_writing(
    shape: tuple[int, ...], to: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype
) -> tuple[tuple[int, ...], Callable[[np.ndarray, np.ndarray], Any]]:
    """The order of dimensions in which a target lies, and how arrays of one form are copied to it in that order.

    The kernel reads rows of the source or turns them; numpy does what has steps between elements of the target.
    """
    order, size = tuple(sorted(range(len(shape)), key=lambda d: -abs(to[d]))), dtype.itemsize
    sizes, source, target = (tuple([z[d] for d in order]) for z in (shape, strides, to))
    if target == tuple([s * size for s in contiguous_strides(sizes)]):
        return order, _way_of_copying(sizes, source, dtype)
    if not any(s % size for s in (*source, *target)):
        merged = [*zip(*merge_dims(sizes, [s // size for s in source], [s // size for s in target]), strict=True)]
        units = [d for d, (n, step, _) in enumerate(merged[:-1]) if step == 1 and n >= FEW]
        _, step, beside = merged[-1]
        if beside == 1 and (step in (0, 1) or units):
            if step not in (0, 1):
                merged.insert(-1, merged.pop(units[0]))
            lengths, apart, places = zip(*merged, strict=True)
            args, copy = copy_args(lengths, 0, apart, 0, places), kernels.compiled(copy_source(dtype), "copy")
            return order, lambda x, out: copy(x, out, *args)
    return order, lambda x, out: np.copyto(out, x)


def memory_order(x: np.ndarray) -> tuple[int, ...] | None:
    """The order of dimensions in which an array lies; None where none of its own is, or elements are one of memory."""
    return _order_of(x.shape, x.strides, x.itemsize) if x.flags.aligned else None


@lru_cache(maxsize=_LIMIT)
def _order_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...] | None:
    order = tuple(sorted(range(len(shape)), key=lambda d: -strides[d]))
    step = itemsize
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] < step:
                return None
            step = strides[d] * shape[d]
    return None if order == tuple(range(len(shape))) else order
