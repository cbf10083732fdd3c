"""Pooling for each number of dimensions: max_pool, avg_pool, lp_pool, max_unpool, and adaptive pooling."""

from __future__ import annotations

from typing import Any

from common.ops.image.adaptive import adaptive_avg_pool, adaptive_max_pool
from common.ops.image.geometry import documented
from common.ops.image.pooling import avg_pool, lp_pool, max_pool, max_unpool

_MAX = """The maximum of each window of images of {n} dimension{s}: the first one, or the last nan.

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : elements before and after that no maximum comes from; at most half a window.
    dilation : from one element of a window to the next.
    ceil_mode : whether a last window may reach beyond the end.
    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size, stride or dilation below 1, or another padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.max_pool{n}d(tw.ones(1, 1{sixes}), 3, 2, 1).shape
    torch.Size([1, 1{results}])
    """
_AVG_1D = """The mean of each window of images of {n} dimension{s}.

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : zeros before and after; at most half a window.
    ceil_mode : whether a last window may reach beyond the end.
    count_include_pad : whether the zeros count.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1, or another padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.avg_pool{n}d(tw.ones(1, 1{sixes}), 3, 2).shape
    torch.Size([1, 1{results}])
    """
_AVG = _AVG_1D.replace(
    "zeros count.\n",
    "zeros count.\n    divisor_override : what sums are divided by instead of the number of elements.\n",
)
_LP = """The sum of powers of each window of images of {n} dimension{s}, to the power of 1 / `norm_type`.

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    norm_type : the power.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    ceil_mode : whether a last window may reach beyond the end.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1.
    """
_UNPOOL = """Maxima in the places where `max_pool{n}d` found them, zeros elsewhere.

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    index : int64, `indices` as `max_pool{n}d` returns them.
    kernel_size, stride, padding : those of the pooling.
    output_size : sizes of the result, less than a stride from those that follow; or a whole shape.

    Raises
    ------
    ShapeError : the shapes differ, or the result would be empty.
    ArgumentError : another `output_size`.
    IndexRangeError : an index outside the result.
    """
_ADAPTIVE_AVG = """The mean of each of as many windows as are wanted, over images of {n} dimension{s}.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, {sizes}), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
_ADAPTIVE_MAX = _ADAPTIVE_AVG.replace("The mean", "The maximum").replace(
    "size of `x`.\n",
    "size of `x`.\n    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.\n",
)


@documented(1, _MAX, 3)
def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The maximum of each window of images of 1 dimension."""
    return max_pool(1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@documented(2, _MAX, 3)
def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The maximum of each window of images of 2 dimensions."""
    return max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@documented(3, _MAX, 3)
def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The maximum of each window of images of 3 dimensions."""
    return max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@documented(1, _AVG_1D, 2)
def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """The mean of each window of images of 1 dimension."""
    return avg_pool(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@documented(2, _AVG, 2)
def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window of images of 2 dimensions."""
    return avg_pool(2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@documented(3, _AVG, 2)
def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window of images of 3 dimensions."""
    return avg_pool(3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@documented(1, _LP)
def lp_pool1d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The norm of each window of images of 1 dimension."""
    return lp_pool(1, x, norm_type, kernel_size, stride, ceil_mode)


@documented(2, _LP)
def lp_pool2d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The norm of each window of images of 2 dimensions."""
    return lp_pool(2, x, norm_type, kernel_size, stride, ceil_mode)


@documented(3, _LP)
def lp_pool3d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The norm of each window of images of 3 dimensions."""
    return lp_pool(3, x, norm_type, kernel_size, stride, ceil_mode)


@documented(1, _UNPOOL)
def max_unpool1d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Maxima in their places in images of 1 dimension."""
    return max_unpool(1, x, index, kernel_size, stride, padding, output_size)


@documented(2, _UNPOOL)
def max_unpool2d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Maxima in their places in images of 2 dimensions."""
    return max_unpool(2, x, index, kernel_size, stride, padding, output_size)


@documented(3, _UNPOOL)
def max_unpool3d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Maxima in their places in images of 3 dimensions."""
    return max_unpool(3, x, index, kernel_size, stride, padding, output_size)


@documented(1, _ADAPTIVE_AVG)
def adaptive_avg_pool1d(x: Any, output_size: Any) -> Any:
    """The mean of each window of images of 1 dimension."""
    return adaptive_avg_pool(1, x, output_size)


@documented(2, _ADAPTIVE_AVG)
def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    """The mean of each window of images of 2 dimensions."""
    return adaptive_avg_pool(2, x, output_size)


@documented(3, _ADAPTIVE_AVG)
def adaptive_avg_pool3d(x: Any, output_size: Any) -> Any:
    """The mean of each window of images of 3 dimensions."""
    return adaptive_avg_pool(3, x, output_size)


@documented(1, _ADAPTIVE_MAX)
def adaptive_max_pool1d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each window of images of 1 dimension."""
    return adaptive_max_pool(1, x, output_size, return_indices)


@documented(2, _ADAPTIVE_MAX)
def adaptive_max_pool2d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each window of images of 2 dimensions."""
    return adaptive_max_pool(2, x, output_size, return_indices)


@documented(3, _ADAPTIVE_MAX)
def adaptive_max_pool3d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each window of images of 3 dimensions."""
    return adaptive_max_pool(3, x, output_size, return_indices)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d",
    "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip
