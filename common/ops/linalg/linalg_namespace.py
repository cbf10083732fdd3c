"""The functions of `torch.linalg`: other modules' functions, some with other names of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import DTypeError, ShapeError
from common.core.int_arguments import integer
from common.ops.create.creation import arange
from common.ops.linalg import (
    chains,
    factorizations,
    matmul,
    matrix_exponential,
    matrix_norms,
    orthogonal,
    solving,
    spectral,
    symmetric,
)
from common.ops.reduce.reductions import sum as total
from common.ops.shape.diagonal import diagonal as diagonal_of
from common.ops.shape.view import broadcast_to, expand, reshape, unsqueeze
from common.tensor.create import lift


def cholesky(A: Any, *, upper: bool = False) -> Any:
    """The triangular factor L of symmetric positive-definite matrices, ``A = L L^T``; only one triangle is read.

    Parameters
    ----------
    A : (..., n, n)
    upper : return ``L^T``, from the upper triangle.

    Raises
    ------
    LinAlgError : a matrix is not positive-definite.
    """
    return factorizations.cholesky(A, upper)


def det(A: Any) -> Any:
    """The determinants of square matrices.

    Parameters
    ----------
    A : (..., n, n)
    """
    return solving.det(A)


@sections_of(det)
def slogdet(A: Any) -> Any:
    """The signs of determinants and the logarithms of their magnitudes: 0 and -inf for a singular matrix."""
    return solving.slogdet(A)


@sections_of(det)
def matrix_exp(A: Any) -> Any:
    """The exponentials of square matrices."""
    return matrix_exponential.matrix_exp(A)


def matrix_power(A: Any, n: int) -> Any:
    """Powers of square matrices, negative ones of their inverses.

    Parameters
    ----------
    A : (..., n, n)
    n : an int.
    """
    return chains.matrix_power(A, n)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """A diagonal of matrices, as a view.

    Parameters
    ----------
    A : (..., m, n)
    offset : columns to the right of the main diagonal.
    dim1, dim2 : dimensions of rows and columns.
    """
    return diagonal_of(A, offset, dim1, dim2)


def cross(x: Any, b: Any, *, dim: int = -1) -> Any:
    """The cross product of vectors with 3 components.

    Parameters
    ----------
    x, b : (..., 3, ...), which broadcast.
    dim : the dimension of the components.
    """
    if x.ndim != b.ndim:
        raise ShapeError("linalg.cross: inputs must have the same number of dimensions.")
    return chains.cross(x, b, dim)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Sums of products of vectors' elements.

    Parameters
    ----------
    x, y : (..., n, ...), which broadcast.
    dim : the dimension of the vectors.
    """
    return total(x * lift(y), dim)


def vander(x: Any, N: Any = None) -> Any:
    """Matrices of the powers 0 ... N - 1 of elements.

    Parameters
    ----------
    x : (..., n)
    N : how many powers; n by default.

    Returns
    -------
    tensor : (..., n, N)
    """
    if x.ndim < 1:
        x = reshape(x, 1)
    count = x.shape[-1] if N is None else integer(N, "linalg.vander", "N")
    if N is not None and count <= 1:
        raise ShapeError("N must be greater than 1.")
    from common.ops.math.compare import eq, where
    from common.ops.reduce.scans import cumprod

    if x.dtype.kind == "b":
        raise DTypeError("linalg.vander: bools have no powers")
    column = expand(unsqueeze(x, -1), (*x.shape, count))
    first = broadcast_to(eq(lift(arange(count)), 0), column.shape)
    return cumprod(where(first, 1, column), -1)


_MODULES = {
    chains: ["multi_dot"],
    factorizations: ["cholesky_ex", "lu", "lu_factor", "lu_factor_ex"],
    matmul: ["matmul"],
    matrix_norms: ["cond", "matrix_norm", "norm", "vector_norm"],
    orthogonal: ["householder_product", "qr"],
    solving: ["inv", "inv_ex", "solve", "solve_ex", "solve_triangular", "tensorinv", "tensorsolve"],
    spectral: ["eigh", "eigvalsh", "lstsq", "matrix_rank", "pinv", "svd", "svdvals"],
    symmetric: ["ldl_factor", "ldl_factor_ex", "ldl_solve"],
}  # fmt: skip
#: By their names in `torch.linalg`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(module, name) for module, names in _MODULES.items() for name in names},
    "cholesky": cholesky, "cross": cross, "det": det, "diagonal": diagonal, "lu_solve": factorizations.solve_factored,
    "matrix_exp": matrix_exp, "matrix_power": matrix_power, "slogdet": slogdet, "vander": vander, "vecdot": vecdot,
}  # fmt: skip
