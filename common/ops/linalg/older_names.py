"""Functions of `torch` beside `torch.linalg`, with other defaults and results."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.dtypes import int64
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer
from common.core.return_types import returned
from common.ops.index.advanced_keys import along
from common.ops.index.written_values import of_dtype
from common.ops.linalg import factorizations, orthogonal, spectral
from common.ops.linalg._lapack import mT, require_matrix
from common.ops.linalg.matmul import mm
from common.ops.linalg.spectral import svd_
from common.ops.math.arithmetic import pow
from common.ops.shape.view import unsqueeze


@returned("svd")
class OlderSVD(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    V: Any


def qr(x: Any, some: bool = True) -> Any:
    """`linalg.qr` in the mode "reduced", or "complete" where `some` is False.

    Parameters
    ----------
    x : (..., m, n)
    some : only as many columns of Q as the smaller size.
    """
    return orthogonal.qr(x, "reduced" if some else "complete")


def svd(x: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Singular vectors as columns, and singular values: ``x = U diag(S) V^T``.

    Parameters
    ----------
    x : (..., m, n)
    some : only as many columns as the smaller size.
    compute_uv : otherwise U and V are zeros.
    """
    require_matrix("linalg.svd", x)
    u, s, v = svd_(x, full=not some or not compute_uv, user="linalg.svd")
    return OlderSVD(u, s, mT(v)) if compute_uv else OlderSVD(u.detach() * 0, s, mT(v.detach() * 0))


def spmm(input: Any, mat2: Any) -> Any:
    """`mm`: there are no sparse tensors, and PyTorch takes dense ones too.

    Parameters
    ----------
    input, mat2 : (m, k) and (k, n)
    """
    return mm(input, mat2)


def orgqr(x: Any, tau: Any) -> Any:
    """`linalg.householder_product`.

    Parameters
    ----------
    x, tau : (..., m, n) and (..., k), as `geqrf` gives them.
    """
    return orthogonal.householder_product(x, tau)


def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """`linalg.pinv` with a relative tolerance.

    Parameters
    ----------
    x : (..., m, n)
    rcond : relative tolerance.
    """
    return spectral.pinv(x, rcond)


def lu(x: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors L and U in one matrix, and the exchanged rows, as `linalg.lu_factor`.

    Parameters
    ----------
    x : (..., m, n)
    pivot : exchange rows.
    get_infos : also return LAPACK's info: (LU, pivots, info).
    """
    found = factorizations.lu_factor_ex(x, pivot=pivot)
    return tuple(found) if get_infos else tuple(found)[:2]


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix of numbers: their powers, the highest first.

    Parameters
    ----------
    x : (n,)
    N : number of columns; n by default.
    increasing : the lowest power first.

    Raises
    ------
    ShapeError : `x` is no vector.
    ArgumentError : a negative number of columns.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.vander(tw.tensor([1, 2, 3]), 3)
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        raise ShapeError(f"x must be a one-dimensional tensor, got {x.ndim} dimensions")
    count = x.shape[0] if N is None else integer(N, "vander", "N")
    if count < 0:
        raise ArgumentError(f"N must be non-negative, got {count}")
    x = of_dtype(x, int64) if x.dtype.kind == "b" else x
    powers = along(count, 0)
    return pow(unsqueeze(x, 1), powers if increasing else count - 1 - powers)


__all__ = ["lu", "orgqr", "pinverse", "qr", "spmm", "svd", "vander"]
