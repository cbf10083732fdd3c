"""Eigenvalues of small symmetric matrices, defined here as `common.kernels.linalg.elimination` defines factors.

All is float64 and rounded to the matrices' dtype at the end; products are rounded before they are added.
"""

from __future__ import annotations

import numpy as np

from common.kernels.linalg.elimination import FRACTION, SMALLEST, _lanes, _matrices

Array = np.ndarray

STEPS = 60
"""Most steps of the QR algorithm for one eigenvalue; a few are enough."""
ROUNDING = 2.220446049250313e-16
"""The distance from 1 to the next float64."""


def _tridiagonal(a: Array, z: Array) -> tuple[Array, Array]:
    """Make matrices tridiagonal by Householder's reflections; return the diagonals and those beside them.

    Column k, from the first on, is reflected onto its first element below the diagonal, unless it is there already.
    The rows of z are reflected too.
    """
    n, count = len(a), a.shape[-1]
    d, e, reflections = np.zeros((n, count)), np.zeros((n, count)), []
    for k in range(n - 1):
        first, rest = a[k + 1, k].copy(), np.zeros(count)
        for i in range(k + 2, n):
            rest = rest + a[i, k] * a[i, k]
        norm = np.sqrt(first * first + rest)
        d[k], e[k] = a[k, k], np.where(rest == 0, first, np.where(first > 0, -norm, norm))
        v = a[k + 1 :, k].copy()
        v[0] = first - e[k]
        factor = np.where(rest == 0, 0, 2 / (rest + v[0] * v[0]))
        w, inner = np.zeros_like(v), np.zeros(count)
        for j in range(len(v)):
            w = w + v[j] * a[k + 1 + j, k + 1 :]
        w = w * factor
        for j in range(len(v)):
            inner = inner + w[j] * v[j]
        w = w - (0.5 * factor * inner) * v
        for i in range(len(v)):
            a[k + 1 + i, k + 1 :] -= v[i] * w + w[i] * v
        reflections.append((v, factor))
    d[n - 1] = a[n - 1, n - 1]
    for v, factor in reversed(reflections if len(z) else []):
        start = n - len(v)
        for row in z[start:]:
            inner = np.zeros(count)
            for j in range(len(v)):
                inner = inner + row[start + j] * v[j]
            row[start:] -= (factor * inner) * v
    return d, e


def _diagonal(d: Array, e: Array, z: Array) -> Array:
    """Make tridiagonal matrices diagonal by the implicit QR algorithm with Wilkinson's shifts; return where it failed.

    Rotations of columns turn the rows of z.
    """
    n, count = d.shape
    failed = np.zeros(count, bool)
    for x in range(n - 1):
        for step in range(STEPS + 1):
            last, end = np.full(count, n - 1), d[n - 1].copy()
            for i in range(n - 2, x - 1, -1):
                small = np.abs(e[i]) <= ROUNDING * (np.abs(d[i]) + np.abs(d[i + 1]))
                last, end = np.where(small, i, last), np.where(small, d[i], end)
            active = last != x
            if not active.any():
                break
            if step == STEPS:
                failed |= active
                break
            g = (d[x + 1] - d[x]) / (2 * e[x])
            r = np.sqrt(g * g + 1)
            g = end - d[x] + e[x] / (g + np.where(g < 0, -r, r))
            s, c, p = np.ones(count), np.ones(count), np.zeros(count)
            for i in range(n - 2, x - 1, -1):
                live = active & (i < last)
                f, b = s * e[i], c * e[i]
                r = np.sqrt(f * f + g * g)
                e[i + 1] = np.where(live, np.where(i + 1 == last, 0, r), e[i + 1])
                s1, c1 = np.where(r == 0, 0, f / r), np.where(r == 0, 1, g / r)
                h = d[i + 1] - p
                t = (d[i] - h) * s1 + 2 * c1 * b
                p1 = s1 * t
                d[i + 1] = np.where(live, h + p1, d[i + 1])
                g = np.where(live, c1 * t - b, g)
                s, c, p = np.where(live, s1, s), np.where(live, c1, c), np.where(live, p1, p)
                if len(z):
                    upper, lower = z[i].copy(), z[i + 1].copy()
                    z[i + 1] = np.where(live, s1 * upper + c1 * lower, lower)
                    z[i] = np.where(live, c1 * upper - s1 * lower, upper)
            d[x], e[x] = np.where(active, d[x] - p, d[x]), np.where(active, g, e[x])
    return failed


def eigenvalues(a: Array, upper: bool, vectors: bool) -> tuple[Array, Array, Array]:
    """The eigenvalues in ascending order, the eigenvectors as columns if they are wanted, and where there are none.

    One triangle is read. The matrices are divided by a power of two first, so that squares are not too large.
    """
    with np.errstate(all="ignore"):
        x = _lanes(a)
        n = len(x)
        x = np.swapaxes(x, 0, 1) if upper else x
        x = np.where(np.tri(n, dtype=bool)[..., None], x, np.swapaxes(x, 0, 1))
        most = np.abs(x).max((0, 1))
        power = (most.view(np.int64) & ~FRACTION).view(np.float64)
        power = np.where(most < SMALLEST, SMALLEST, power)
        x = x / power
        z = np.zeros((n if vectors else 0, n, x.shape[-1]))
        for i in range(len(z)):
            z[i, i] = 1
        d, e = _tridiagonal(x, z)
        failed = _diagonal(d, e, z)
        order = np.argsort(d, 0, kind="stable")
        values = np.take_along_axis(d, order, 0) * power
        found = np.moveaxis(values, -1, 0).reshape(a.shape[:-1]).astype(a.dtype)
        if not vectors:
            return found, a, failed.reshape(a.shape[:-2])
        z = np.take_along_axis(z, order[:, None], 0)
        return found, _matrices(np.swapaxes(z, 0, 1), a), failed.reshape(a.shape[:-2])
