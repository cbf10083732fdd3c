"""Norms of matrices and vectors with PyTorch's arguments, and condition numbers."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import flag, normalize_dim, normalize_dims, number
from common.ops.linalg._lapack import require_matrix, require_square
from common.ops.linalg.spectral import svdvals
from common.ops.math.cast import to
from common.ops.math.compare import eq, where
from common.ops.reduce.norms import norm_
from common.ops.reduce.reductions import amax, amin
from common.ops.reduce.reductions import sum as total
from common.ops.shape.view import reshape


def cond(A: Any, p: Any = None) -> Any:
    """The condition numbers of matrices: the norm times that of the inverse; for None, 2 and -2 from singular values.

    Parameters
    ----------
    A : (..., m, n), square for another p.
    p : None, 2, -2, 1, -1, inf, -inf, "fro" or "nuc".
    """
    require_matrix("linalg.cond", A)
    p = number(p)
    if p in (None, 2, -2):
        s = svdvals(A)
        if s.shape[-1] == 0:
            return total(s, -1)
        first, last = s[..., 0], s[..., -1]
        return last / first if p == -2 else first / last
    require_square("linalg.cond", A)
    if p == "nuc":
        s = svdvals(A)
        return total(s, -1) * total(1 / s, -1)
    from common.ops.linalg.solving import inv_ex

    inverse, info = inv_ex(A)
    found = matrix_norm(A, p) * matrix_norm(inverse, p)
    return where(eq(info, 0), found, inf)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Norms of matrices.

    Parameters
    ----------
    A : (..., m, n)
    ord : "fro": of the elements; "nuc": sum of singular values; 2, -2: largest, smallest singular value; 1, -1 and
        inf, -inf: largest, smallest sum of magnitudes of a column, of a row. The largest of none is 0.
    dim : the dimensions of rows and columns.
    keepdim : leave them with size 1.
    dtype : to which A is converted first.
    """
    keepdim = flag(keepdim, "linalg.matrix_norm", "keepdim")
    if dtype is not None:
        A = to(A, dtype=np.dtype(dtype), x_dtype=A.dtype)
    require_matrix("linalg.matrix_norm", A)
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise ArgumentError("linalg.matrix_norm: dim must be a 2-tuple of ints")
    rows, columns = (normalize_dim(d, A.ndim, "linalg.matrix_norm") for d in dim)
    if rows == columns:
        raise ShapeError("linalg.matrix_norm: dims must be different")
    ord = number(ord)
    if isinstance(ord, str):
        if ord == "fro":
            return norm_(A, p=2.0, dim=tuple(sorted((rows, columns))), keepdim=keepdim)
        if ord != "nuc":
            raise ArgumentError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, inf):
        raise ArgumentError(f"linalg.matrix_norm: Order {ord} not supported.")
    order = tuple(i for i in range(A.ndim) if i not in (rows, columns))
    x = A.permute(*order, rows, columns)
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        found = total(s, -1) if ord == "nuc" else _largest(s) if ord == 2 else amin(s, -1)
    else:
        sums = total(x.abs(), -2 if abs(ord) == 1 else -1)
        found = _largest(sums) if ord > 0 else amin(sums, -1)
    if not keepdim:
        return found
    shape = tuple(1 if i in (rows, columns) else n for i, n in enumerate(A.shape))
    return reshape(found, shape)


def _largest(x: Any) -> Any:
    """The largest of magnitudes, 0 where there are none."""
    return total(x, -1) if x.shape[-1] == 0 else amax(x, -1)


def vector_norm(A: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`norm` of elements over dimensions, as one vector.

    Parameters
    ----------
    A : (...)
    ord : any number.
    dim : the dimension, or several; all by default.
    keepdim : leave them with size 1.
    dtype : to which A is converted first.
    """
    keepdim = flag(keepdim, "linalg.vector_norm", "keepdim")
    if dtype is not None:
        A = to(A, dtype=np.dtype(dtype), x_dtype=A.dtype)
    if A.dtype.kind != "f":
        from common.core.errors import DTypeError

        raise DTypeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if isinstance(dim, (tuple, list)) and not dim:
        dim = None
    return norm_(A, p=float(number(ord)), dim=normalize_dims(dim, A.ndim, "linalg.vector_norm"), keepdim=keepdim)


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """A norm of vectors or of matrices, by the number of dimensions.

    Parameters
    ----------
    A : (...)
    ord : None: of all elements, as one vector, or over `dim`; otherwise as `vector_norm` or `matrix_norm`.
    dim : one dimension: of vectors; two: of matrices. By default those of A, which then has one or two.
    keepdim : leave them with size 1.
    dtype : to which A is converted first.
    """
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if isinstance(dim, (tuple, list)) or (dim is None and (A.ndim == 2 or isinstance(ord, str))):
        if dim is None and A.ndim != 2:
            raise ShapeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
            )
        return matrix_norm(A, ord, (0, 1) if dim is None else tuple(dim), keepdim, dtype=dtype)
    if dim is None and A.ndim != 1:
        raise ShapeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


__all__: list[str] = []
