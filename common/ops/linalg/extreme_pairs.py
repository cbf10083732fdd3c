"""The largest or smallest eigenvalues of symmetric matrices, alone or in pencils."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.ops.linalg._lapack import mT, require_one_dtype, require_square
from common.ops.linalg.factorizations import cholesky
from common.ops.linalg.solving import solve_triangular
from common.ops.linalg.spectral import eigh
from common.ops.shape.reorder import flip
from common.ops.shape.slices import narrow


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Any, Any]:
    """Extreme eigenvalues of ``A x = e B x``, and eigenvectors, of symmetric matrices.

    PyTorch iterates, which pays for sparse matrices; here LAPACK computes all pairs of ``C = L^-1 A L^-T``, where
    ``B = L L^T``, and the vectors are ``L^-T`` times those of C.

    Parameters
    ----------
    A : (..., m, m), of which the symmetric part counts, so that gradients are symmetric.
    k : how many pairs; as many as X has columns, or 1.
    B : (..., m, m), positive-definite; the identity by default.
    X : (..., m, n), where PyTorch begins.
    largest : the largest in descending order, which is the default; otherwise the smallest in ascending order.
    n, iK, niter, tol, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams : accepted; of the iteration.

    Returns
    -------
    (..., k) eigenvalues, and (..., m, k) vectors as columns, for which ``X^T B X = I``; their signs are arbitrary.

    Raises
    ------
    ArgumentError : `k` is negative, or more than m.
    ShapeError : a matrix is not square, or the two differ in size.
    LinAlgError : B is not positive-definite.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.lobpcg(tw.tensor([[2.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 1.0]]), 2)[0]
    tensor([5., 2.])
    """
    require_square("lobpcg", A)
    size = A.shape[-1]
    count = integer((1 if X is None else X.shape[-1]) if k is None else k, "lobpcg", "k")
    if not 0 <= count <= size:
        raise ArgumentError(f"lobpcg(): k={count} eigenpairs of matrices of {size} rows; use 0 <= k <= {size}")
    A = (A + mT(A)) * 0.5
    if B is None:
        values, vectors = eigh(A)
    else:
        require_square("lobpcg", B, "B")
        require_one_dtype("lobpcg", A, B)
        if B.shape[-1] != size:
            raise ShapeError(f"lobpcg(): A has {size} rows and B {B.shape[-1]}; they must be the same")
        L = cholesky(B)
        C = solve_triangular(L, mT(solve_triangular(L, A, upper=False)), upper=False)
        values, vectors = eigh(C)
        vectors = solve_triangular(mT(L), vectors, upper=True)
    if largest is None or largest:
        values, vectors = flip(values, (-1,)), flip(vectors, (-1,))
    return narrow(values, -1, 0, count), narrow(vectors, -1, 0, count)


__all__ = ["lobpcg"]
