"""Systems of linear equations, inverses and determinants: of small matrices by elimination, of others by LAPACK."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.core.dispatch import called
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import flag, integer, integers
from common.core.op import Op
from common.core.return_types import returned
from common.core.sizes import same
from common.core.spec import Spec, numel
from common.ops.linalg._lapack import (
    in_one_batch,
    lapack,
    mT,
    require_one_dtype,
    require_square,
    square_samples,
)  # fmt: skip
from common.ops.linalg.matmul import matmul
from common.ops.math.compare import eq, where
from common.ops.reduce.reductions import sum as total
from common.ops.shape.diagonal import tril_, triu_
from common.ops.shape.reorder import movedim
from common.ops.shape.view import reshape, unsqueeze

_INT32 = np.dtype(np.int32)


def triangular(a: Any, b: Any, *, upper: bool, unit: bool = False) -> Any:
    """`solve_triangular_` by short names, for rules."""
    return solve_triangular_(a, b, upper=upper, unitriangular=unit)


def _one_triangle(x: Any, upper: bool, unitriangular: bool) -> Any:
    return triu_(x, diagonal=int(unitriangular)) if upper else tril_(x, diagonal=-int(unitriangular))


solve_triangular_: Op = lapack(
    "solve_triangular", ("a", "b"), lambda a, b, upper, unitriangular: b,
    (lambda g, y, a, upper, unitriangular: -_one_triangle(
        matmul(triangular(mT(a), g, upper=not upper, unit=unitriangular), mT(y)), upper, unitriangular),
     lambda g, a, upper, unitriangular: triangular(mT(a), g, upper=not upper, unit=unitriangular)),
    samples=lambda rng, dtype: [
        *square_samples((3, 2), upper=True, unitriangular=False)(rng, dtype),
        *square_samples((3, 2), upper=False, unitriangular=True)(rng, dtype),
    ],
    doc="The solution of a x = b for a triangular a, of which one triangle is read. d/db = a^-T g, "
        "d/da = -(a^-T g) x^T in the triangle.", node_name="LinalgSolveTriangular", native=True,
)  # fmt: skip

solve_: Op = lapack(
    "solve", ("a", "b"), lambda a, b, user: (b, Spec(a.shape[:-2], _INT32)),
    (lambda g, first, a, user: -matmul(solve_(mT(a), g[0], user=user)[0], mT(first[0])),
     lambda g, a, user: solve_(mT(a), g[0], user=user)[0]),
    nout=2, samples=square_samples((3, 2), user=""), node_name="LinalgSolveEx",
    native=True,
    doc="The solution of a x = b, and LAPACK's info. d/db = a^-T g, d/da = -(a^-T g) x^T.",
)  # fmt: skip

inv_: Op = lapack(
    "inv", ("x",), lambda x, user: (x, Spec(x.shape[:-2], _INT32)),
    (lambda g, first: 0 - matmul(matmul(mT(first[0]), g[0]), mT(first[0])),), nout=2,
    samples=square_samples(user=""), node_name="LinalgInvEx", native=True,
    doc="The inverses, and LAPACK's info. d/dx = 0 - y^T g y^T, without negative zeros.",
)  # fmt: skip

_det: Op = lapack(
    "det", ("x",), lambda x: Spec(x.shape[:-2], x.dtype),
    (lambda g, x: cofactors_(x) * _as_matrices(g),), samples=square_samples(), node_name="LinalgDet", native=True,
    doc="Determinants, from LU factors. d/dx is the matrix of cofactors, also of singular matrices.",
)  # fmt: skip


def _as_matrices(g: Any) -> Any:
    return unsqueeze(unsqueeze(g, -1), -1)


def _cofactors_rule(g: Any, y: Any, x: Any) -> Any:
    inner = _as_matrices(total(y * g, (-2, -1)))
    return (inner * y - matmul(matmul(y, mT(g)), y)) / _as_matrices(_det(x))


cofactors_: Op = lapack(
    "cofactors", ("x",), lambda x: x, (_cofactors_rule,), samples=square_samples(), native=True,
    doc="The matrices of cofactors, det(x) x^-T where there is an inverse. d/dx = (<C, g> C - C g^T C) / det(x).",
)  # fmt: skip

slogdet_: Op = lapack(
    "slogdet", ("x",), lambda x: (Spec(x.shape[:-2], x.dtype),) * 2,
    (lambda g, x: None if g[1] is None else mT(inv_(x, user="")[0]) * _as_matrices(g[1]),),
    nout=2, samples=square_samples(), node_name="LinalgSlogdet", native=True,
    doc="The signs of determinants, and the logarithms of their magnitudes. d/dx of the logarithm = x^-T.",
)  # fmt: skip


@returned("linalg_solve_ex")
class SolveEx(NamedTuple):
    """The result of `linalg.solve_ex`: the solution, and LAPACK's info."""

    result: Any
    info: Any


@returned("linalg_inv_ex")
class InvEx(NamedTuple):
    """The result of `linalg.inv_ex`: the inverse, and LAPACK's info."""

    inverse: Any
    info: Any


@returned("linalg_slogdet")
class Slogdet(NamedTuple):
    """The result of `slogdet`: signs, and logarithms of magnitudes."""

    sign: Any
    logabsdet: Any


def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """The solution of ``A x = B``.

    Parameters
    ----------
    A : (..., n, n)
    B : (..., n, k), or (n,), or (..., n) with the batch dimensions of A.
    left : otherwise solve ``x A = B`` with B (..., k, n).

    Raises
    ------
    LinAlgError : a matrix is singular.
    ShapeError, DTypeError : operands that do not fit.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.linalg.solve(tw.tensor([[2.0, 0.0], [0.0, 4.0]]), tw.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return _solve("linalg.solve", A, B, left, "linalg.solve")[0]


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """`solve`, and LAPACK's info: 0, or which diagonal element of U is 0; then the solution is nan.

    Parameters
    ----------
    A, B : as for `solve`.
    left : as for `solve`.
    check_errors : raise as `solve` does.
    """
    return SolveEx(*_solve("linalg.solve_ex", A, B, left, "linalg.solve_ex" if check_errors else ""))


def _solve(name: str, A: Any, B: Any, left: bool, user: str) -> Any:
    left = flag(left, name, "left")
    require_square(name, A)
    require_one_dtype(name, A, B)
    if B.ndim == 0:
        raise ShapeError(f"{name}: The input tensor B must have at least 1 dimension, but it is 0-dimensional")
    vector = B.ndim == 1 or (
        A.ndim - 1 == B.ndim and all(same(m, n) or m == n for m, n in zip(B.shape, A.shape[:-1], strict=True))
    )
    if vector:
        if not left:
            raise ArgumentError(
                f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                f"{name} is equivalent to B / A.squeeze(-1)"
            )
        B = unsqueeze(B, -1)
    if not left:
        B = mT(B)
    n = A.shape[-1]
    if not same(n, B.shape[-2]) and n != B.shape[-2]:
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({n}x{n} and {'x'.join(map(str, B.shape[-2:]))})"
        )
    A, B = in_one_batch(name, (A, 2), (B, 2))
    found, info = solve_(A if left else mT(A), B, user=user)
    if not left:
        found = mT(found)
    return (reshape(found, found.shape[:-1]) if vector else found), info


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The solution of ``A x = B`` for triangular A; a zero on the diagonal gives infinities, not an error.

    Parameters
    ----------
    A : (..., n, n), of which one triangle is read.
    B : (..., n, k); (..., k, n) if not `left`.
    upper : which triangle.
    left : otherwise solve ``x A = B``.
    unitriangular : take the diagonal as ones.
    """
    name = "linalg.solve_triangular"
    upper, left, unitriangular = (
        flag(value, name, argument)
        for value, argument in ((upper, "upper"), (left, "left"), (unitriangular, "unitriangular"))
    )
    require_square(name, A)
    require_one_dtype(name, A, B)
    if B.ndim < 2:
        raise ShapeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if not left:
        return mT(solve_triangular(mT(A), mT(B), upper=not upper, unitriangular=unitriangular))
    n = A.shape[-1]
    if not same(n, B.shape[-2]) and n != B.shape[-2]:
        raise ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and "
            f"{'x'.join(map(str, B.shape[-2:]))})"
        )
    A, B = in_one_batch(name, (A, 2), (B, 2))
    return solve_triangular_(A, B, upper=upper, unitriangular=unitriangular)


@returned("triangular_solve")
class Triangular(NamedTuple):
    """The result of `triangular_solve`: the solution, and the matrix."""

    solution: Any
    cloned_coefficient: Any


def triangular_solve(x: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """`linalg.solve_triangular` with its operands the other way round, and the matrix.

    Parameters
    ----------
    x, A : (..., n, k) and (..., n, n).
    upper, unitriangular : as for `linalg.solve_triangular`.
    transpose : with ``A^T``.
    """
    upper, transpose = flag(upper, "triangular_solve", "upper"), flag(transpose, "triangular_solve", "transpose")
    matrix = mT(A) if transpose else A
    found = solve_triangular(matrix, x, upper=upper != transpose, unitriangular=unitriangular)
    return Triangular(found, A.clone())


def inv(A: Any) -> Any:
    """The inverses of square matrices.

    Parameters
    ----------
    A : (..., n, n)

    Raises
    ------
    LinAlgError : a matrix is singular.
    ShapeError, DTypeError : `A` is no batch of floating-point square matrices.
    """
    require_square("linalg.inv", A)
    return inv_(A, user="linalg.inv")[0]


def inverse(x: Any) -> Any:
    """`linalg.inv`.

    Parameters
    ----------
    x : (..., n, n)
    """
    return inv(x)


def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """`inv`, and LAPACK's info: 0, or which diagonal element of U is 0; then the inverse is nan.

    Parameters
    ----------
    A : (..., n, n)
    check_errors : raise as `inv` does.
    """
    require_square("linalg.inv", A)
    return InvEx(*inv_(A, user="linalg.inv_ex" if check_errors else ""))


@sections_of(inverse)
def det(x: Any) -> Any:
    """The determinants of square matrices.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.det(tw.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    require_square("linalg.det", x)
    return _det(x)


def slogdet(x: Any) -> Any:
    """The signs of determinants and the logarithms of their magnitudes: 0 and -inf for a singular matrix.

    Parameters
    ----------
    x : (..., n, n)

    Returns
    -------
    sign, logabsdet : of the batch's shape.
    """
    require_square("linalg.slogdet", x)
    return Slogdet(*slogdet_(x))


@sections_of(inverse)
def logdet(x: Any) -> Any:
    """The logarithms of determinants; nan where one is negative."""
    require_square("logdet", x)
    sign, logarithm = slogdet_(x)
    return called(where(eq(sign, -1), float("nan"), logarithm), "LinalgSlogdetBackward0")


def tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of a tensor as a linear map from its last dimensions to its first `ind` ones.

    Parameters
    ----------
    A : (...), in which the product of the first `ind` sizes is that of the others.
    ind : > 0.
    """
    ind = integer(ind, "tensorinv", "ind")
    if ind <= 0:
        raise ArgumentError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    m, n = numel(first), numel(last)
    if not same(m, n) and m != n:
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{n} != {m}"
        )
    return reshape(inv(reshape(A, (m, n))), (*last, *first))


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """The x with ``tensordot(A, x, x.ndim) == B``.

    Parameters
    ----------
    A : (*B.shape, *x.shape) after `dims` have been moved to the end.
    B : (...)
    dims : dimensions of A to move to the end first.

    Raises
    ------
    ArgumentError : `dims` are no ints.
    ShapeError : A and B do not make a square system.
    """
    if dims is not None:
        last = integers(dims, "tensorsolve", "dims")
        A = movedim(A, last, tuple(range(A.ndim - len(last), A.ndim)))
    sizes = tuple(A.shape[B.ndim :])
    m, n = numel(B.shape), numel(sizes)
    if not same(m, n) and m != n:
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {n} != {m}"
        )
    return reshape(solve(reshape(A, (m, n)), reshape(B, (m,))), sizes)


__all__ = ["det", "inverse", "logdet", "slogdet", "triangular_solve"]
