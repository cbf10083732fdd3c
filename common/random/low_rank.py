"""Factors of low rank, found with products of random matrices."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.ops import functional as F
from common.ops.linalg import orthogonal, spectral
from common.ops.linalg._lapack import mT, require_matrix
from common.random.generator import randn


def _range(A: Any, q: Any, niter: int) -> Any:
    """An orthonormal basis of `q` columns near the range of A, by subspace iteration."""
    start = randn(*A.shape[:-2], A.shape[-1], q, dtype=A.dtype)
    Q = orthogonal.qr(F.matmul(A, start)).Q
    for _ in range(niter):
        Q = orthogonal.qr(F.matmul(mT(A), Q)).Q
        Q = orthogonal.qr(F.matmul(A, Q)).Q
    return Q


def svd_lowrank(A: Any, q: int = 6, niter: int = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """U, S and V of ``A - M``, near ``U diag(S) V^T``, of rank `q`.

    Parameters
    ----------
    A : (..., m, n)
    q : the rank, somewhat above that of A.
    niter : iterations; more are nearer.
    M : (..., m, n), or broadcast to it: subtracted from A; or None.

    Raises
    ------
    ArgumentError : a negative number.
    ShapeError : A is no matrix.

    References
    ----------
    Halko, Martinsson and Tropp, Finding structure with randomness, 2011.
    """
    require_matrix("svd_lowrank", A)
    rank, times = integer(6 if q is None else q, "svd_lowrank", "q"), integer(niter, "svd_lowrank", "niter")
    m, n = A.shape[-2:]
    if not 0 <= rank <= min(m, n) or times < 0:
        raise ArgumentError(
            f"svd_lowrank(): q(={rank}) must be non-negative and not above min{(m, n)}, niter not negative"
        )
    A = A if M is None else A - M
    wide = m < n
    A = mT(A) if wide else A
    Q = _range(A, rank, times)
    found = spectral.svd(F.matmul(mT(Q), A), False)
    U, V = F.matmul(Q, found.U), mT(found.Vh)
    return (V, found.S, U) if wide else (U, found.S, V)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """`svd_lowrank` of a matrix whose columns have their means subtracted: principal components are the columns of V.

    Parameters
    ----------
    A : (..., m, n)
    q : the rank; min(6, m, n) by default.
    center : whether the means are subtracted.
    niter : iterations.

    Raises
    ------
    ArgumentError : `q` is above the sizes.
    """
    require_matrix("pca_lowrank", A)
    m, n = A.shape[-2:]
    rank = min(6, m, n) if q is None else integer(q, "pca_lowrank", "q")
    if not 0 <= rank <= min(m, n):
        raise ArgumentError(f"q(={rank}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - F.mean(A, -2, True) if center else A, rank, niter)
