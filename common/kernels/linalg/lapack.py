"""Factorisations and solutions by LAPACK, which numpy and SciPy bring: one call per matrix of a batch.

Triangular factors of small matrices and what follows from them are our own (`common.kernels.linalg.elimination`).

Each function takes arrays of float32 or float64, which it does not write to, and returns new ones. SciPy is imported
when it is first needed. ``user`` is the public function that errors name; where it is "" nothing is
wrong with a singular matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.kernels.linalg.elimination import (
    SMALL,
    determinants,
    logarithms_of_determinants,
    packed_factors,
    solutions,
    triangular_factors,
    triangular_solutions,
)
from common.kernels.linalg.infos import (
    check_convergence,
    check_factor,
    check_solve,
    converging,
    each_item,
    require_finite,
)
from common.kernels.linalg.symmetric import eigenvalues

Array = np.ndarray

@cache
def _routine(name: str, dtype: np.dtype[Any]) -> Any:
    """A routine of LAPACK or BLAS in the precision of `dtype`."""
    from scipy.linalg import blas, lapack

    name = ("s" if dtype == np.float32 else "d") + name
    return getattr(lapack, name, None) or getattr(blas, name)


def _fortran(x: Array) -> Array:
    """A copy by columns, as LAPACK reads it: its alignment does not depend on that of `x`."""
    return np.array(x, order="F")


def _is_small(a: Array) -> bool:
    return 0 < a.shape[-1] <= SMALL and a.size > 0


def _in_single(x: Array) -> bool:
    """Whether LAPACK computes in float32; of a few numbers numpy computes in float64, and rounds at the end."""
    return bool(x.dtype == np.float32 and max(x.shape[-2:]) > SMALL and x.size)


def _each(x: Array, compute: Callable[[Array], tuple[Any, ...]], user: str) -> tuple[Array, ...]:
    """The results of a routine of LAPACK for each matrix of a batch; the last one is its info, above 0 if it failed.

    Raises
    ------
    LinAlgError : it did not converge.
    """
    found: list[list[Any]] = []
    for i in each_item(x.shape[:-2]):
        *results, info = compute(_fortran(x[i]))
        check_convergence(info > 0, user)
        found.append(results)
    made = [np.stack(y).reshape(*x.shape[:-2], *y[0].shape) if x.ndim > 2 else y[0] for y in zip(*found, strict=True)]
    return tuple([np.ascontiguousarray(y) for y in made])


def cholesky(a: Array, user: str) -> tuple[Array, Array]:
    """The lower factors of symmetric matrices, of which the lower triangles are read; and potrf's info."""
    if _is_small(a):
        factors, info = triangular_factors(a)
    else:
        factors, info = np.empty_like(a), np.zeros(a.shape[:-2], np.int32)
        for i in each_item(info.shape if a.size else (0,)):
            # by rows L is what by columns is its transpose, the upper factor
            upper = np.array(a[i], order="C").T
            factor, info[i] = _routine("potrf", a.dtype)(upper, lower=0, clean=1, overwrite_a=1)
            factors[i] = factor.T
    check_factor(info, user)
    return factors, info


def solve(a: Array, b: Array, user: str) -> tuple[Array, Array]:
    """The solutions of ``a x = b`` by gesv, nan where `a` is singular; and its info."""
    if not b.size:
        return np.empty_like(b), np.zeros(a.shape[:-2], np.int32)
    if _is_small(a):
        found, info = solutions(a, b)
    else:
        found, info = np.empty_like(b), np.zeros(a.shape[:-2], np.int32)
        gesv = _routine("gesv", a.dtype)
        for i in each_item(info.shape):
            _, _, found[i], info[i] = gesv(_fortran(a[i]), _fortran(b[i]), overwrite_a=1, overwrite_b=1)
        found[info > 0] = np.nan
    check_solve(info, user)
    return found, info


def inv(a: Array, user: str) -> tuple[Array, Array]:
    """The inverses by gesv, nan where `a` is singular; and its info."""
    return solve(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape), user)


def solve_triangular(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """The solutions of ``a x = b`` by trsm, which divides by the diagonal as it is."""
    if not b.size:
        return np.empty_like(b)
    if _is_small(a):
        return triangular_solutions(a, b, upper, unitriangular)
    found, trsm = np.array(b, order="C"), _routine("trsm", a.dtype)
    for i in each_item(a.shape[:-2]):
        columns = found[i].T  # by columns this is x^T a^T = b^T, in the memory of b's copy
        trsm(1.0, np.array(a[i], order="C").T, columns, side=1, lower=upper, diag=unitriangular, overwrite_b=1)
    return found


def det(a: Array) -> Array:
    """Determinants, from getrf."""
    if _is_small(a):
        return determinants(a)
    sign, product, exponent = _scaled_determinants(a)
    with np.errstate(all="ignore"):
        return np.asarray(np.ldexp(sign * product, exponent), a.dtype)


def slogdet(a: Array) -> tuple[Array, Array]:
    """Signs and logarithms of magnitudes of determinants, from getrf."""
    if _is_small(a):
        return logarithms_of_determinants(a)
    sign, product, exponent = _scaled_determinants(a)
    with np.errstate(all="ignore"):
        return np.asarray(sign * np.sign(product), a.dtype), np.asarray(
            np.log(product) + exponent * np.log(2.0), a.dtype
        )


def _scaled_determinants(a: Array) -> tuple[Array, Array, Array]:
    """Signs, and magnitudes as numbers times powers of two: their products are not too large, nor too small."""
    packed, pivots, _ = lu(a, "")
    diagonal = np.diagonal(packed, axis1=-2, axis2=-1).astype(np.float64)
    exchanged = (pivots != np.arange(1, a.shape[-1] + 1)).sum(-1)
    sign = np.where((exchanged + (diagonal < 0).sum(-1)) % 2, -1.0, 1.0)
    product, exponent = np.ones(a.shape[:-2]), np.zeros(a.shape[:-2], np.int64)
    for start in range(0, a.shape[-1], 512):
        part, powers = np.frexp(np.abs(diagonal[..., start : start + 512]))
        product, power = np.frexp(product * part.prod(-1))
        exponent = exponent + powers.sum(-1) + power
    return sign, product, exponent


@cache
def _all_but_one(n: int) -> Array:
    """Row i: the numbers below n without i."""
    return np.array([[j for j in range(n) if j != i] for i in range(n)], np.int64).reshape(n, max(n - 1, 0))


def cofactors(a: Array) -> Array:
    """The derivative of the determinant, ``det(a) a^-T``, of float64; from gesv where `a` is well-conditioned.

    Otherwise from gesdd: singular matrices have cofactors too.
    """
    found = np.empty_like(a)
    for i in each_item(a.shape[:-2] if a.size else (0,)):
        regular = _of_inverse(a[i].astype(np.float64))
        found[i] = _of_singular_values(a[i]) if regular is None else regular
    return found


SPREAD = 1_000_000
"""Up to which ``max |a| max |a^-1|`` cofactors follow from the inverse."""
ROOT = 1_000_000_000_000_000_000
"""The eighth root of a bound of their magnitudes."""


def _of_inverse(a: Array) -> Array | None:
    """The cofactors of a matrix from its inverse, if that has all its digits."""
    with np.errstate(all="ignore"):
        try:
            small = _is_small(a)
            inverse = solutions(a, np.eye(len(a)))[0] if small else np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return None
        value = determinants(a) if small else np.linalg.det(a)
        most, size, bound = np.abs(inverse).max(), np.abs(value), float(ROOT)
        for _ in range(3):
            bound *= bound
        usable = np.abs(a).max() * most <= SPREAD and size * bound >= 1 and size * most <= bound
        return value * inverse.T if usable else None


def _of_singular_values(a: Array) -> Array:
    u, s, v = svd(a, True, "linalg.det")
    others = np.prod(s[_all_but_one(a.shape[-1])], -1)
    sign = np.sign(np.linalg.det(u) * np.linalg.det(v))
    return np.asarray(sign * ((u * others) @ v), a.dtype)


def qr(a: Array, mode: str) -> tuple[Array, Array]:
    """Orthogonal and upper triangular factors, by geqrf and orgqr."""
    m, n = a.shape[-2:]
    if not m or not n:
        k = m if mode == "complete" else min(m, n)
        q = np.broadcast_to(np.eye(m, k, dtype=a.dtype), (*a.shape[:-2], m, k))
        return q, np.zeros((*a.shape[:-2], k, n), a.dtype)
    if _in_single(a):
        q, r = _each(a, lambda x: (*_orthogonal(x, m if mode == "complete" else min(m, n)), 0), "linalg.qr")
    else:
        q, r = np.linalg.qr(a, mode)  # type: ignore[call-overload]
    return q, r


_BLOCK = 64
"""Columns that geqrf and orgqr are given room to handle together."""


def _orthogonal(x: Array, count: int) -> tuple[Array, Array]:
    """The first `count` columns of the orthogonal factor, and the other factor."""
    m, n = x.shape
    packed, tau, _, _ = _routine("geqrf", x.dtype)(x, lwork=_BLOCK * n)
    columns = np.zeros((m, count), x.dtype, order="F")
    columns[:, : min(n, count)] = packed[:, :count]
    for j in range(min(count, n)):
        packed[j + 1 :, j] = 0
    return _routine("orgqr", x.dtype)(columns, tau, lwork=_BLOCK * count, overwrite_a=1)[0], packed[:count]


def geqrf(a: Array) -> tuple[Array, Array]:
    """Householder's vectors below the upper triangular factor, and their factors."""
    packed, tau = np.empty_like(a), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    if a.size:
        routine = _routine("geqrf", a.dtype)
        for i in each_item(a.shape[:-2]):
            packed[i], tau[i], _, _ = routine(_fortran(a[i]))
    return packed, tau


def eigh(a: Array, uplo: str, user: str) -> tuple[Array, Array]:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, by syevd."""
    if not a.size:
        return np.empty(a.shape[:-1], a.dtype), np.empty_like(a)
    require_finite(a, user)
    if _is_small(a):
        values, vectors, failed = eigenvalues(a, uplo == "U", True)
        check_convergence(failed, user)
    elif _in_single(a):
        values, vectors = _each(a, lambda x: _routine("syevd", x.dtype)(x, lower=uplo != "U", overwrite_a=1), user)
    else:
        values, vectors = converging(lambda: np.linalg.eigh(a, "U" if uplo == "U" else "L"), user, a)
    return values, vectors


def eigvalsh(a: Array, uplo: str, user: str) -> Array:
    """Eigenvalues in ascending order of symmetric matrices, by syevd without vectors."""
    if not a.size:
        return np.empty(a.shape[:-1], a.dtype)
    require_finite(a, user)
    if _is_small(a):
        values, _, failed = eigenvalues(a, uplo == "U", False)
        check_convergence(failed, user)
        return values
    if _in_single(a):
        syevd = _routine("syevd", a.dtype)
        return _each(a, lambda x: syevd(x, compute_v=0, lower=uplo != "U", overwrite_a=1), user)[0]
    return converging(lambda: np.linalg.eigvalsh(a, "U" if uplo == "U" else "L"), user, a)


def svd(a: Array, full: bool, user: str) -> tuple[Array, Array, Array]:
    """Singular vectors, singular values in descending order, and singular vectors by rows; by gesdd."""
    require_finite(a, user)
    if _in_single(a):
        u, s, v = _each(a, lambda x: _routine("gesdd", x.dtype)(x, full_matrices=full, overwrite_a=1), user)
    else:
        u, s, v = converging(lambda: np.linalg.svd(a, full), user, a)
    return u, s, v


def svdvals(a: Array, user: str) -> Array:
    """Singular values in descending order, by gesdd without vectors."""
    require_finite(a, user)
    if _in_single(a):
        return _each(a, lambda x: _routine("gesdd", x.dtype)(x, compute_uv=0, overwrite_a=1), user)[1]
    return converging(lambda: np.asarray(np.linalg.svd(a, compute_uv=False)), user, a)


def pinv(a: Array, atol: Array, rtol: Array, hermitian: bool) -> Array:
    """Pseudoinverses: singular values up to max(atol, rtol * the largest) count as 0."""
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, u = eigh(a, "L", "linalg.pinv")
        v = u.swapaxes(-1, -2)
    else:
        u, s, v = svd(a, False, "linalg.pinv")
    size = np.abs(s)
    cut = np.maximum(atol, rtol * size.max(-1))[..., None]
    with np.errstate(all="ignore"):
        inverse = np.where(size > cut, 1 / s, 0).astype(a.dtype)
    return np.asarray(v.swapaxes(-1, -2) @ (inverse[..., None] * u.swapaxes(-1, -2)))


def lu(a: Array, user: str) -> tuple[Array, Array, Array]:
    """Both triangular factors in one matrix, the rows exchanged from 1 on, and getrf's info."""
    if _is_small(a) and a.shape[-2] == a.shape[-1]:
        packed, pivots, info = packed_factors(a)
        check_solve(info, user)
        return packed, pivots, info
    packed, info = np.empty_like(a), np.zeros(a.shape[:-2], np.int32)
    pivots = np.zeros((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    if a.size:
        getrf = _routine("getrf", a.dtype)
        for i in each_item(info.shape):
            packed[i], found, info[i] = getrf(_fortran(a[i]))
            pivots[i] = found + 1
    check_solve(info, user)
    return packed, pivots, info


def permutation(pivots: Array, rows: int) -> Array:
    """Where each row of the product of lu's factors stood, from the rows that getrf has exchanged."""
    exchanged = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1])
    found = np.tile(np.arange(rows), (len(exchanged), 1))
    each = np.arange(len(exchanged))
    for j, k in enumerate(exchanged.T - 1):
        found[:, j], found[each, k] = found[each, k], found[:, j].copy()
    return found.reshape(*pivots.shape[:-1], rows)


def ldl(a: Array) -> tuple[Array, Array, Array]:
    """The factors of symmetric indefinite matrices in one, their pivots, and sytrf's info."""
    packed, info = np.empty_like(a), np.zeros(a.shape[:-2], np.int32)
    pivots = np.zeros(a.shape[:-1], np.int32)
    if a.size:
        sytrf = _routine("sytrf", a.dtype)
        for i in each_item(info.shape):
            found, places, info[i] = sytrf(_fortran(a[i]), lower=1)
            packed[i], pivots[i] = found, places
    return np.tril(packed), pivots, info


def ldl_solve(packed: Array, pivots: Array, b: Array) -> Array:
    """The solutions of systems from `ldl`, by sytrs."""
    found = np.empty_like(b)
    if b.size:
        sytrs = _routine("sytrs", b.dtype)
        for i in each_item(b.shape[:-2]):
            _require_pivots(pivots[i].tolist())
            found[i], _ = sytrs(_fortran(packed[i]), pivots[i], _fortran(b[i]), lower=1)
    return found


def _require_pivots(pivots: list[int]) -> None:
    """Refuse pivots that sytrf cannot have made: sytrs would write wherever they point.

    Raises
    ------
    ArgumentError : a row that is not there, or half a block of two.
    """
    at, n = 0, len(pivots)
    while at < n:
        size = 1 if pivots[at] > 0 else 2
        block = pivots[at : at + size]
        if len(block) < size or not all(0 < (k if size == 1 else -k) <= n for k in block):
            raise ArgumentError(f"linalg.ldl_solve(): pivots {block} at {at} are none of ldl_factor for {n} rows")
        at += size


def lstsq(a: Array, b: Array, rcond: float | None, driver: str) -> tuple[Array, Array]:
    """Least-squares solutions of the smallest norm, and ranks."""
    from common.kernels.linalg.least_squares import solver

    m, n, columns = *a.shape[-2:], b.shape[-1]
    b = b if columns else np.zeros((*b.shape[:-1], 1), b.dtype)  # LAPACK takes one column at least
    found, rank = np.zeros((*a.shape[:-2], n, b.shape[-1]), a.dtype), np.zeros(a.shape[:-2], np.int64)
    cut = float(np.finfo(a.dtype).eps * max(m, n)) if rcond is None else rcond
    if a.size:
        solve = solver(driver, a, b, cut)
        for i in each_item(rank.shape):
            found[i], rank[i] = solve(_fortran(a[i]), b[i])
    return found if columns else np.empty((*found.shape[:-1], 0), a.dtype), rank


def matrix_exp(a: Array) -> Array:
    """Exponentials of matrices by scaling and squaring, of small ones in float64: squares repeat errors."""
    if not a.size:
        return np.empty_like(a)
    from scipy.linalg import expm

    with np.errstate(all="ignore"):
        return np.asarray(expm(a if _in_single(a) else a.astype(np.float64)), a.dtype)
