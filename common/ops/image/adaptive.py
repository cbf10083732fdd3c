"""adaptive_avg_pool and adaptive_max_pool: as many windows as results are wanted."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import called
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.operators import as_operand
from common.ops.image.geometry import batched, images
from common.ops.image.pooling import as_images, at_maxima
from common.ops.image.windows import window_sum_
from common.ops.index.advanced_keys import along
from common.ops.math.cast import to
from common.ops.math.division import floor_divide
from common.ops.reduce.reductions import mean
from common.ops.shape.view import reshape


def _windows(op: str, x: Any, n: int, output_size: Any) -> dict[str, Any]:
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) == 1:
        given = given * n
    if len(given) != n:
        raise ArgumentError(f"{op}(): output_size must have {n} elements, got {list(given)}")
    count = tuple(
        m if size is None else integer(size, op, "output_size") for size, m in zip(given, x.shape[2:], strict=True)
    )
    if any(m < 0 for m in count):
        raise ArgumentError(f"{op}(): elements of output_size must be greater than or equal to 0, got {list(count)}")
    if any(m == 0 for m in x.shape[2:]):
        raise ShapeError(
            f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(x.shape)} with a dimension being empty"
        )
    size, stride = (0,) * n, (1,) * n
    if all(_divides(m, extent) for m, extent in zip(count, x.shape[2:], strict=True)):  # they are alike, then
        size = stride = tuple(extent // m for m, extent in zip(count, x.shape[2:], strict=True))
    return {"size": size, "count": count, "stride": stride, "padding": (0,) * n, "dilation": (1,) * n}


def _divides(m: Any, extent: Any) -> bool:
    """Whether two sizes are known, and one is a multiple of the other."""
    return type(m) is type(extent) is int and m > 0 and extent % m == 0


def _as_images(windows: dict[str, Any]) -> dict[str, Any]:
    """Windows in all three dimensions; adaptive ones have one element in those that are missing."""
    every = as_images(windows)
    return every if all(windows["size"]) else {**every, "size": (0, 0, 0)}


def adaptive_avg_pool(n: int, x: Any, output_size: Any) -> Any:
    """The means of as many windows as are wanted; see `adaptive_avg_pool2d`."""
    op = f"adaptive_avg_pool{n}d"
    x, batch = batched(x, n, op)
    windows = _windows(op, x, n, output_size)
    count = windows["count"]
    if all(type(m) is int and m == 1 for m in count):
        y = mean(x, tuple(range(2, n + 2)), True)
    else:
        refuse(op, x)
        total = reshape(window_sum_(images(x), **_as_images(windows)), (*x.shape[:2], *count))
        sizes: Any = 1
        for d, (m, extent) in enumerate(zip(count, x.shape[2:], strict=True)):
            at = along(m, n - 1 - d)
            many = as_operand(m)
            length = floor_divide((at + 1) * extent + (m - 1), many) - floor_divide(at * extent, many)
            sizes = length * sizes
        y = total / to(sizes, dtype=x.dtype, x_dtype=sizes.dtype)
    return called(y if batch else reshape(y, y.shape[1:]), f"AdaptiveAvgPool{n}DBackward0" if n > 1 else
                  "SqueezeBackward1")  # fmt: skip


def adaptive_max_pool(n: int, x: Any, output_size: Any, return_indices: Any) -> Any:
    """The maxima of as many windows as are wanted; see `adaptive_max_pool2d`."""
    op = f"adaptive_max_pool{n}d"
    refuse(op, x, "b")
    x, batch = batched(x, n, op)
    windows = _windows(op, x, n, output_size)
    node_name = f"AdaptiveMaxPool{n}DBackward0" if n > 1 else "SqueezeBackward1"
    return at_maxima(x, _as_images(windows), windows["count"], node_name, return_indices, batch)


__all__: list[str] = []
