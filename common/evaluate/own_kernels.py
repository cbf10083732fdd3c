"""Composites that have a kernel of their own in the eager engine, by their names in `Op.reduce`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from common.kernels.arrays import (
    distances,
    grid_samples,
    mapped_sums,
    middles,
    small_compositions,
    window_maxima,
    windows,
)


class OwnKernel(NamedTuple):
    """A kernel of operands of one dtype, and of scratch.

    Parameters
    ----------
    shape : of the result.
    held : elements of scratch, of the dtype of the result.
    dtype : of the result; None for that of the operands.
    """

    source: str
    name: str
    shape: tuple[int, ...]
    ints: tuple[int, ...]
    held: int = 1
    dtype: np.dtype[Any] | None = None


Shapes = tuple[tuple[int, ...], ...]


def own_kernel(name: str, forms: Any, attrs: Mapping[str, Any]) -> OwnKernel | None:
    """The kernel for operands of known forms; None where there is none for these: their ops run."""
    shapes, dtypes = zip(*forms, strict=True)
    if dtypes[0].kind not in _KINDS.get(name, "f") or any(dtype != dtypes[0] for dtype in dtypes):
        return None
    found: OwnKernel | None = OWN[name](shapes, dtypes[0], attrs)
    return None if found is None or 0 in found.shape or 0 in shapes[0] else found


def _distances(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    a, b = shapes
    n, k = b[-2:]
    if not distances.serves(n, k, dtype.itemsize):
        return None
    source, held = distances.distances_source(dtype, k), distances.scratch_of_distances(n, k)
    return OwnKernel(source, "distances", (*a[:-1], n), (prod(a[:-2]), a[-2], n, k), held)


def _slopes(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    *_, a, b = shapes
    n, k = b[-2:]
    if not distances.serves(n, k, dtype.itemsize):
        return None
    source, held = distances.slopes_source(dtype, attrs["turned"]), distances.scratch_of_slopes(n, k)
    return OwnKernel(source, "turned" if attrs["turned"] else "slopes", a, (prod(a[:-2]), a[-2], n, k), held)


def _neighbours(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (shape,) = shapes
    if attrs["dim"] != len(shape) - 1:
        return None
    columns = shape[-1] - 1
    held = mapped_sums.scratch("neighbours", columns, 0)
    source = mapped_sums.neighbours_source(dtype)
    return OwnKernel(source, "neighbours", shape[:-1], (prod(shape[:-1]), columns), held)


def _small(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *ints: int) -> OwnKernel:
    return OwnKernel(small_compositions.SOURCES[name](dtype), name, shape, ints)


def _gated(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    shape, dim = shapes[-1], attrs["dim"]
    width = shape[dim] // 2 * prod(shape[dim + 1 :])
    if len(shapes) == 2:
        return _small("gated_slopes", shape, dtype, prod(shape[:dim]), width)
    halved = (*shape[:dim], shape[dim] // 2, *shape[dim + 1 :])
    return _small("gated", halved, dtype, prod(shape[:dim]), width)


def _crossed(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    shape, dim = shapes[0], attrs["dim"]
    if shapes[1] != shape:
        return None
    return _small("crossed", shape, dtype, prod(shape[:dim]), prod(shape[dim + 1 :]))


def _bordered(name: str, shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    """Of borders in up to three dimensions in a row; those behind them count as one."""
    (shape,), befores = shapes, attrs["befores"]
    found = tuple(map(sum, zip(befores, shape, attrs["afters"], strict=True)))
    padded = [i for i, (n, m) in enumerate(zip(shape, found)) if n != m]
    first, end = padded[0], padded[-1] + 1
    walks = list(zip(shape[first:end], befores[first:end], found[first:end]))
    inner = prod(shape[end:])
    walks += [(inner, 0, inner)] * (inner != 1)
    if len(walks) > 3:
        return None
    walks = [(1, 0, 1)] * (3 - len(walks)) + walks
    return _small(name, found, dtype, prod(shape[:first]), *chain.from_iterable(walks))


def _unreflected(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (shape,), dim, before, after = shapes, attrs["dim"], attrs["before"], attrs["after"]
    size, inner = shape[dim] - before - after, prod(shape[dim + 1 :])
    found = (*shape[:dim], size, *shape[dim + 1 :])
    return _small("unreflected", found, dtype, prod(shape[:dim]), size, inner, before, after)


def _others(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (shape,) = shapes
    if attrs["dim"] != len(shape) - 1:
        return None
    return _small("others", shape, dtype, prod(shape[:-1]), shape[-1])._replace(held=shape[-1])


def _rolled(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (shape,), shifts, dims = shapes, attrs["shifts"], attrs["dims"]
    if len(shifts) != 1 or 0 in shape:
        return None
    dim, inner = dims[0], prod(shape[dims[0] + 1 :])
    return _small("rolled", shape, dtype, prod(shape[:dim]), shape[dim] * inner, shifts[0] % shape[dim] * inner)


def _kronecker(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel:
    (m, n), (p, q) = shapes
    return _small("kronecker", (m * p, n * q), dtype, m, n, p, q)


def _shuffled(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel:
    ((*lead, c, h, w),), r = shapes, attrs["r"]
    found = (*lead, c // (r * r), h * r, w * r)
    return _small("shuffled", found, dtype, prod(found[:-2]), r, h, w)


def _unshuffled(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel:
    ((*lead, c, h, w),), r = shapes, attrs["r"]
    return _small("unshuffled", (*lead, c * r * r, h // r, w // r), dtype, prod((*lead, c)), r, h // r, w // r)


def _middle(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel:
    (shape,), skip = shapes, attrs["skip"]
    rows, n = prod(shape[:-1]), shape[-1]
    source, name = middles.middle_source(dtype, skip), "among" if skip else "middle"
    return OwnKernel(source, name, (*shape[:-1], 1), (rows, n), middles.scratch(n), np.dtype(np.int64))


def _mode(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (shape,) = shapes
    n = shape[-1]
    if n > middles.SHORT:
        return None
    ints = prod(shape[:-1]), n
    return OwnKernel(middles.mode_source(dtype), "mode", (*shape[:-1], 1), ints, middles.scratch(n), np.dtype(np.int64))


def _put(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (_, shape), given = shapes, tuple([attrs[name] for name in ("size", "count", "stride", "padding", "dilation")])
    if not window_maxima.serves(shape[2:], *given):
        return None
    ints = windows.window_args(prod(shape[:2]), shape[2:], given)
    return OwnKernel(window_maxima.put_source(dtype, given[0][2]), "window_put", shape, ints)


def _sampled(shapes: Shapes, dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> OwnKernel | None:
    (x, grid), (mode, padding, align) = shapes, (attrs[name] for name in ("mode", "padding", "align"))
    if not grid_samples.serves(padding, align, x, grid):
        return None
    source, places = grid_samples.sampled_source(dtype, mode, padding, align, len(x) - 2), prod(grid[1:-1])
    ints = (*x, places)
    held = grid_samples.scratch("grid_sampled", dtype, mode, ints) // dtype.itemsize
    return OwnKernel(source, "grid_sampled", (*x[:2], *grid[1:-1]), ints, held)


OWN: dict[str, Callable[..., OwnKernel | None]] = {
    "distances": _distances, "slopes": _slopes, "neighbours": _neighbours, "gated": _gated, "crossed": _crossed,
    "grid_sampled": _sampled, "kronecker": _kronecker, "middle": _middle, "mode": _mode, "others": _others,
    "rolled": _rolled, "shuffled": _shuffled, "unshuffled": _unshuffled, "unreflected": _unreflected,
    "window_put": _put, **{name: partial(_bordered, name) for name in ("reflected", "replicated")},
}  # fmt: skip
"""What makes the kernel of each name, of shapes, dtype and attributes."""
_KINDS = dict.fromkeys(("middle", "reflected", "replicated", "rolled"), "fiu")
"""Kinds of dtypes that a kernel takes, where these are not floats alone."""
