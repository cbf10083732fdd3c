"""Diagonals of matrices: as views, placed among zeros, and as the border of a triangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dispatch import called
from common.core.errors import ShapeError
from common.core.int_arguments import integer, normalize_dim
from common.core.op import NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.spec import Spec, numel
from common.ops._define import kernel, view
from common.ops._samples import Samples, join, one
from common.ops.math.cast import clone


def _length(rows: Any, columns: Any, offset: Any) -> Any:
    """Elements on a diagonal of a matrix."""
    rows, columns = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    shorter = columns if columns < rows else rows
    return 0 if shorter < 0 else shorter


def _strided(offset_: Any, shape: Any, strides: Any, offset: Any, dim1: int, dim2: int) -> Any:
    rest = [i for i in range(len(shape)) if i not in (dim1, dim2)]
    length = _length(shape[dim1], shape[dim2], offset)
    if not isinstance(length, int) or length > 0:
        offset_ = offset_ + (offset * strides[dim2] if offset >= 0 else -offset * strides[dim1])
    return (
        offset_,
        (*(shape[i] for i in rest), length),
        (*(strides[i] for i in rest), strides[dim1] + strides[dim2]),
    )


def _array(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    offset = max(-x.shape[dim1], min(offset, x.shape[dim2]))  # beyond the matrix nothing is left; numpy's is a C int
    found = x.diagonal(offset, dim1, dim2)
    if x.flags.writeable:
        found.flags.writeable = True  # numpy's diagonals are views that refuse to be written to
    return found


def _embed_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    (out,) = outs
    place = (attrs[name] for name in ("offset", "dim1", "dim2"))
    start, shape, strides = _strided(0, out.shape, contiguous_strides(out.shape), *place)
    return [
        copying.fill_zero(out.dtype, numel(out.shape), (1,)),
        copying.scatter(out.dtype, shape, start, strides, (0, 1)),
    ]


def _embed_oracle(g: np.ndarray, shape: Any, offset: int, dim1: int, dim2: int) -> np.ndarray:
    out = np.zeros(shape, g.dtype)
    _array(out, offset, dim1, dim2)[...] = g
    return out


diagonal_: Op = view(
    "diagonal", _strided, _array,
    (lambda g, x_shape, offset, dim1, dim2:
        undiagonal(g, shape=x_shape, offset=offset, dim1=dim1, dim2=dim2),),
    samples=join(one(3, 4, offset=0, dim1=0, dim2=1), one(2, 4, 3, offset=-1, dim1=1, dim2=2),
                 one(3, 2, 4, offset=2, dim1=2, dim2=0), one(2, 3, offset=7, dim1=0, dim2=1)),
    doc="The elements whose index along dim2 is that along dim1 plus offset, as a last dimension.",
)  # fmt: skip

undiagonal: Op = kernel(
    "undiagonal", ("x",), lambda x, *, shape, offset, dim1, dim2: Spec(tuple(shape), x.dtype), _embed_native,
    _embed_oracle,
    (lambda g, offset, dim1, dim2: diagonal_(g, offset=offset, dim1=dim1, dim2=dim2),),
    samples=join(one(2, 3, shape=(2, 4, 3), offset=-1, dim1=1, dim2=2), one(3, shape=(3, 3), offset=0, dim1=0, dim2=1)),
    doc="x on a diagonal of zeros of a shape; the transpose of diagonal.",
    attrs=("shape", "offset", "dim1", "dim2"), node_name="DiagEmbed",
)  # fmt: skip


def _two_dims(op: str, dim1: Any, dim2: Any, ndim: int) -> tuple[int, int]:
    a, b = normalize_dim(dim1, ndim, op), normalize_dim(dim2, ndim, op)
    if a == b:
        raise ShapeError(f"{op}(): diagonal dimensions cannot be identical {dim1}, {dim2}")
    return a, b


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A diagonal of the matrices that two dimensions form, as a view; it is the last dimension of the result.

    Parameters
    ----------
    x : (..., m, ..., n, ...)
    offset : columns to the right of the main diagonal; below it if negative.
    dim1, dim2 : dimensions of rows and columns.

    Raises
    ------
    ShapeError : `dim1` and `dim2` are the same.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : an argument that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.diagonal(tw.arange(6).reshape(2, 3), offset=1)
    tensor([1, 5])
    """
    a, b = _two_dims("diagonal", dim1, dim2, x.ndim)
    return diagonal_(x, offset=integer(offset, "diagonal", "offset"), dim1=a, dim2=b)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices of zeros with the last dimension of `x` on a diagonal.

    Parameters
    ----------
    x : (..., n)
    offset : columns to the right of the main diagonal; below it if negative.
    dim1, dim2 : where the result, which has one dimension more, has rows and columns of size ``n + |offset|``.

    Raises
    ------
    ShapeError : `dim1` and `dim2` are the same, or a 0-d tensor.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : an argument that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.diag_embed(tw.tensor([1, 2]), offset=1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    if x.ndim == 0:
        raise ShapeError("diag_embed(): input must have at least 1 dimension, got a 0-d tensor")
    a, b = _two_dims("diag_embed", dim1, dim2, x.ndim + 1)
    offset = integer(offset, "diag_embed", "offset")
    size = x.shape[-1] + (offset if offset >= 0 else -offset)
    rest = iter(x.shape[:-1])
    shape = tuple(size if i in (a, b) else next(rest) for i in range(x.ndim + 1))
    return undiagonal(x, shape=shape, offset=offset, dim1=a, dim2=b)


def diag(x: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, as a copy; of a vector, the matrix of zeros that has it as its diagonal.

    Parameters
    ----------
    x : (n) or (m, n)
    diagonal : columns to the right of the main diagonal; below it if negative.

    Raises
    ------
    ShapeError : neither one nor two dimensions.
    ArgumentError : `diagonal` is no int.
    """
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    y = clone(diagonal_(x, offset=integer(diagonal, "diag", "diagonal"), dim1=0, dim2=1))
    return called(y, "DiagonalBackward0_copy")


def _triangle(name: str, lower: bool) -> Op:
    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import triangles

        (x,) = specs
        rows, columns = x.shape[-2:]
        ints = (numel(x.shape[:-1]), rows, columns, attrs["diagonal"])
        return [NativeCall(triangles.triangle_source(x.dtype, lower), "triangle", ints)]

    keep = np.tril if lower else np.triu
    samples: Samples = join(one(3, 4, diagonal=0), one(2, 4, 3, diagonal=1), one(3, 3, diagonal=-2))
    op = kernel(
        name, ("x",), lambda x, *, diagonal: x, native, lambda x, diagonal: keep(x, diagonal),
        (lambda g, diagonal: op(g, diagonal=diagonal),),
        samples=samples, attrs=("diagonal",),
        doc=f"x on and {'below' if lower else 'above'} a diagonal, zeros elsewhere.",
    )  # fmt: skip
    return op


tril_, triu_ = _triangle("tril", lower=True), _triangle("triu", lower=False)


def _cut(op: Op, x: Any, diagonal: Any) -> Any:
    if x.ndim < 2:
        raise ShapeError(f"{op.name}: input tensor must have at least 2 dimensions")
    return op(x, diagonal=integer(diagonal, op.name, "diagonal"))


def tril(x: Any, diagonal: int = 0) -> Any:
    """The lower triangles of matrices, zeros elsewhere.

    Parameters
    ----------
    x : (..., m, n)
    diagonal : the last diagonal that is kept: 0 is the main one, positive ones lie above it.

    Raises
    ------
    ShapeError : fewer than two dimensions.
    ArgumentError : `diagonal` is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tril(tw.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    return _cut(tril_, x, diagonal)


def triu(x: Any, diagonal: int = 0) -> Any:
    """The upper triangles of matrices, zeros elsewhere.

    Parameters
    ----------
    x : (..., m, n)
    diagonal : the first diagonal that is kept: 0 is the main one, positive ones lie above it.

    Raises
    ------
    ShapeError : fewer than two dimensions.
    ArgumentError : `diagonal` is no int.
    """
    return _cut(triu_, x, diagonal)


__all__ = ["diag", "diag_embed", "diagonal", "tril", "triu"]
