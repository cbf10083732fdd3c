"""Eigenvalues of symmetric matrices, singular values, and functions made of them, by LAPACK."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError, ShapeError
from common.core.op import Op
from common.core.return_types import returned
from common.core.sizes import same
from common.core.spec import Spec
from common.ops.linalg._lapack import (
    in_one_batch,
    lapack,
    matrix_samples,
    mT,
    require_matrix,
    require_one_dtype,
    require_square,
    square_samples,
)  # fmt: skip
from common.ops.linalg.matmul import matmul
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import to
from common.ops.math.compare import eq, gt, maximum, where
from common.ops.reduce.reductions import amax
from common.ops.reduce.reductions import sum as total
from common.ops.shape.diagonal import diag_embed
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, reshape, unsqueeze
from common.tensor.base import TensorBase
from common.tensor.create import lift

_INT64 = np.dtype(np.int64)


def _gaps(values: Any) -> Any:
    """Differences ``v_j - v_i`` of values; 1 where they are 0."""
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1)
    return where(eq(gaps, 0), 1, gaps)


def _apart(values: Any, x: Any) -> Any:
    """x over the differences of values, and 0 between equal ones, whose vectors have no derivative."""
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1)
    return where(eq(gaps, 0), 0, x / _gaps(values))


def _eigh_rule(g: Any, y: Any) -> Any:
    values, vectors = y
    inner = None if g[0] is None else diag_embed(g[0])
    if g[1] is not None:
        turned = _apart(values, matmul(mT(vectors), g[1]))
        inner = turned if inner is None else turned + inner
    return matmul(matmul(vectors, inner), mT(vectors))


eigh_: Op = lapack(
    "eigh", ("x",), lambda x, uplo, user: (Spec(x.shape[:-1], x.dtype), x), (_eigh_rule,), nout=2,
    samples=square_samples(symmetric=True, uplo="L", user="linalg.eigh"), node_name="LinalgEigh", native=True,
    doc="Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices, of which one triangle is "
        "read. d/dx = V (diag(gw) + (V^T gV) / (w_j - w_i)) V^T, with 0 between equal eigenvalues: the derivative "
        "among symmetric matrices.",
)  # fmt: skip


eigvalsh_: Op = lapack(
    "eigvalsh", ("x",), lambda x, uplo, user: Spec(x.shape[:-1], x.dtype),
    (lambda g, x, uplo, user: _eigh_rule((g, None), eigh_(x, uplo=uplo, user=user)),),
    samples=square_samples(symmetric=True, uplo="L", user="linalg.eigvalsh"), node_name="LinalgEigh", native=True,
    doc="Eigenvalues in ascending order of symmetric matrices, of which one triangle is read, without eigenvectors. "
        "d/dx = V diag(g) V^T with those of eigh.",
)  # fmt: skip


def _svd_rule(g: Any, y: Any) -> Any:
    u, s, v = y
    gu, gs, gv = g
    m, n, k = u.shape[-2], v.shape[-1], s.shape[-1]
    if _differ(u.shape[-1], k) or _differ(v.shape[-2], k):  # of full matrices, the part that is determined
        u, v = narrow(u, -1, 0, k), narrow(v, -2, 0, k)
        gu, gv = None if gu is None else narrow(gu, -1, 0, k), None if gv is None else narrow(gv, -2, 0, k)
    row, column = unsqueeze(s, -2), unsqueeze(s, -1)
    inner = None if gs is None else diag_embed(gs)
    found = None
    squares = s * s
    if gu is not None:
        of_u = matmul(mT(u), gu)
        part = _apart(squares, of_u - mT(of_u)) * row
        inner = part if inner is None else inner + part
        if _differ(m, k):
            found = matmul(_divided(gu - matmul(u, of_u), row), v)
    if gv is not None:
        of_v = matmul(v, mT(gv))
        part = column * _apart(squares, of_v - mT(of_v))
        inner = part if inner is None else inner + part
        if _differ(n, k):
            beyond = matmul(u, _divided(gv - matmul(mT(of_v), v), column))
            found = beyond if found is None else found + beyond
    within = matmul(matmul(u, inner), v)
    return within if found is None else found + within


def _differ(m: Any, n: Any) -> bool:
    """Whether two sizes differ in this call."""
    return not same(m, n) and bool(m != n)


def _divided(x: Any, s: Any) -> Any:
    """x over singular values, 0 for those that are 0."""
    return where(eq(s, 0), 0, x / where(eq(s, 0), 1, s))


def _svd_spec(x: Spec, full: bool, user: str) -> Any:
    m, n = x.shape[-2:]
    k = m if same(m, n) or m <= n else n
    rows, columns = (m, n) if full else (k, k)
    lead = x.shape[:-2]
    return Spec((*lead, m, rows), x.dtype), Spec((*lead, k), x.dtype), Spec((*lead, columns, n), x.dtype)


svd_: Op = lapack(
    "svd", ("x",), _svd_spec, (_svd_rule,), nout=3, node_name="LinalgSvd",
    samples=lambda rng, dtype: matrix_samples((3, 3), (2, 4, 3), (2, 3), full=False, user="linalg.svd")(rng, dtype),
    doc="x = U diag(s) V, s in descending order. d/dx = U (S skew(V gV^T) / E + skew(U^T gU) / E S + diag(gs)) V and, "
        "beyond the square, (1 - U U^T) gU S^-1 V + U S^-1 gV (1 - V^T V); E = s_j^2 - s_i^2, 0 between equal ones.",
)  # fmt: skip


svdvals_: Op = lapack(
    "svdvals", ("x",), lambda x, user: _svd_spec(x, False, user)[1],
    (lambda g, x, user: _svd_rule((None, g, None), svd_(x, full=False, user=user)),),
    samples=lambda rng, dtype: matrix_samples((3, 3), (2, 4, 3), (2, 3), user="linalg.svdvals")(rng, dtype),
    node_name="LinalgSvd", native=True,
    doc="Singular values in descending order, without vectors. d/dx = U diag(g) V with those of svd.",
)  # fmt: skip


def _pinv_rule(g: Any, y: Any, x: Any) -> Any:
    turned, back = mT(g), mT(y)
    left = turned - matmul(x, matmul(y, turned))
    right = turned - matmul(matmul(turned, y), x)
    return (
        matmul(matmul(left, y), back)
        + matmul(back, matmul(y, right))
        - matmul(matmul(back, g), back)
    )  # fmt: skip


pinv_: Op = lapack(
    "pinv", ("x", "atol", "rtol"),
    lambda x, atol, rtol, hermitian: Spec((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype), (_pinv_rule,),
    samples=lambda rng, dtype: [
        ((x, np.zeros(x.shape[:-2], dtype), np.full(x.shape[:-2], 1e-6, dtype)), a)
        for (x,), a in matrix_samples((3, 3), (2, 4, 3), (3, 4), hermitian=False)(rng, dtype)
    ], node_name="LinalgPinv",
    doc="Pseudoinverses; singular values up to max(atol, rtol times the largest) count as 0. d/dx = "
        "(1 - x y) g^T y y^T + y^T y g^T (1 - y x) - y^T g y^T.",
)  # fmt: skip


@returned("linalg_eigh")
class Eigh(NamedTuple):
    """The result of `linalg.eigh`."""

    eigenvalues: Any
    eigenvectors: Any


@returned("linalg_svd")
class SVD(NamedTuple):
    """The result of `linalg.svd`."""

    U: Any
    S: Any
    Vh: Any


@returned("linalg_lstsq")
class Lstsq(NamedTuple):
    """The result of `linalg.lstsq`; fields that the driver does not find are empty."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


def eigh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices.

    Parameters
    ----------
    A : (..., n, n), of which one triangle is read.
    UPLO : "L" or "U".

    Returns
    -------
    eigenvalues, eigenvectors : (..., n) and (..., n, n).

    Raises
    ------
    LinAlgError : no convergence: there are elements that are not finite.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.linalg.eigh(tw.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return Eigh(*eigh_(A, uplo=_triangle("linalg.eigh", A, UPLO), user="linalg.eigh"))


def _triangle(name: str, A: Any, UPLO: Any) -> str:
    require_square(name, A)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of symmetric matrices in ascending order.

    Parameters
    ----------
    A : (..., n, n), of which one triangle is read.
    UPLO : "L" or "U".
    """
    return eigvalsh_(A, uplo=_triangle("linalg.eigvalsh", A, UPLO), user="linalg.eigvalsh")


def svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """Singular vectors and values: ``A = U diag(S) Vh``.

    Parameters
    ----------
    A : (..., m, n)
    full_matrices : U (..., m, m) and Vh (..., n, n); otherwise k columns and rows, k the smaller size.
    driver : None: there is one.

    Raises
    ------
    LinAlgError : no convergence: there are elements that are not finite.
    """
    require_matrix("linalg.svd", A)
    if driver is not None:
        raise ArgumentError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs")
    return SVD(*svd_(A, full=bool(full_matrices), user="linalg.svd"))


def svdvals(A: Any, *, driver: Any = None) -> Any:
    """Singular values in descending order.

    Parameters
    ----------
    A : (..., m, n)
    driver : None: there is one.
    """
    require_matrix("linalg.svdvals", A)
    if driver is not None:
        raise ArgumentError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs")
    return svdvals_(A, user="linalg.svdvals")


def _tolerance(name: str, x: Any, like: Any, default: float) -> Any:
    if x is None:
        x = default
    if not isinstance(x, TensorBase):
        x = lift(np.asarray(x, like.dtype))
    if x.dtype.kind != "f":
        x = to(x, dtype=like.dtype, x_dtype=x.dtype)
    return expand(to(x, dtype=like.dtype, x_dtype=x.dtype), like.shape[:-2])


def _tolerances(name: str, A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Absolute and relative tolerance; without any, relative by the larger size."""
    default = 0.0 if atol is not None and rtol is None else _epsilon(A)
    if atol is not None and rtol is None and not isinstance(atol, TensorBase) and atol <= 0:
        default = _epsilon(A)
    return _tolerance(name, atol, A, 0.0), _tolerance(name, rtol, A, default)


def _epsilon(A: Any) -> Any:
    m, n = A.shape[-2:]
    return float(np.finfo(A.dtype).eps) * (m if same(m, n) or m >= n else n)


def pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The pseudoinverses of matrices by Moore and Penrose.

    Parameters
    ----------
    A : (..., m, n)
    rcond : another name of `rtol`.
    hermitian : the matrices are symmetric; their eigenvalues are taken.
    atol, rtol : numbers, or tensors that broadcast with the batch; singular values up to max(atol, rtol times the
        largest) count as 0. By default rtol is the larger size times the dtype's epsilon, and 0 if atol is given.
    """
    require_square("linalg.pinv", A) if hermitian else require_matrix("linalg.pinv", A)
    absolute, relative = _tolerances("linalg.pinv", A, atol, rcond if rtol is None else rtol)
    return pinv_(A, absolute.detach(), relative.detach(), hermitian=bool(hermitian))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """How many singular values exceed a tolerance; int64.

    Parameters
    ----------
    A : (..., m, n)
    tol : another name of `atol`, with an `rtol` of 0.
    hermitian : the matrices are symmetric; magnitudes of their eigenvalues are taken.
    atol, rtol : as for `linalg.pinv`.
    """
    name = "linalg.matrix_rank"
    require_square(name, A) if hermitian else require_matrix(name, A)
    A = A.detach()
    if tol is not None:
        absolute = tol if isinstance(tol, TensorBase) else lift(np.asarray(tol, A.dtype))
        relative: Any = lift(np.asarray(0, A.dtype))
    else:
        absolute, relative = _tolerances(name, A, atol, rtol)
    s = eigvalsh_(A, uplo="L", user=name).abs() if hermitian else svdvals(A)
    if same(s.shape[-1], 0) or s.shape[-1] == 0:
        return total(to(s, dtype=_INT64, x_dtype=s.dtype), (-1,))
    cut = maximum(absolute, relative * amax(s, -1))
    return total(gt(s, unsqueeze(cut, -1)), -1)


def _inverse(a: Any) -> Any:
    """`pinv` in a rule: the tolerances are made of its operand, so that they are of its kind."""
    absolute = zeros_like(total(a, (-2, -1)))
    return pinv_(a, absolute, absolute + _epsilon(a), hermitian=False)


def _lstsq_rule_a(g: Any, a: Any, b: Any) -> Any:
    return _pinv_rule(matmul(g[0], mT(b)), _inverse(a), a)


lstsq_: Op = lapack(
    "lstsq", ("a", "b"),
    lambda a, b, rcond, driver: (
        Spec((*a.shape[:-2], a.shape[-1], b.shape[-1]), a.dtype), Spec(a.shape[:-2], _INT64)
    ),
    (_lstsq_rule_a, lambda g, a: matmul(mT(_inverse(a)), g[0])), nout=2, node_name="LinalgLstsq",
    samples=lambda rng, dtype: [
        ((x, np.asarray(rng.normal(size=(*x.shape[:-1], 2)), dtype)), a)
        for (x,), a in matrix_samples((3, 3), (2, 4, 3), rcond=None, driver="gelsd")(rng, dtype)
    ],
    doc="The x of least |x| among those with least |a x - b|; ranks. d/db = (a^+)^T g, d/da by that "
        "of the pseudoinverse.",
)  # fmt: skip


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """Solutions of least squares: the x with the least ``|A x - B|``.

    Parameters
    ----------
    A : (..., m, n)
    B : (..., m, k), or (..., m).
    rcond : singular values up to rcond times the largest count as 0; by default the larger size times epsilon.
    driver : "gelsy" (default), "gelsd", "gelss", or "gels" for matrices of full rank.

    Returns
    -------
    solution, residuals, rank, singular_values : residuals, sums of squares, where m > n and the rank is full;
        singular values of "gelsd" and "gelss"; the rank of all but "gels".
    """
    name = "torch.linalg.lstsq"
    require_matrix(name, A, "input")
    require_one_dtype(name, A, B)
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if B.ndim < 1:
        raise ShapeError(f"{name}: other must have at least 1 dimension.")
    vector = B.ndim == A.ndim - 1
    if vector:
        B = unsqueeze(B, -1)
    m, n = A.shape[-2:]
    if not same(m, B.shape[-2]) and m != B.shape[-2]:
        raise ShapeError(f"{name}: input.size(-2) should match other.size({'-1' if vector else '-2'})")
    A, B = in_one_batch(name, (A, 2), (B, 2))
    known = float(rcond) if rcond is not None else None
    how = "gelsy" if driver == "gels" else driver
    x, rank = lstsq_(A, B, rcond=known, driver=how)
    residuals = reshape(narrow(x, -1, 0, 0), (0,))  # a function of the operands, without elements too
    if not same(m, n) and m > n and driver != "gelsy":
        rest = matmul(A, x) - B
        residuals = total(rest * rest, -2)
    return Lstsq(
        reshape(x, x.shape[:-1]) if vector else x,
        residuals,
        lift(np.zeros(0, _INT64)) if driver == "gels" else rank,
        svdvals(A.detach()) if driver in ("gelsd", "gelss") else lift(np.zeros(0, A.dtype)),
    )

