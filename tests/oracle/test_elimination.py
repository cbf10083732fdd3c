"""Small systems, determinants, factors and eigenvalues beside arithmetic of 60 digits, and alone as in a batch."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.linalg import lapack

import dynamic
import static
from tests.bits import assert_all_same_bits

SIZES = (1, 2, 3, 5, 8, 16, 32, 33)


def _bound(cond, dtype, n):
    """The error of the digits of float64 that a condition number leaves, and of the dtype; LAPACK has float32's."""
    return float(cond) * (2.0**-20 if n > 32 and dtype == np.float32 else 2.0**-50) + np.finfo(dtype).eps


def _near(found, exact, cond, dtype):
    """Whether numbers are as near to exact ones as `_bound` says."""
    bound = _bound(cond, dtype, len(found)) * max(1.0, *(abs(float(x)) for x in exact))
    return all(abs(mpmath.mpf(float(x)) - y) <= bound for x, y in zip(np.ravel(found), exact, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_of_regular_matrices(n, dtype):
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal((3, n, m)).astype(dtype) for m in (n, 2))
    x, inverse = (y.numpy() for y in (dynamic.linalg.solve(a, b), dynamic.linalg.inv(dynamic.tensor(a))))
    det, (sign, logarithm) = dynamic.linalg.det(a).numpy(), (y.numpy() for y in dynamic.linalg.slogdet(a))
    with mpmath.workdps(60):
        for i in range(3) if n < 16 else {n % 3}:
            exact, sides = mpmath.matrix(a[i].tolist()), mpmath.matrix(b[i].tolist())
            cond = np.linalg.cond(a[i].astype(np.float64))
            inverted = exact**-1
            assert _near(x[i], list(inverted * sides), cond, dtype)
            assert _near(inverse[i], list(inverted), cond, dtype)
            value = mpmath.det(exact)
            assert abs(mpmath.mpf(float(det[i])) / value - 1) <= _bound(cond, dtype, n)
            assert sign[i] == mpmath.sign(value)
            assert abs(float(logarithm[i]) - mpmath.log(abs(value))) <= n * _bound(cond, dtype, n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_of_positive_and_triangular_matrices(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)).astype(dtype)
    positive, b = a @ a.T + np.eye(n, dtype=dtype), rng.standard_normal((n, 3)).astype(dtype)
    factor = dynamic.linalg.cholesky(np.tril(positive) + np.triu(a, 1)).numpy()
    assert not np.triu(factor, 1).any()
    triangular = factor + np.triu(a, 1)
    solved = {
        (upper, unit): dynamic.linalg.solve_triangular(
            triangular.T if upper else triangular, b, upper=upper, unitriangular=unit
        ).numpy()
        for upper in (False, True)
        for unit in (False, True)
    }
    with mpmath.workdps(60):
        symmetric = np.tril(positive) + np.tril(positive, -1).T
        cond = np.linalg.cond(symmetric.astype(np.float64))
        assert _near(factor, list(mpmath.cholesky(mpmath.matrix(symmetric.tolist()))), cond, dtype)
        for (upper, unit), x in solved.items():
            used = (factor.T if upper else factor).astype(np.float64)
            if unit:
                np.fill_diagonal(used, 1)
            exact = mpmath.matrix(used.tolist()) ** -1 * mpmath.matrix(b.tolist())
            assert _near(x, list(exact), np.linalg.cond(used), dtype), (upper, unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, 32])
def test_of_symmetric_matrices(n, dtype):
    """Also with equal eigenvalues, in blocks, huge and tiny; vectors are orthonormal and belong to the values."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((9, n, n))
    a = a + a.swapaxes(1, 2)
    a[1], a[2], a[3] = 0, np.eye(n), 1
    a[4], a[5] = np.diag(np.arange(n)[::-1]), a[5] * (1e30 if dtype == np.float32 else 1e300)
    a[6] *= 1e-40 if dtype == np.float32 else 1e-310
    a[7, : n // 2, n // 2 :] = a[7, n // 2 :, : n // 2] = 0
    a[8] = np.diag(np.full(n, 2.0)) + np.diag(np.full(n - 1, -1.0), 1) + np.diag(np.full(n - 1, -1.0), -1)
    a = a.astype(dtype)
    size = np.abs(a.astype(np.float64)).max((1, 2)) + 1e-320
    bound = n * (2.0**-50 + np.finfo(dtype).eps)
    noise = rng.standard_normal((n, n)).astype(dtype)
    for uplo, given in (("L", np.tril(a) + np.triu(noise, 1)), ("U", np.triu(a) + np.tril(noise, -1))):
        values, vectors = (x.numpy().astype(np.float64) for x in dynamic.linalg.eigh(dynamic.tensor(given), uplo))
        assert_all_same_bits([dynamic.linalg.eigvalsh(dynamic.tensor(given), uplo)], [values.astype(dtype)], "values")
        assert (np.diff(values) >= 0).all()
        assert np.abs(vectors.swapaxes(1, 2) @ vectors - np.eye(n)).max() <= bound
        scaled, unit = a / size[:, None, None], values / size[:, None]
        assert np.abs(scaled @ vectors - vectors * unit[:, None]).max() <= 4 * bound
    with mpmath.workdps(40):
        for i in (0, 3, 7, 8) if n <= 8 else (0,):
            exact = sorted(mpmath.eigsy(mpmath.matrix(a[i].tolist()), eigvals_only=True))
            assert all(abs(x - y) <= bound * size[i] for x, y in zip(values[i].tolist(), exact, strict=True))
    if n > 1:
        assert np.allclose(values[8], 2 - 2 * np.cos(np.arange(1, n + 1) * np.pi / (n + 1)), atol=4 * bound)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_infos_are_those_of_lapack(n):
    """The first pivot that is 0, and the first leading minor that is not positive-definite."""
    rng = np.random.default_rng(n)
    for k in range(n):
        a = np.triu(rng.integers(1, 9, (n, n))).astype(np.float64)
        a[k:, k] = 0
        assert dynamic.linalg.inv_ex(a).info.item() == lapack.dgetrf(a)[2] == k + 1
        a = np.eye(n) * 3
        a[k, k] = -1
        factor, info = dynamic.linalg.cholesky_ex(a)
        assert info.item() == lapack.dpotrf(a, lower=1)[1] == k + 1
        assert np.array_equal(np.diag(factor.numpy()), [3**0.5] * k + [-1] + [3] * (n - k - 1))
        a[k, k] = np.nan
        assert dynamic.linalg.cholesky_ex(a).info.item() == k + 1


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_has_the_bits_that_it_has_alone(tw, dtype):
    """Whatever stands beside it in a batch: singular matrices, exchanged rows, matrices that are not positive."""
    rng = np.random.default_rng(3)
    functions = (
        lambda a: tuple(tw.linalg.inv_ex(a)), lambda a: tuple(tw.linalg.cholesky_ex(a)), tw.linalg.det,
        lambda a: tuple(tw.linalg.slogdet(a)), lambda a: tw.linalg.solve_triangular(a, a, upper=True),
        lambda a: tuple(tw.linalg.eigh(tw.nan_to_num(a))), lambda a: tw.linalg.eigvalsh(tw.nan_to_num(a)),
    )  # fmt: skip
    for n in (1, 3, 7, 32):
        a = rng.standard_normal((13, n, n)).astype(dtype)
        a[::2] = a[::2] @ a[::2].swapaxes(1, 2) + np.eye(n, dtype=dtype)
        a[4], a[5] = 0, np.nan
        for f in functions:
            g = tw.function(f)
            together = g(a)
            for i in range(13):
                alone = g(a[i])
                pairs = zip(*([x] if not isinstance(x, tuple) else x for x in (alone, together)), strict=True)
                assert_all_same_bits(*zip(*((x, np.asarray(y)[i]) for x, y in pairs), strict=True), f"{n} rows")
