"""LDL factors of symmetric matrices by LAPACK."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ShapeError
from common.core.op import Op
from common.core.return_types import returned
from common.core.spec import Spec
from common.ops.linalg._lapack import in_one_batch, lapack, require_one_dtype, require_square, square_samples
from common.ops.linalg.factorizations import _INT32


@returned("linalg_ldl_factor")
class LDL(NamedTuple):
    """The result of `linalg.ldl_factor`: the packed factors, and pivots."""

    LD: Any
    pivots: Any


@returned("linalg_ldl_factor_ex")
class LDLEx(NamedTuple):
    """The result of `linalg.ldl_factor_ex`: `LDL`, and LAPACK's info."""

    LD: Any
    pivots: Any
    info: Any


ldl_: Op = lapack(
    "ldl", ("x",), lambda x: (x, Spec(x.shape[:-1], _INT32), Spec(x.shape[:-2], _INT32)), nout=3,
    samples=square_samples(symmetric=True), node_name="LinalgLdlFactorEx",
    doc="The factors of symmetric indefinite matrices, by Bunch and Kaufman, from the lower triangle.",
)  # fmt: skip


ldl_solve_: Op = lapack(
    "ldl_solve", ("packed", "pivots", "b"), lambda packed, pivots, b: b,
    (None, None, lambda g, packed, pivots: ldl_solve_(packed, pivots, g)), node_name="LinalgLdlSolve",
    samples=lambda rng, dtype: [((np.asarray(np.diag([2.0, 3.0, 4.0]), dtype), np.array([1, 2, 3], np.int32),
                                  np.asarray(rng.normal(size=(3, 2)), dtype)), {})],
    doc="The solution of A x = b from the factors of ldl. d/db = A^-1 g.",
)  # fmt: skip


def ldl_factor(A: Any, *, hermitian: bool = False) -> Any:
    """The factors of symmetric matrices that need not be positive-definite, for `linalg.ldl_solve`; no gradient.

    Parameters
    ----------
    A : (..., n, n)
    hermitian : the same for real matrices.
    """
    require_square("torch.linalg.ldl_factor_ex", A)
    return LDL(*ldl_(A)[:2])


def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """`ldl_factor`, and LAPACK's info.

    Parameters
    ----------
    A : (..., n, n)
    hermitian : the same for real matrices.
    check_errors : accepted; an exact zero in D is found by `linalg.ldl_solve`.
    """
    require_square("torch.linalg.ldl_factor_ex", A)
    return LDLEx(*ldl_(A))


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:
    """The solution of ``A x = B`` from the factors of `linalg.ldl_factor`.

    Parameters
    ----------
    LD, pivots : (..., n, n) and (..., n).
    B : (..., n, k)
    hermitian : the same for real matrices.
    """
    require_square("torch.linalg.ldl_solve", LD, "LD")
    require_one_dtype("torch.linalg.ldl_solve", LD, B)
    if B.ndim < 2:
        raise ShapeError("torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has "
                         f"{B.ndim} dimensions instead")  # fmt: skip
    return ldl_solve_(*in_one_batch("torch.linalg.ldl_solve", (LD, 2), (pivots, 1), (B, 2)))


__all__: list[str] = []
