"""Triangular and orthogonal factors of matrices: Cholesky's, LU, QR and LDL, by LAPACK."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.core.dtypes import bool_
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import flag
from common.core.op import Op
from common.core.return_types import returned
from common.core.sizes import same
from common.core.spec import Spec
from common.ops.create.creation import arange
from common.ops.index.gather import gather_
from common.ops.linalg._lapack import (
    identity_like,
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
from common.ops.linalg.solving import triangular
from common.ops.math.cast import to
from common.ops.math.compare import eq
from common.ops.shape.cat import cat
from common.ops.shape.diagonal import tril_, triu_
from common.ops.shape.slices import narrow
from common.ops.shape.view import expand, unsqueeze
from common.ops.sort.sorting import argsort_
from common.tensor.create import lift

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def _halved(x: Any) -> Any:
    """The symmetric matrix whose lower triangle is half that of x."""
    return (tril_(x, diagonal=0) + mT(tril_(x, diagonal=-1))) * 0.5


def _cholesky_rule(g: Any, first: Any) -> Any:
    factor = first[0]
    inner = triangular(mT(factor), _halved(matmul(mT(factor), g[0])), upper=True)
    return mT(triangular(mT(factor), mT(inner), upper=True))


cholesky_: Op = lapack(
    "cholesky", ("x",), lambda x, user: (x, Spec(x.shape[:-2], _INT32)), (_cholesky_rule,), nout=2,
    samples=square_samples(symmetric=True, user=""), node_name="LinalgCholeskyEx", native=True,
    doc="The lower triangular L with x = L L^T, from the lower triangle of x; and LAPACK's info. "
        "d/dx = L^-T (p + p^T - diag) / 2 L^-1, p = tril(L^T g): the derivative among symmetric matrices.",
)  # fmt: skip


def cholesky(x: Any, upper: bool = False) -> Any:
    """The triangular factor L of symmetric positive-definite matrices, ``x = L L^T``; only one triangle is read.

    Parameters
    ----------
    x : (..., n, n)
    upper : return ``L^T``, from the upper triangle.

    Raises
    ------
    ShapeError, DTypeError : `x` is no batch of floating-point square matrices.
    LinAlgError : a matrix is not positive-definite.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.linalg.cholesky(tw.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _cholesky("linalg.cholesky", x, upper, "linalg.cholesky")[0]


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`cholesky`, and LAPACK's info: 0, or the order of the first leading minor that is not positive-definite.

    Parameters
    ----------
    A : (..., n, n)
    upper : return ``L^T``, from the upper triangle.
    check_errors : raise as `cholesky` does.

    Returns
    -------
    L, info : (..., n, n) and int32 of the batch's shape.
    """
    return CholeskyEx(*_cholesky("linalg.cholesky_ex", A, upper, "linalg.cholesky_ex" if check_errors else ""))


@returned("linalg_cholesky_ex")
class CholeskyEx(NamedTuple):
    """The result of `linalg.cholesky_ex`: the factor, and LAPACK's info."""

    L: Any
    info: Any


def _cholesky(name: str, x: Any, upper: bool, user: str) -> Any:
    require_square(name, x)
    factor, info = cholesky_(mT(x) if upper else x, user=user)
    return mT(factor) if upper else factor, info


def cholesky_solve(x: Any, input2: Any, upper: bool = False) -> Any:
    """The solution of ``A x = b`` for the A whose Cholesky factor is given.

    Parameters
    ----------
    x : (..., n, k), the right-hand side.
    input2 : (..., n, n), lower triangular.
    upper : it is upper triangular.

    Raises
    ------
    ShapeError, DTypeError : operands that do not fit.
    """
    for operand, name in ((x, "b"), (input2, "A")):
        if operand.ndim < 2:
            raise ShapeError(f"{name} should have at least 2 dimensions, but has {operand.ndim} dimensions instead")
    require_square("cholesky_solve", input2)
    require_one_dtype("cholesky_solve", x, input2)
    if not same(x.shape[-2], input2.shape[-1]) and x.shape[-2] != input2.shape[-1]:
        raise ShapeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.shape[-1]} by {input2.shape[-1]} "
            f"but each b matrix is {x.shape[-2]} by {x.shape[-1]}"
        )
    x, factor = in_one_batch("cholesky_solve", (x, 2), (input2, 2))
    lower = mT(factor) if upper else factor
    return triangular(mT(lower), triangular(lower, x, upper=False), upper=True)


def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """The inverse of the matrix whose Cholesky factor is given.

    Parameters
    ----------
    x : (..., n, n), lower triangular.
    upper : it is upper triangular.
    """
    require_square("cholesky_inverse", x)
    return cholesky_solve(identity_like(x), x, upper)


# ------------------------------------------------------------------------------------------------------------------ LU
@returned("linalg_lu")
class LU(NamedTuple):
    """The result of `linalg.lu` and `lu_unpack`: a permutation, and both factors."""

    P: Any
    L: Any
    U: Any


@returned("linalg_lu_factor")
class LUFactor(NamedTuple):
    """The result of `linalg.lu_factor`: both factors in one matrix, and the rows that were exchanged, from 1 on."""

    LU: Any
    pivots: Any


@returned("linalg_lu_factor_ex")
class LUFactorEx(NamedTuple):
    """The result of `linalg.lu_factor_ex`: `LUFactor`, and LAPACK's info."""

    LU: Any
    pivots: Any
    info: Any


def _lu_spec(x: Spec, user: str) -> Any:
    rows, columns = x.shape[-2:]
    lead = x.shape[:-2]
    return x, Spec((*lead, _least(rows, columns)), _INT32), Spec(lead, _INT32)


def _least(m: Any, n: Any) -> Any:
    """The smaller of two sizes."""
    return m if same(m, n) or m <= n else n


def _packed_rule(g: Any, y: Any) -> Any:
    packed, pivots, _ = y
    g = g[0]
    m, n = packed.shape[-2:]
    k = _least(m, n)
    square = narrow(narrow(packed, -2, 0, k), -1, 0, k)
    upper, lower = triu_(square, diagonal=0), _unit(square)
    of_square = narrow(narrow(g, -2, 0, k), -1, 0, k)
    g_lower, g_upper = tril_(of_square, diagonal=-1), triu_(of_square, diagonal=0)
    below = right = None
    if not same(m, k) and m > k:  # the rows below are A2 U^-1
        rows = narrow(packed, -2, k, m - k)
        below = mT(triangular(upper, mT(narrow(g, -2, k, m - k)), upper=True))
        g_upper = g_upper - triu_(matmul(mT(rows), below), diagonal=0)
    if not same(n, k) and n > k:  # the columns to the right are L^-1 A2
        columns = narrow(packed, -1, k, n - k)
        right = triangular(mT(lower), narrow(g, -1, k, n - k), upper=True, unit=True)
        g_lower = g_lower - tril_(matmul(right, mT(columns)), diagonal=-1)
    inner = tril_(matmul(mT(lower), g_lower), diagonal=-1) + triu_(matmul(g_upper, mT(upper)), diagonal=0)
    inner = triangular(mT(lower), inner, upper=True, unit=True)
    found = mT(triangular(upper, mT(inner), upper=True))
    if below is not None:
        found = cat([found, below], -2)
    if right is not None:
        found = cat([found, right], -1)
    return _rows(found, argsort_(permutation_(pivots, rows=m), descending=False))


def _unit(packed: Any) -> Any:
    """The lower factor of packed ones."""
    return tril_(packed, diagonal=-1) + identity_like(packed)


permutation_: Op = lapack(
    "permutation", ("pivots",), lambda pivots, rows: Spec((*pivots.shape[:-1], rows), _INT64),
    samples=lambda rng, dtype: [((np.array([[3, 2, 3], [1, 3, 3]], np.int32),), {"rows": 4})],
    doc="Where each row stood before rows were exchanged as LAPACK's pivots say.",
    native="common.kernels.linalg.exchanges",
)  # fmt: skip


def _rows(x: Any, order: Any) -> Any:
    """The rows of matrices in an order."""
    return gather_(x, expand(unsqueeze(order, -1), tuple(x.shape)), dim=x.ndim - 2)


lu_: Op = lapack(
    "lu", ("x",), _lu_spec, (_packed_rule,), nout=3,
    samples=lambda rng, dtype: [c for s in ((3, 3), (2, 4, 3), (3, 5)) for c in matrix_samples(s, user="")(rng, dtype)],
    doc="x = P L U with partial pivoting: L below the diagonal, whose ones are left out, and U in one matrix; the rows "
        "exchanged; LAPACK's info. d/dx = P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T for square x.",
    node_name="LinalgLuFactorEx", native=True,
)  # fmt: skip


def _lu(name: str, x: Any, pivot: bool, user: str) -> Any:
    require_matrix(name, x)
    if not flag(pivot, name, "pivot"):
        raise ArgumentError(f"{name}: LU without pivoting is not implemented on the CPU")
    return lu_(x, user=user)


def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """The factors of ``A = P L U`` in one matrix, and the rows that partial pivoting has exchanged.

    Parameters
    ----------
    A : (..., m, n)
    pivot : True.

    Raises
    ------
    LinAlgError : U has a zero on its diagonal.
    """
    return LUFactor(*_lu("linalg.lu_factor", A, pivot, "linalg.lu_factor")[:2])


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`lu_factor`, and LAPACK's info: 0, or which diagonal element of U is 0.

    Parameters
    ----------
    A : (..., m, n)
    pivot : True.
    check_errors : raise as `lu_factor` does.
    """
    return LUFactorEx(*_lu("linalg.lu_factor_ex", A, pivot, "linalg.lu_factor_ex" if check_errors else ""))


def lu(A: Any, *, pivot: bool = True) -> Any:
    """A permutation P, a lower L with ones on its diagonal and an upper U with ``A = P L U``.

    Parameters
    ----------
    A : (..., m, n)
    pivot : True.

    Returns
    -------
    P, L, U : (..., m, m), (..., m, k) and (..., k, n), k the smaller of m and n.
    """
    packed, pivots, _ = _lu("linalg.lu", A, pivot, "")
    return lu_unpack(packed, pivots)


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """The matrices P, L and U that `linalg.lu_factor` has packed.

    Parameters
    ----------
    LU_data, LU_pivots : (..., m, n) and (..., k).
    unpack_data, unpack_pivots : which of them are wanted; the others are empty.
    """
    require_matrix("lu_unpack", LU_data, "LU_data")
    if LU_pivots.dtype != np.int32:
        raise ArgumentError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    m, n = LU_data.shape[-2:]
    k = _least(m, n)
    none = narrow(LU_data.reshape(-1), 0, 0, 0).detach()
    P = none
    if unpack_pivots:
        rows, places = unsqueeze(lift(arange(m)), -1), unsqueeze(permutation_(LU_pivots, rows=m), -2)
        P = to(eq(rows, places), dtype=LU_data.dtype, x_dtype=bool_)
    if not unpack_data:
        return LU(P, none, none)
    return LU(P, _unit(narrow(LU_data, -1, 0, k)), triu_(narrow(LU_data, -2, 0, k), diagonal=0))


def solve_factored(LU: Any, pivots: Any, B: Any, left: bool = True, adjoint: bool = False) -> Any:
    """The solution of ``A x = B`` from the factors of A.

    Parameters
    ----------
    LU, pivots : (..., n, n) and (..., n), as `linalg.lu_factor` gives them.
    B : (..., n, k)
    left : solve ``A x = B``; otherwise ``x A = B``, with B (..., k, n).
    adjoint : with ``A^T`` in the place of A.
    """
    left, adjoint = flag(left, "linalg.lu_solve", "left"), flag(adjoint, "linalg.lu_solve", "adjoint")
    require_square("linalg.lu_solve", LU, "LU")
    require_one_dtype("linalg.lu_solve", LU, B)
    if B.ndim < 2:
        raise ShapeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    if not left:
        return mT(solve_factored(LU, pivots, mT(B), True, not adjoint))
    n = LU.shape[-1]
    if not same(n, B.shape[-2]) and n != B.shape[-2]:
        raise ShapeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and {B.shape[-2]}x"
            f"{B.shape[-1]})"
        )
    packed, pivots, B = in_one_batch("linalg.lu_solve", (LU, 2), (pivots, 1), (B, 2))
    order = permutation_(pivots, rows=n)
    if adjoint:
        inner = triangular(mT(packed), triangular(mT(triu_(packed, diagonal=0)), B, upper=False), upper=True, unit=True)
        return _rows(inner, argsort_(order, descending=False))
    return triangular(packed, triangular(packed, _rows(B, order), upper=False, unit=True), upper=True)


def lu_solve(x: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The solution of a system of equations from the factors of its matrix.

    Parameters
    ----------
    x : (..., n, k), the right-hand side.
    LU_data, LU_pivots : as `linalg.lu_factor` gives them.
    """
    return solve_factored(LU_data, LU_pivots, x)


# ------------------------------------------------------------------------------------------------------------------ QR


# ----------------------------------------------------------------------------------------------------------------- LDL


__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "lu_solve", "lu_unpack",
]  # fmt: skip
