"""The extension `linalg` of the array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.api.standard.array_elementwise import promoted
from common.api.standard.array_products import matmul, matrix_transpose, tensordot, vecdot
from common.api.standard.array_reductions import reduced
from common.ops import functional
from common.ops.linalg import linalg_namespace
from common.tensor.arrays import known_dtype
from common.tensor.create import operand

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]  # fmt: skip
_OURS = linalg_namespace.FUNCTIONS


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of a positive definite matrix.

    Parameters
    ----------
    x : (..., n, n).
    upper : give the upper one.
    """
    return _OURS["cholesky"](operand(x), upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : (..., 3).
    axis : along which.
    """
    return _OURS["cross"](*functional.broadcast_tensors(*promoted(x1, x2)), dim=axis)


def det(x: Any, /) -> Any:
    """The determinant of (..., n, n)."""
    return _OURS["det"](operand(x))


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonal of matrices.

    Parameters
    ----------
    x : (..., n, m).
    offset : positive above the main one.
    """
    return functional.diagonal(operand(x), offset, -2, -1)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric matrix, (..., n, n)."""
    return EighResult(*_OURS["eigh"](operand(x)))


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of a symmetric matrix, (..., n, n)."""
    return _OURS["eigvalsh"](operand(x))


def inv(x: Any, /) -> Any:
    """The inverse of (..., n, n)."""
    return _OURS["inv"](operand(x))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of matrices.

    Parameters
    ----------
    x : (..., n, m).
    keepdims : keep the two dimensions with size 1.
    ord : "fro", "nuc", 1, -1, 2, -2, inf or -inf.
    """
    return _OURS["matrix_norm"](operand(x), ord, (-2, -1), keepdims)


def matrix_power(x: Any, n: int, /) -> Any:
    """A power of (..., m, m), of its inverse for negative `n`."""
    return _OURS["matrix_power"](operand(x), n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The number of singular values above a bound.

    Parameters
    ----------
    x : (..., n, m).
    rtol : the bound, relative to the largest of them.
    """
    return _OURS["matrix_rank"](operand(x), rtol=rtol)


def outer(x1: Any, x2: Any, /) -> Any:
    """All products of an element of (n) and one of (m): (n, m)."""
    return functional.outer(*promoted(x1, x2))


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverse.

    Parameters
    ----------
    x : (..., n, m).
    rtol : singular values below it, relative to the largest, count as 0.
    """
    return _OURS["pinv"](operand(x), rtol=rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and an upper triangular factor.

    Parameters
    ----------
    x : (..., n, m).
    mode : "reduced" or "complete".
    """
    return QRResult(*_OURS["qr"](operand(x), mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of the determinant of (..., n, n)."""
    return SlogdetResult(*_OURS["slogdet"](operand(x)))


def solve(x1: Any, x2: Any, /) -> Any:
    """The solution of linear equations.

    Parameters
    ----------
    x1 : (..., n, n).
    x2 : (n), or (..., n, k).
    """
    x1, x2 = promoted(x1, x2)
    if len(x2.shape) == 1:
        return functional.squeeze(_OURS["solve"](x1, functional.unsqueeze(x2, -1)), -1)
    return _OURS["solve"](x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition.

    Parameters
    ----------
    x : (..., n, m).
    full_matrices : give square U and Vh.
    """
    return SVDResult(*_OURS["svd"](operand(x), full_matrices))


def svdvals(x: Any, /) -> Any:
    """Singular values of (..., n, m), the largest first."""
    return _OURS["svdvals"](operand(x))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal.

    Parameters
    ----------
    x : (..., n, m).
    offset : positive above the main one.
    dtype : to compute in; by default int64 for integers.
    """
    return functional.sum(diagonal(x, offset=offset), -1, dtype=dtype and known_dtype(dtype))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of vectors.

    Parameters
    ----------
    x : (...).
    axis : None for all elements as one vector, an int or a tuple.
    keepdims : keep reduced dimensions with size 1.
    ord : any number, inf or -inf.
    """
    return reduced(lambda y, dim: _OURS["vector_norm"](y, ord, dim), x, axis, keepdims)
