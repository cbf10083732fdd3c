"""Tensors put together: on the diagonal of a matrix, and in all combinations of their elements."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from common.core.allocation import refuse_beyond_memory
from common.core.dtypes import int64, result_dtype
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer, integers
from common.core.shapes import broadcast_shapes as common_shape
from common.core.size_tuples import Size
from common.core.spec import numel
from common.ops.create.creation import zeros
from common.ops.index.gather import index_select
from common.ops.index.written_values import of_dtype
from common.ops.math.cast import to
from common.ops.shape.cat import cat, stack
from common.ops.shape.diagonal import diag_embed
from common.ops.shape.join import each, meshgrid
from common.ops.shape.padding import pad
from common.ops.shape.view import reshape
from common.tensor.base import spec_of
from common.tensor.create import lift


def block_diag(*tensors: Any) -> Any:
    """The block-diagonal matrix of matrices, zeros elsewhere.

    Parameters
    ----------
    tensors : (m, n) each; vectors count as one row, a 0-d tensor as one element; none give (1, 0).

    Raises
    ------
    ShapeError : a tensor of more than two dimensions.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.block_diag(tw.tensor([[1, 2]]), tw.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    blocks, parts = [], list(each(tensors))
    dtype = result_dtype(map(spec_of, parts))[0] if parts else None
    for i, x in enumerate(parts):
        if x.ndim > 2:
            raise ShapeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.ndim} dimensions"
            )
        blocks.append(reshape(of_dtype(x, dtype), (1,) * (2 - x.ndim) + tuple(x.shape)))
    if not blocks:
        return lift(zeros(1, 0))
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        rows.append(pad(x, (before, width - before - x.shape[1])))
        before = before + x.shape[1]
    return cat(rows, 0)


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element of each vector, in the order of the vectors' elements.

    Parameters
    ----------
    tensors : (n,) each.

    Returns
    -------
    tensor : (number of combinations, number of vectors); of one vector the vector.

    Raises
    ------
    ShapeError : a tensor that is no vector.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cartesian_prod(tw.tensor([1, 2]), tw.tensor([7, 8]))
    tensor([[1, 7],
            [1, 8],
            [2, 7],
            [2, 8]])
    """
    vectors = each(tensors)
    for x in vectors:
        if x.ndim != 1:
            raise ShapeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if not vectors:
        raise ArgumentError("cartesian_prod(): expected at least one tensor")
    if len(vectors) == 1:
        return vectors[0]
    return stack([reshape(x, (-1,)) for x in meshgrid(*vectors, indexing="ij")], 1)


def _chosen(n: int, r: int, repeated: bool) -> np.ndarray:
    """All (number of subsets, r) places of n, in the order of `itertools.combinations`."""
    refuse_beyond_memory("combinations", 8 * r * comb(n + r - 1 if repeated else n, r))
    places = np.arange(n)[:, None]
    for _ in range(r - 1):
        first = places[:, -1] + (not repeated)
        counts = n - first
        begins = np.cumsum(counts) - counts
        last = np.arange(counts.sum()) + np.repeat(first - begins, counts)
        places = np.column_stack((np.repeat(places, counts, 0), last))
    return places


def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All subsets of `r` elements of a vector, in the order of `itertools.combinations`.

    Parameters
    ----------
    x : (n,)
    r : elements of a subset.
    with_replacement : whether one element may be there several times.

    Returns
    -------
    tensor : (number of subsets, r)

    Raises
    ------
    ShapeError : `x` is no vector.
    ArgumentError : `r` is negative.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.combinations(tw.tensor([4, 5, 6]))
    tensor([[4, 5],
            [4, 6],
            [5, 6]])
    """
    if x.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    count = integer(r, "combinations", "r")
    if count < 0:
        raise ArgumentError(f"Expect a non-negative number, but got {count}")
    if count == 0:
        return x[:0]
    from common.tensor.create import lift

    places = _chosen(int(x.shape[0]), int(count), bool(with_replacement))
    return reshape(index_select(x, 0, lift(places.reshape(-1))), places.shape)


def diagflat(x: Any, offset: int = 0) -> Any:
    """The matrix with the elements on a diagonal, zeros elsewhere.

    Parameters
    ----------
    x : (...), flattened.
    offset : columns to the right of the main diagonal; below it if negative.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.diagflat(tw.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(x, (-1,)), offset)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which shapes broadcast.

    Parameters
    ----------
    shapes : tuples of sizes; an int is one size.

    Raises
    ------
    ShapeError : they do not broadcast.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.broadcast_shapes((2, 1), 3)
    torch.Size([2, 3])
    """
    sizes = [integers(shape, "broadcast_shapes", "shapes") for shape in shapes]
    if any(type(n) is int and n < 0 for shape in sizes for n in shape):
        raise ShapeError(f"Trying to create tensor with negative dimension: {shapes}")
    return Size(common_shape(*sizes, op="broadcast_shapes"))


def unravel_index(index: Any, shape: Any) -> tuple[Any, ...]:
    """The coordinates, in an array of a shape, of positions in its flattened form.

    Parameters
    ----------
    index : (...) of integers; those outside the array give the coordinates modulo the sizes.
    shape : sizes of the array.

    Returns
    -------
    tensors : int64, of the shape of `index`, one per dimension.

    Raises
    ------
    DTypeError : `index` is not of integers.
    ShapeError : a negative size.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.unravel_index(tw.tensor([5, 2]), (2, 3))
    (tensor([1, 0]), tensor([2, 2]))
    """
    if index.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index(): expected 'indices' to be integer dtype, but got {index.dtype}")
    sizes = integers(shape, "unravel_index", "shape")
    if any(type(n) is int and n < 0 for n in sizes):
        raise ShapeError(f"unravel_index(): 'shape' cannot have negative values, but got {tuple(sizes)}")
    if index.dtype != int64:
        index = to(index, dtype=int64, x_dtype=index.dtype)
    found = []
    for i, n in enumerate(sizes):
        step = numel(sizes[i + 1 :])
        found.append((index // step) % n if numel(index.shape) != 0 else index)
    return tuple(found)


__all__ = [
    "block_diag", "broadcast_shapes", "cartesian_prod", "combinations", "diagflat", "unravel_index",
]  # fmt: skip
