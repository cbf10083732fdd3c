"""Splits under PyTorch's further names: along one dimension, by sizes, or without the views."""

from __future__ import annotations

from typing import Any

from common.core.errors import ShapeError
from common.core.int_arguments import members
from common.ops.math.cast import clone
from common.ops.shape.split import chunk, parts_of, split, tensor_split


def hsplit(x: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Equal parts, or parts between indices, along the second dimension; of a vector along its only one.

    Parameters
    ----------
    x : (n,) or (m, n, ...)
    indices_or_sections : number of parts, which divides n; or the indices at which a new part begins.
    indices, sections : PyTorch's names of the one and of the other.

    Raises
    ------
    ShapeError : a 0-d tensor, or a number that does not divide n.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.hsplit(tw.arange(4).reshape(2, 2), 2)]
    [[[0], [2]], [[1], [3]]]
    """
    return _equal_parts("hsplit", x, (indices_or_sections, indices, sections), 0 if x.ndim == 1 else 1, 1)


def vsplit(x: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Equal parts, or parts between indices, along the first dimension.

    Parameters
    ----------
    x : (n, m, ...)
    indices_or_sections : number of parts, which divides n; or the indices at which a new part begins.
    indices, sections : PyTorch's names of the one and of the other.

    Raises
    ------
    ShapeError : less than two dimensions, or a number that does not divide n.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.vsplit(tw.arange(4).reshape(2, 2), [1])]
    [[[0, 1]], [[2, 3]]]
    """
    return _equal_parts("vsplit", x, (indices_or_sections, indices, sections), 0, 2)


def dsplit(x: Any, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> tuple[Any, ...]:
    """Equal parts, or parts between indices, along the third dimension.

    Parameters
    ----------
    x : (k, m, n, ...)
    indices_or_sections : number of parts, which divides n; or the indices at which a new part begins.
    indices, sections : PyTorch's names of the one and of the other.

    Raises
    ------
    ShapeError : less than three dimensions, or a number that does not divide n.

    Examples
    --------
    >>> import dynamic as tw
    >>> [part.tolist() for part in tw.dsplit(tw.arange(4).reshape(1, 2, 2), 2)]
    [[[[0], [2]]], [[[1], [3]]]]
    """
    return _equal_parts("dsplit", x, (indices_or_sections, indices, sections), 2, 3)


def _equal_parts(name: str, x: Any, given: tuple[Any, ...], dim: int, least: int) -> tuple[Any, ...]:
    parts = parts_of(name, *given)
    if x.ndim < least:
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {least} dimension{'s' * (least > 1)}, but got a tensor with "
            f"{x.ndim} dimensions!"
        )
    if type(parts) is int and (parts < 1 or x.shape[dim] % parts):
        raise ShapeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {x.shape[dim]} is "
            f"not divisible by the split_size {parts}!"
        )
    found: tuple[Any, ...] = tensor_split(x, parts, dim)
    return found


def split_with_sizes(x: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts of given sizes along a dimension, as views: `split` of a list.

    Parameters
    ----------
    x : (..., n, ...)
    split_sizes : list of sizes that sum to n.
    dim : the dimension.

    Raises
    ------
    ShapeError, ArgumentError, IndexRangeError : see `split`.
    """
    found: tuple[Any, ...] = split(x, members(split_sizes, "split_with_sizes", "split_sizes"), dim)
    return found


def unsafe_split(x: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """`split` whose parts are no views: each may be written to.

    Parameters
    ----------
    x : (..., n, ...)
    split_size : elements per part, where the last part may have fewer.
    dim : the dimension.
    """
    return tuple(clone(part) for part in split(x, split_size, dim))


def unsafe_split_with_sizes(x: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """`split_with_sizes` whose parts are no views: each may be written to.

    Parameters
    ----------
    x : (..., n, ...)
    split_sizes : list of sizes that sum to n.
    dim : the dimension.
    """
    return tuple(clone(part) for part in split_with_sizes(x, split_sizes, dim))


def unsafe_chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """`chunk` whose parts are no views: each may be written to.

    Parameters
    ----------
    x : (..., n, ...)
    chunks : how many parts at most.
    dim : the dimension.
    """
    return tuple(clone(part) for part in chunk(x, chunks, dim))


__all__ = [
    "dsplit", "hsplit", "split_with_sizes", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "vsplit",
]  # fmt: skip
