"""Fractional max pooling: windows whose places are drawn, so that an image shrinks by any factor."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import called
from common.core.dtypes import int64
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.spec import numel
from common.ops import functional as F
from common.ops.image.geometry import batched, per_dimension, positive
from common.ops.image.pooling import flat
from common.ops.index.advanced_keys import along
from common.ops.math.cast import to
from common.random.generator import rand


def _starts(sample: Any, extent: Any, count: Any, size: Any) -> Any:
    """Where windows along one dimension begin: (batch, channels, count), of (batch, channels) numbers in [0, 1)."""
    if count == 1:
        return to(F.unsqueeze(F.zeros_like(sample), -1), dtype=int64, x_dtype=sample.dtype) + (extent - size)
    step = (extent - size) / (count - 1)
    at = to(along(count - 1, 0), dtype=sample.dtype, x_dtype=int64)
    places = F.floor((F.unsqueeze(sample, -1) + at) * step) - F.floor(F.unsqueeze(sample, -1) * step)
    last = F.zeros_like(places[..., :1]) + (extent - size)
    return to(F.cat([places, last], -1), dtype=int64, x_dtype=sample.dtype)


def _pool(
    n: int, x: Any, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: Any, samples: Any
) -> Any:
    op = f"fractional_max_pool{n}d"
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{op} requires specifying either an output_size or an output_ratio")
    x, batch = batched(x, n, op)
    sizes = per_dimension(kernel_size, n, op, "kernel_size")
    positive(sizes, op, "kernel_size")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if not all(0 < r < 1 for r in ratios):
            raise ArgumentError(f"{op}(): output_ratio must be between 0 and 1 (got {output_ratio})")
        counts = tuple(int(m * r) for m, r in zip(x.shape[2:], ratios, strict=True))
    else:
        counts = tuple(integer(c, op, "output_size") for c in per_dimension(output_size, n, op, "output_size"))
    for extent, size, count in zip(x.shape[2:], sizes, counts, strict=True):
        if count < 1 or count + size - 1 > extent:
            raise ShapeError(
                f"{op}(): pool size ({size}) too large relative to input size ({extent}) for {count} windows"
            )
    batch_size, channels = x.shape[:2]
    if samples is None:
        samples = rand(batch_size, channels, n, dtype=x.dtype)
    elif samples.ndim != 3 or samples.shape[0] < batch_size or tuple(samples.shape[1:]) != (channels, n):
        raise ShapeError(
            f"{op}(): expected _random_samples of shape {(batch_size, channels, n)}, got {tuple(samples.shape)}"
        )
    else:
        samples = F.narrow(samples, 0, 0, batch_size)
    index: Any = 0
    for d, (extent, size, count) in enumerate(zip(x.shape[2:], sizes, counts, strict=True)):
        column = n - 1 - d if n == 2 else d  # PyTorch's numbers of two dimensions are those of width and height
        start = _starts(F.select(samples, 2, column), extent, count, size)
        places = F.unsqueeze(start, -1) + along(size, 0)
        apart = [batch_size, channels, *(1,) * (2 * n)]
        apart[2 + d], apart[2 + n + d] = count, size
        index = index * extent + F.reshape(places, tuple(apart))
    shape = (batch_size, channels, *counts, numel(sizes))
    index = F.reshape(index, shape)
    inside = F.reshape(F.gather(flat(x), 2, flat(index)), shape)
    first = F.argmax(inside.detach(), -1, True)
    values = F.squeeze(F.gather(inside, -1, first), -1)
    values = values if batch else F.squeeze(values, 0)
    values = called(values, f"FractionalMaxPool{n}DBackward0")
    if not return_indices:
        return values
    found = F.squeeze(F.gather(index, -1, first), -1)
    return values, found if batch else F.squeeze(found, 0)


def fractional_max_pool2d(
    x: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """The maxima of windows over images of 2 dimensions, whose places are drawn.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    kernel_size : of the windows; an int, or one per dimension.
    output_size : of the result; or
    output_ratio : the result's size over that of `x`, in (0, 1); a number, or one per dimension.
    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.
    _random_samples : (batch or more, channels, 2) numbers in [0, 1), of which the places follow; drawn by default.

    Raises
    ------
    ArgumentError : both or neither of `output_size` and `output_ratio`, or a ratio outside (0, 1).
    ShapeError : windows that do not fit.

    References
    ----------
    Graham, Fractional max-pooling, 2014.
    """
    return _pool(2, x, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    x: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """The maxima of windows over images of 3 dimensions, whose places are drawn; see `fractional_max_pool2d`.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    kernel_size, output_size, output_ratio, return_indices : see `fractional_max_pool2d`.
    _random_samples : (batch or more, channels, 3).
    """
    return _pool(3, x, kernel_size, output_size, output_ratio, return_indices, _random_samples)
