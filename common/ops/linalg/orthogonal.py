"""QR factors by LAPACK, and products of Householder's reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.errors import ArgumentError, GradientError, ShapeError
from common.core.op import Op
from common.core.return_types import returned
from common.core.sizes import same
from common.core.spec import Spec
from common.ops.create.creation import eye
from common.ops.linalg._lapack import lapack, matrix_samples, mT, require_matrix
from common.ops.linalg.factorizations import _least
from common.ops.linalg.matmul import matmul
from common.ops.linalg.solving import triangular
from common.ops.shape.cat import cat
from common.ops.shape.diagonal import tril_, triu_
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, unsqueeze
from common.tensor.create import lift


@returned("linalg_qr")
class QR(NamedTuple):
    """The result of `linalg.qr`: orthogonal columns, and an upper triangle."""

    Q: Any
    R: Any


@returned("geqrf")
class Geqrf(NamedTuple):
    """The result of `geqrf`: packed factors, and those of Householder's reflections."""

    a: Any
    tau: Any


def _qr_spec(x: Spec, mode: str) -> Any:
    m, n = x.shape[-2:]
    k = m if mode == "complete" else _least(m, n)
    return Spec((*x.shape[:-1], k), x.dtype), Spec((*x.shape[:-2], k, n), x.dtype)


def _qr_rule(g: Any, y: Any, mode: str) -> Any:
    q, r = y
    gq, gr = g
    if mode == "complete" and q.shape[-1] != r.shape[-1]:
        raise GradientError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols, which it is here: "
            f"{q.shape[-1]} rows and {r.shape[-1]} columns"
        )
    inner = None
    if gr is not None:
        inner = matmul(gr, mT(r))
    if gq is not None:
        of_q = matmul(mT(q), gq)
        inner = -of_q if inner is None else inner - of_q
    inner = triu_(inner, diagonal=0) + mT(triu_(inner, diagonal=1))
    found = matmul(q, inner)
    if gq is not None:
        found = found + gq
    return mT(triangular(r, mT(found), upper=True))


qr_: Op = lapack(
    "qr", ("x",), _qr_spec, (_qr_rule,), nout=2, node_name="LinalgQr", native=True,
    samples=lambda rng, dtype: [
        *matrix_samples((3, 3), mode="complete")(rng, dtype),
        *matrix_samples((2, 4, 3), (2, 2), mode="reduced")(rng, dtype),
    ],
    doc="x = Q R, Q with orthonormal columns and R upper triangular; not more columns than rows. "
        "d/dx = (gQ + Q sym(triu(gR R^T - Q^T gQ))) R^-T.",
)  # fmt: skip


def qr(A: Any, mode: str = "reduced") -> Any:
    """Matrices as products of one with orthonormal columns and an upper triangular one; signs are LAPACK's.

    Parameters
    ----------
    A : (..., m, n)
    mode : "reduced": Q (..., m, k) and R (..., k, n), k the smaller size; "complete": (..., m, m) and (..., m, n);
        "r": R of "reduced", and an empty Q.

    Raises
    ------
    ArgumentError : another mode.
    GradientError : in a backward pass, for what is not differentiable: "complete" with more rows than columns.

    Notes
    -----
    Columns beyond the square are ``Q^T`` times those of A.
    """
    require_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    m, n = A.shape[-2:]
    if not same(m, n) and n > m:
        q, r = qr_(narrow(A, -1, 0, m), mode="reduced")
        r = cat([r, matmul(mT(q), narrow(A, -1, m, n - m))], -1)
    else:
        q, r = qr_(A, mode="complete" if mode == "complete" else "reduced")
    return QR(narrow(lift(eye(1, dtype=A.dtype)).reshape(-1), 0, 0, 0), r) if mode == "r" else QR(q, r)


geqrf_: Op = lapack(
    "geqrf", ("x",), lambda x: (x, Spec((*x.shape[:-2], _least(*x.shape[-2:])), x.dtype)), nout=2,
    samples=matrix_samples((4, 3), (2, 2, 3)),
    doc="R on and above the diagonal, Householder's vectors below it, whose first ones are left out; and factors.",
)  # fmt: skip


def geqrf(x: Any) -> Any:
    """The factors of `linalg.qr` as LAPACK packs them; no gradient.

    Parameters
    ----------
    x : (..., m, n)

    Returns
    -------
    a, tau : (..., m, n) and (..., k).
    """
    require_matrix("geqrf", x, "input")
    return Geqrf(*geqrf_(x))


def _reflections(v: Any, tau: Any) -> list[tuple[Any, Any]]:
    """Householder's vectors as columns, and their factors."""
    m, k = v.shape[-2], tau.shape[-1]
    lower = tril_(narrow(v, -1, 0, k), diagonal=-1) + lift(eye(m, k, dtype=v.dtype))
    return [(narrow(lower, -1, i, 1), unsqueeze(narrow(tau, -1, i, 1), -1)) for i in range(int(k))]


def _reflected(b: Any, x: Any, tau: Any, first: bool) -> Any:
    """The product of all reflections with b; `first` says whether the first of them is applied first."""
    steps = _reflections(x, tau)
    for v, factor in steps if first else reversed(steps):
        b = b - factor * matmul(v, matmul(mT(v), b))
    if not steps:  # without any, it is a function of x and tau too
        none = narrow(x, -1, 0, 0)
        b = b - matmul(none, unsqueeze(tau, -1) * matmul(mT(none), b))
    return b


def householder_product(A: Any, tau: Any) -> Any:
    """The first columns of the product of Householder reflections ``I - tau v v^T``.

    Parameters
    ----------
    A : (..., m, n), m >= n, with the vectors v below its diagonal; their first components are 1.
    tau : (..., k), k <= n.

    Returns
    -------
    tensor : (..., m, n)
    """
    require_matrix("linalg.householder_product", A, "input")
    m, n = A.shape[-2:]
    if n > m:
        raise ShapeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
                         "input.shape[-1]")  # fmt: skip
    if tau.ndim < 1 or tau.shape[-1] > n:
        raise ShapeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
                         "tau.shape[-1]")  # fmt: skip
    return _reflected(expand(lift(eye(m, n, dtype=A.dtype)), A.shape), A, tau, False)


def ormqr(x: Any, tau: Any, b: Any, left: bool = True, transpose: bool = False) -> Any:
    """The product of a matrix with the orthogonal matrix whose Householder reflections are given.

    Parameters
    ----------
    x, tau : (..., m, k) and (..., k), as `geqrf` gives them.
    b : (..., m, n), or (..., n, m) if not `left`.
    left : ``Q b``; otherwise ``b Q``.
    transpose : with ``Q^T``.
    """
    require_matrix("ormqr", x, "input")
    if not left:
        return mT(ormqr(x, tau, mT(b), True, not transpose))
    return _reflected(b, x, tau, transpose)


__all__ = ["geqrf", "ormqr"]
