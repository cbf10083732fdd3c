"""adaptive_avg_pool and adaptive_max_pool for each number of dimensions."""

from __future__ import annotations

from typing import Any

from common.ops.image.adaptive import adaptive_avg_pool, adaptive_max_pool


def adaptive_avg_pool1d(
    x: Any, output_size: Any
) -> Any:
    """The mean of each of as many windows as are wanted, over images of 1 dimension.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_avg_pool(1, x, output_size)


def adaptive_max_pool1d(
    x: Any, output_size: Any, return_indices: bool = False
) -> Any:
    """The maximum of each of as many windows as are wanted, over images of 1 dimension.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, length), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.
    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_max_pool(1, x, output_size, return_indices)


def adaptive_avg_pool2d(
    x: Any, output_size: Any
) -> Any:
    """The mean of each of as many windows as are wanted, over images of 2 dimensions.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_avg_pool(2, x, output_size)


def adaptive_max_pool2d(
    x: Any, output_size: Any, return_indices: bool = False
) -> Any:
    """The maximum of each of as many windows as are wanted, over images of 2 dimensions.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, height, width), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.
    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_max_pool(2, x, output_size, return_indices)


def adaptive_avg_pool3d(
    x: Any, output_size: Any
) -> Any:
    """The mean of each of as many windows as are wanted, over images of 3 dimensions.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_avg_pool(3, x, output_size)


def adaptive_max_pool3d(
    x: Any, output_size: Any, return_indices: bool = False
) -> Any:
    """The maximum of each of as many windows as are wanted, over images of 3 dimensions.

    Window i of m along n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch.
    output_size : an int, or one per dimension; None is the size of `x`.
    return_indices : whether to return ``(maxima, indices)``, int64, in the flattened image.

    Raises
    ------
    ShapeError : an image without elements.
    ArgumentError : another `output_size`.
    """
    return adaptive_max_pool(3, x, output_size, return_indices)


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]
