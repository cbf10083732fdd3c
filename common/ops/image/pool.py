"""max_pool, avg_pool, lp_pool and max_unpool for each number of dimensions."""

from __future__ import annotations

from typing import Any

from common.ops.image.pooling import avg_pool, lp_pool, max_pool, max_unpool


def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images of 1 dimension: the first one, or the last nan.

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
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
    >>> tw.nn.functional.max_pool1d(tw.ones(1, 1, 6), 3, 2, 1).shape
    torch.Size([1, 1, 3])
    """
    return max_pool(1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window of images of 1 dimension.

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
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
    >>> tw.nn.functional.avg_pool1d(tw.ones(1, 1, 6), 3, 2).shape
    torch.Size([1, 1, 2])
    """
    return avg_pool(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def lp_pool1d(
    x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False,
) -> Any:
    """The sum of powers of each window of images of 1 dimension, to the power of 1 / `norm_type`.

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
    norm_type : the power.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    ceil_mode : whether a last window may reach beyond the end.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1.
    """
    return lp_pool(1, x, norm_type, kernel_size, stride, ceil_mode)


def max_unpool1d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None,
) -> Any:
    """Maxima in the places where `max_pool1d` found them, zeros elsewhere.

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
    index : int64, `indices` as `max_pool1d` returns them.
    kernel_size, stride, padding : those of the pooling.
    output_size : sizes of the result, less than a stride from those that follow; or a whole shape.

    Raises
    ------
    ShapeError : the shapes differ, or the result would be empty.
    ArgumentError : another `output_size`.
    IndexRangeError : an index outside the result.
    """
    return max_unpool(1, x, index, kernel_size, stride, padding, output_size)


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images of 2 dimensions: the first one, or the last nan.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
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
    >>> tw.nn.functional.max_pool2d(tw.ones(1, 1, 6, 6), 3, 2, 1).shape
    torch.Size([1, 1, 3, 3])
    """
    return max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:
    """The mean of each window of images of 2 dimensions.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : zeros before and after; at most half a window.
    ceil_mode : whether a last window may reach beyond the end.
    count_include_pad : whether the zeros count.
    divisor_override : what sums are divided by instead of the number of elements.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1, or another padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.avg_pool2d(tw.ones(1, 1, 6, 6), 3, 2).shape
    torch.Size([1, 1, 2, 2])
    """
    return avg_pool(2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool2d(
    x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False,
) -> Any:
    """The sum of powers of each window of images of 2 dimensions, to the power of 1 / `norm_type`.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    norm_type : the power.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    ceil_mode : whether a last window may reach beyond the end.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1.
    """
    return lp_pool(2, x, norm_type, kernel_size, stride, ceil_mode)


def max_unpool2d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None,
) -> Any:
    """Maxima in the places where `max_pool2d` found them, zeros elsewhere.

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    index : int64, `indices` as `max_pool2d` returns them.
    kernel_size, stride, padding : those of the pooling.
    output_size : sizes of the result, less than a stride from those that follow; or a whole shape.

    Raises
    ------
    ShapeError : the shapes differ, or the result would be empty.
    ArgumentError : another `output_size`.
    IndexRangeError : an index outside the result.
    """
    return max_unpool(2, x, index, kernel_size, stride, padding, output_size)


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images of 3 dimensions: the first one, or the last nan.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
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
    >>> tw.nn.functional.max_pool3d(tw.ones(1, 1, 6, 6, 6), 3, 2, 1).shape
    torch.Size([1, 1, 3, 3, 3])
    """
    return max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:
    """The mean of each window of images of 3 dimensions.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : zeros before and after; at most half a window.
    ceil_mode : whether a last window may reach beyond the end.
    count_include_pad : whether the zeros count.
    divisor_override : what sums are divided by instead of the number of elements.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1, or another padding.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.avg_pool3d(tw.ones(1, 1, 6, 6, 6), 3, 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """
    return avg_pool(3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool3d(
    x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False,
) -> Any:
    """The sum of powers of each window of images of 3 dimensions, to the power of 1 / `norm_type`.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    norm_type : the power.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    ceil_mode : whether a last window may reach beyond the end.

    Raises
    ------
    ShapeError : an image without elements, or smaller than a window.
    ArgumentError : a size or stride below 1.
    """
    return lp_pool(3, x, norm_type, kernel_size, stride, ceil_mode)


def max_unpool3d(
    x: Any, index: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None,
) -> Any:
    """Maxima in the places where `max_pool3d` found them, zeros elsewhere.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    index : int64, `indices` as `max_pool3d` returns them.
    kernel_size, stride, padding : those of the pooling.
    output_size : sizes of the result, less than a stride from those that follow; or a whole shape.

    Raises
    ------
    ShapeError : the shapes differ, or the result would be empty.
    ArgumentError : another `output_size`.
    IndexRangeError : an index outside the result.
    """
    return max_unpool(3, x, index, kernel_size, stride, padding, output_size)


__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]
