"""Elimination of small matrices, defined here: no library's order of operations is in the bits of the results.

All is float64 and rounded to the matrices' dtype at the end. Every element is computed by the same operations in the
same order in every batch, so `common.kernels.linalg.elimination_code` computes several matrices at once.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
FRACTION = 0x000FFFFFFFFFFFFF
"""The bits of a significand."""
ROOT_HALF = 0.7071067811865476
"""``sqrt(1/2)``."""
SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""
LN2_HIGH = 6.93147180369123816490e-01
"""A part of the logarithm of 2 whose products with exponents are exact."""
LN2_LOW = 1.90821492927058770002e-10
"""The rest of it."""
SERIES: tuple[float, ...] = tuple([2 / (2 * i + 1) for i in range(1, 13)])
"""Of ``2 artanh(s) / s - 2`` in s^2, from its first power on."""

SMALL = 32
"""Most rows of a matrix that is factored here; larger ones are LAPACK's."""

FUNCTIONS = ("cholesky", "cofactors", "det", "eigh", "eigvalsh", "inv", "lu", "slogdet", "solve", "solve_triangular")
"""Functions of `common.kernels.linalg.lapack` that call LAPACK for larger matrices only."""


def _lanes(a: Array) -> Array:
    """Matrices of a batch as (rows, columns, matrices) of float64."""
    return np.moveaxis(a.reshape(-1, *a.shape[-2:]).astype(np.float64), 0, -1).copy()


def _matrices(x: Array, like: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, -1, 0).reshape(like.shape).astype(like.dtype))


def _eliminated(a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """Make a its triangular factors and b what belongs to them, in place; return signs, determinants, infos and pivots.

    In each column the pivot is the first of the largest magnitudes, whose row is exchanged. Row k times ``a[i, k] /
    pivot``, which is kept, is subtracted from each row i below, product and difference rounded by themselves. A pivot
    that is 0 divides nothing; the first one is the info, from 1 on, as pivots are told.
    """
    n, count = len(a), a.shape[-1]
    sign, det, info = np.ones(count), np.ones(count), np.zeros(count, np.int32)
    pivots = np.zeros((n, count), np.int32)
    for k in range(n):
        best, place = np.abs(a[k, k]), np.full(count, k)
        for i in range(k + 1, n):
            more = np.abs(a[i, k]) > best
            best, place = np.where(more, np.abs(a[i, k]), best), np.where(more, i, place)
        for i in range(k + 1, n):
            for x in (a, b):
                x[k], x[i] = np.where(place == i, x[i], x[k]), np.where(place == i, x[k], x[i])
        pivot, pivots[k] = a[k, k].copy(), place + 1
        sign, det = np.where(place != k, -sign, sign), np.where(place != k, -det, det) * pivot
        sign = np.where(pivot == 0, 0, np.where(pivot < 0, -sign, sign))
        info = np.where((pivot == 0) & (info == 0), k + 1, info).astype(np.int32)
        for i in range(k + 1, n):
            a[i, k] /= np.where(pivot == 0, 1, pivot)
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
            b[i] -= a[i, k] * b[k]
    return sign, det, info, pivots


def _substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> None:
    """Solve ``a x = b`` for a triangular a, in place: each x that is found is subtracted from all that need it."""
    n = len(a)
    for k in reversed(range(n)) if upper else range(n):
        if not unitriangular:
            b[k] /= a[k, k]
        others = slice(0, k) if upper else slice(k + 1, n)
        b[others] -= a[others, k, None] * b[k]


def solutions(a: Array, b: Array) -> tuple[Array, Array]:
    """The solutions of ``a x = b``, nan where `a` is singular; and the infos."""
    with np.errstate(all="ignore"):
        rows, sides = _lanes(a), _lanes(b)
        info = _eliminated(rows, sides)[2]
        _substituted(rows, sides, True, False)
        sides[..., info != 0] = np.nan
        return _matrices(sides, b), info.reshape(a.shape[:-2])


def packed_factors(a: Array) -> tuple[Array, Array, Array]:
    """Both triangular factors in one matrix, the rows exchanged from 1 on, and the infos."""
    with np.errstate(all="ignore"):
        rows = _lanes(a)
        _, _, info, pivots = _eliminated(rows, rows[:, :0])
        return _matrices(rows, a), np.ascontiguousarray(pivots.T).reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def triangular_solutions(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """The solutions of ``a x = b`` for triangular matrices, which divide by the diagonal as it is."""
    with np.errstate(all="ignore"):
        sides = _lanes(b)
        _substituted(_lanes(a), sides, upper, unitriangular)
        return _matrices(sides, b)


def determinants(a: Array) -> Array:
    """The determinants: the product of the pivots from the first on, whose sign exchanges of rows turn."""
    with np.errstate(all="ignore"):
        rows = _lanes(a)
        return _eliminated(rows, rows[:, :0])[1].reshape(a.shape[:-2]).astype(a.dtype)


def logarithms_of_determinants(a: Array) -> tuple[Array, Array]:
    """The signs of the determinants, and the logarithms of their magnitudes.

    The significands of the pivots are multiplied and their exponents added, from the first on. So no product is too
    large, and one logarithm is taken: of m 2^k, as of the largest part m of it above ``sqrt(1/2)``, by the series in
    ``s = (m - 1) / (m + 1)``. Written without our `log`, as copies of this stand alone in numba modules.
    """
    with np.errstate(all="ignore"):
        rows = _lanes(a)
        sign = _eliminated(rows, rows[:, :0])[0]
        product, exponent = np.ones(rows.shape[-1]), np.zeros(rows.shape[-1])
        for k in range(len(rows)):
            significand, power = np.frexp(np.abs(rows[k, k]))
            product, exponent = product * significand, exponent + power
        f, power = np.frexp(product)
        low = f < ROOT_HALF
        f, exponent = np.where(low, 2 * f, f) - 1.0, exponent + power - low
        half, s = 0.5 * f * f, f / (2.0 + f)
        z = s * s
        series = np.full(z.shape, SERIES[-1])
        for number in SERIES[-2::-1]:
            series = series * z + number
        tail = s * (half + z * series) + exponent * LN2_LOW
        found = exponent * LN2_HIGH + (f - (half - tail))
        found = np.where(product == 0, -np.inf, np.where(product < np.inf, found, product))
        return sign.reshape(a.shape[:-2]).astype(a.dtype), found.reshape(a.shape[:-2]).astype(a.dtype)


def triangular_factors(a: Array) -> tuple[Array, Array]:
    """The lower factors of symmetric matrices, of which the lower triangles are read; and the infos.

    Column by column: ``sqrt(a[k, k])``, by which the column is divided, and whose products are subtracted from all that
    is to the right. Where a[k, k] is not positive the info is k, from 1 on, and the rest stays as it is then.
    """
    with np.errstate(all="ignore"):
        x = _lanes(a)
        info = np.zeros(x.shape[-1], np.int32)
        for k in range(len(x)):
            info = np.where((info == 0) & ~(x[k, k] > 0), k + 1, info).astype(np.int32)
            live = info == 0
            x[k, k] = np.where(live, np.sqrt(x[k, k]), x[k, k])
            x[k + 1 :, k] = np.where(live, x[k + 1 :, k] / x[k, k], x[k + 1 :, k])
            for i in range(k + 1, len(x)):
                last = slice(k + 1, i + 1)
                x[i, last] = np.where(live, x[i, last] - x[i, k] * x[last, k], x[i, last])
        for k in range(len(x)):
            x[k, k + 1 :] = 0
        return _matrices(x, a), info.reshape(a.shape[:-2])
