"""Lower triangles of matrices as vectors, and back."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.ops.create.spaced import tril_indices


def _count(n: int, diag: int) -> int:
    """How many elements of a matrix of n rows are on or below a diagonal."""
    above = max(n - diag, 0)
    return n * n - above * (above - 1) // 2 if diag > 0 else max(n + diag, 0) * (n + diag + 1) // 2


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """A matrix whose lower triangle is a vector, row after row, and 0 above.

    Parameters
    ----------
    vec : (..., k) elements.
    diag : the last diagonal that belongs to the triangle: 0 is the main one, 1 the one above.

    Returns
    -------
    tensor : (..., n, n).

    Raises
    ------
    ArgumentError : no triangle has k elements.

    Examples
    --------
    >>> import dynamic as tw
    >>> from dynamic.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(tw.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    diag, size = integer(diag, "vec_to_tril_matrix", "diag"), int(vec.shape[-1])
    n = max(-diag, 0)
    while _count(n, diag) < size:
        n += 1
    if _count(n, diag) != size:
        raise ArgumentError(f"The size of last dimension is {size} which cannot be expressed as the lower triangular "
                            f"part of a square D x D matrix.")  # fmt: skip
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    rows, columns = tril_indices(n, n, diag)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangle of a matrix as a vector, row after row.

    Parameters
    ----------
    mat : (..., n, n).
    diag : the last diagonal that belongs to the triangle.

    Returns
    -------
    tensor : (..., k), with as many elements as the triangle has.

    Raises
    ------
    ArgumentError : a matrix without that diagonal.

    Examples
    --------
    >>> import dynamic as tw
    >>> from dynamic.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(tw.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    diag, n = integer(diag, "tril_matrix_to_vec", "diag"), int(mat.shape[-1])
    if not -n <= diag < n:
        raise ArgumentError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]
