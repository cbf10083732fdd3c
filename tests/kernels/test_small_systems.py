"""Small systems that are solved without Python: the bits of `common.kernels.linalg.elimination`, which is
held against exact arithmetic, otherwise numpy's; and Python for what is singular, large or empty.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dynamic
import static
from common.compiler import host_kernels
from common.core.errors import LinAlgError
from common.kernels.linalg import lapack, small_systems
from tests.bits import assert_all_same_bits


def _noting(function, seen):
    return lambda a, *rest, **named: (seen.append(getattr(a, "shape", a)), function(a, *rest, **named))[1]


def _listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def _by_python(name, x):
    """What the function gives that calls numpy, or computes as `elimination` says."""
    return lapack.cholesky(x, "")[0] if name == "cholesky" else getattr(lapack, name)(x)


@pytest.fixture
def calls(monkeypatch):
    """The shapes of matrices that Python has solved or factored."""
    seen = []
    for name in ("solve", "cholesky", "slogdet", "det", "inv", "eigvalsh", "svd", "qr"):
        monkeypatch.setattr(np.linalg, name, _noting(getattr(np.linalg, name), seen))
    monkeypatch.setattr(lapack, "_routine", _noting(lapack._routine, seen))
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_solutions_have_the_bits_of_elimination_or_numpy(dtype, batch, calls):
    f, rng = static.function(lambda a, b: static.linalg.solve_ex(a, b)), np.random.default_rng(0)
    for n, k in ((1, 1), (2, 3), (3, 1), (7, 4), (16, 16), (17, 3), (31, 32), (33, 2), (4, 40), (0, 2), (3, 0)):
        a, b = (rng.standard_normal((*batch, n, m)).astype(dtype) for m in (n, k))
        expected = lapack.solve(a, b, "")[0]
        tolerance = 1e-2 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(expected, np.linalg.solve(a, b), rtol=tolerance, atol=tolerance)
        calls.clear()
        x, info = f(a, b)
        by_python = n > small_systems.MOST
        assert bool(calls) == (by_python and x.numel() > 0)
        assert_all_same_bits([x], [expected], f"{n} unknowns, {k} right sides")
        assert not np.asarray(info).any()


def test_what_is_singular_is_told():
    a = np.stack([np.eye(3), np.zeros((3, 3)), 2 * np.eye(3)]).astype(np.float32)
    b = np.ones((3, 3, 1), np.float32)
    found = static.function(lambda a, b: static.linalg.solve_ex(a, b))(a, b)
    assert_all_same_bits(found, dynamic.linalg.solve_ex(dynamic.tensor(a), dynamic.tensor(b)), "dynamic's")
    assert np.asarray(found[1]).tolist() == [0, 1, 0]
    f = static.function(lambda a, b: static.linalg.solve(a, b))
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\): The solver failed"):
        f(a, b)
    np.testing.assert_array_equal(f(a[::2], b[::2]), [[[1], [1], [1]], [[0.5], [0.5], [0.5]]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_factors_and_determinants_have_the_bits_of_elimination_or_numpy(dtype, batch, calls):
    """The numbers below the diagonal are read, the sign follows from exchanged rows and negative pivots."""
    rng = np.random.default_rng(1)
    functions = {
        "cholesky": static.function(lambda a: static.linalg.cholesky(a)),
        "slogdet": static.function(lambda a: tuple(static.linalg.slogdet(a))),
        "det": static.function(lambda a: static.linalg.det(a)),
    }
    for n in (1, 2, 3, 8, 16, 17, 31, 33):
        a = rng.standard_normal((*batch, n, n)).astype(dtype)
        for name, f in functions.items():
            x = a @ a.swapaxes(-1, -2) + dtype(n) * np.eye(n, dtype=dtype) if name == "cholesky" else a
            with np.errstate(all="ignore"):
                expected = _by_python(name, x)
                tolerance = 1e-3 if dtype == np.float32 else 1e-10
                for y, z in zip(_listed(expected), _listed(getattr(np.linalg, name)(x)), strict=True):
                    np.testing.assert_allclose(y, z, rtol=tolerance, atol=tolerance)
            calls.clear()
            found = f(x)
            assert bool(calls) == (n > 32 and x.size > 0)
            assert_all_same_bits(_listed(found), _listed(expected), f"{name} of {n} rows")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems_are_those_of_trsm(dtype, upper, unit, calls):
    """Beside the function that calls the routine by Python, and a product, which shares nothing with it."""
    rng = np.random.default_rng(2)

    def solved(tw):
        return lambda a, b: tw.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)

    f = static.function(solved(static))
    for n, k, batch in (
        (1, 1, ()), (3, 2, (4,)), (8, 5, (11,)), (17, 3, ()), (32, 32, ()), (33, 2, ()), (4, 40, (2,)), (3, 3, (0,)),
    ):  # fmt: skip
        a = (rng.standard_normal((*batch, n, n)) / n + 2 * np.eye(n)).astype(dtype)
        b = rng.standard_normal((*batch, n, k)).astype(dtype)
        calls.clear()
        found = f(a, b)
        assert bool(calls) == (n > small_systems.MOST)
        assert_all_same_bits([found], [lapack.solve_triangular(a, b, upper, unit)], f"{n} rows, {k} sides")
        triangle = np.triu(a) if upper else np.tril(a)
        if unit:
            triangle = triangle * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype)
        product = triangle.astype(np.float64) @ np.asarray(found, np.float64)
        np.testing.assert_allclose(product, b, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [(), (5,), (0,)])
def test_values_and_inverses_have_the_bits_of_lapack(dtype, batch, calls):
    """Eigenvalues read one triangle; a matrix of cofactors is that of the function that calls numpy."""
    rng = np.random.default_rng(4)
    functions = {
        "eigvalsh": (lambda tw, a: tw.linalg.eigvalsh(a), lambda a: lapack.eigvalsh(a, "L", "")),
        "eigvalsh, upper": (lambda tw, a: tw.linalg.eigvalsh(a, "U"), lambda a: lapack.eigvalsh(a, "U", "")),
        "svdvals": (lambda tw, a: tw.linalg.svdvals(a), lambda a: lapack.svdvals(a, "")),
        "inv": (lambda tw, a: tw.linalg.inv(a), lambda a: lapack.inv(a, "")[0]),
        "cofactors": (lambda tw, a: tw.grad(lambda a: tw.linalg.det(a).sum())(a), lapack.cofactors),
    }
    for n in (1, 2, 3, 8, 31, 32, 33):
        a = rng.standard_normal((*batch, n, n)).astype(dtype)
        for name, (f, of_numpy) in functions.items():
            expected = of_numpy(a)
            for tw in (static, dynamic):
                g = tw.function(lambda a, tw=tw, f=f: f(tw, a))
                g(a)
                calls.clear()
                assert_all_same_bits([g(a)], [expected], f"{name} of {n} rows")
                if n <= 32 and small_systems.routine("dsyevd"):
                    assert not calls, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cofactors_are_those_of_exact_arithmetic(dtype):
    """Of matrices with an inverse, with none, and with nearly none: to the dtype's digits of the largest."""

    def det(rows):
        if not rows:
            return Fraction(1)
        return sum(
            (-1) ** j * x * det([r[:j] + r[j + 1 :] for r in rows[1:]]) for j, x in enumerate(rows[0]) if x
        ) + Fraction(0)

    rng = np.random.default_rng(5)
    regular = rng.integers(-9, 10, (4, 4)).astype(dtype)
    singular, twice = regular.copy(), regular.copy()
    singular[2] = singular[0] + singular[1]
    twice[2], twice[3] = twice[0], twice[1]
    nearly = singular.copy()
    nearly[2, 1] += dtype(2.0**-18)
    for a in (
        regular,
        singular,
        twice,
        nearly,
        np.diag([1.0, 1e-12, 1e-12, 2.0]).astype(dtype),
        np.eye(1, dtype=dtype),
    ):
        rows = [[Fraction(float(x)) for x in row] for row in a]
        minor = lambda i, j: [r[:j] + r[j + 1 :] for k, r in enumerate(rows) if k != i]  # noqa: B023, E731
        exact = np.array([[float((-1) ** (i + j) * det(minor(i, j))) for j in range(len(a))] for i in range(len(a))])
        for tw in (dynamic, static):
            found = np.asarray(tw.function(tw.grad(lambda a, tw=tw: tw.linalg.det(a)))(a))
            size = np.abs(exact).max() or np.abs(a).max() ** 3
            assert np.abs(found - exact).max() <= 32 * np.finfo(dtype).eps * size


def test_what_is_not_finite_is_refused_without_python_too():
    for f in (lambda a: dynamic.linalg.eigvalsh(a), lambda a: dynamic.linalg.svdvals(a)):
        for bad in (np.nan, np.inf):
            a = np.eye(3, dtype=np.float32)
            f(dynamic.tensor(a))
            a[0, 2] = bad
            with pytest.raises(LinAlgError, match="contained non-finite values"):
                f(dynamic.tensor(a))


def test_what_has_no_factors_is_left_to_python():
    not_positive = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    with pytest.raises(LinAlgError, match="not positive-definite"):
        static.function(lambda a: static.linalg.cholesky(a))(not_positive)
    sign, logarithm = static.function(lambda a: tuple(static.linalg.slogdet(a)))(np.zeros((2, 2)))
    assert (float(sign), float(logarithm)) == (0.0, -np.inf)
    assert float(static.function(lambda a: static.linalg.det(a))(np.zeros((2, 2)))) == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 4, 13, 31, 33])
def test_matrices_that_are_not_positive_keep_what_scipy_leaves_of_them(n, dtype, calls):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((9, n, n)).astype(dtype)
    a[::3] = a[::3] @ a[::3].swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
    a[1], a[2, -1, -1], a[4, 0, 0] = 0, np.nan, np.inf
    factors, infos = lapack.cholesky(a, "")
    assert not infos[::3].any()
    assert infos[1]
    for engine in (dynamic.linalg.cholesky_ex, static.function(lambda a: tuple(static.linalg.cholesky_ex(a)))):
        calls.clear()
        found, info = engine(dynamic.tensor(a))
        assert bool(calls) == (n > 32)
        assert_all_same_bits([found], [factors], f"{n} rows")
        assert np.asarray(info).tolist() == infos.tolist()
    residual = np.tril(factors[0]) @ np.tril(factors[0]).T - a[0]
    assert np.abs(residual).max() < 1e-4 * n * n
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\)"):
        dynamic.linalg.cholesky_ex(dynamic.tensor(a), check_errors=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 31, 33])
def test_the_eager_engine_calls_no_python_either(dtype, n, calls):
    """Whatever the layout of the matrices; larger ones are left to Python, which takes no copies."""
    rng, tensor, la = np.random.default_rng(n), dynamic.tensor, dynamic.linalg
    a, b = (rng.standard_normal((3, n, m)).astype(dtype) for m in (n, 2))
    positive = a @ a.swapaxes(1, 2) + dtype(n) * np.eye(n, dtype=dtype)
    functions = {
        "solve": (lambda a, b: la.solve(a, b), lambda a, b: lapack.solve(a, b, "")[0], (a, b)),
        "cholesky": (lambda x: la.cholesky(x), lambda x: lapack.cholesky(x, "")[0], (positive,)),
        "slogdet": (lambda a: tuple(la.slogdet(a)), lapack.slogdet, (a,)),
        "qr": (lambda a: tuple(la.qr(a)), lambda a: lapack.qr(a, "reduced"), (a,)),
        "det": (lambda a: la.det(a), lapack.det, (a,)),
        "inv": (lambda a: la.inv(a), lambda a: lapack.inv(a, "")[0], (a,)),
        "solve_triangular": (
            lambda a, b: la.solve_triangular(a, b, upper=True),
            lambda a, b: lapack.solve_triangular(a, b, True, False), (positive, b),
        ),
    }  # fmt: skip
    for name, (f, of_numpy, arrays) in functions.items():
        if n > 32 and name == "cholesky":
            continue  # of which potrf alone gives the bits
        expected = of_numpy(*arrays)
        turned = [np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) for x in arrays]
        for given in (arrays, turned, arrays, turned):
            operands = [tensor(x) if x is given[-1] else tensor(x.swapaxes(-1, -2)).mT for x in given]
            calls.clear()
            found = f(*operands)
            assert bool(calls) == (n > small_systems.MOST)
            assert_all_same_bits(
                found if type(found) is tuple else [found], expected if type(found) is tuple else [expected], name
            )


def test_what_is_singular_is_left_to_python_by_the_eager_engine():
    a = dynamic.tensor(np.stack([np.eye(3), np.zeros((3, 3))]).astype(np.float32))
    for _ in range(3):
        with pytest.raises(LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero"):
            dynamic.linalg.inv(a)
        assert getattr(host_kernels._raised, "error", None) is None  # whose frames would keep arrays alive
        assert dynamic.linalg.inv_ex(a).info.tolist() == [0, 1]


@pytest.mark.parametrize("n", [33, 70])
def test_of_many_float32_numbers_lapack_computes_in_float32(n):
    """Values and factors are those of float64 to float32's digits, and factors multiply to the matrix."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((2, n, n + 3)).astype(np.float32)
    wide, la = a.astype(np.float64), dynamic.linalg
    symmetric = (a[..., :n] + a[..., :n].swapaxes(1, 2)) / 2
    for uplo in "LU":
        values, vectors = (x.numpy() for x in la.eigh(dynamic.tensor(symmetric), uplo))
        exact = np.linalg.eigvalsh(symmetric.astype(np.float64))
        for found in (values, la.eigvalsh(dynamic.tensor(symmetric), uplo).numpy()):
            np.testing.assert_allclose(found, exact, atol=n * 1e-6)
        np.testing.assert_allclose(vectors * values[:, None] @ vectors.swapaxes(1, 2), symmetric, atol=n * 2e-6)
    for full in (False, True):
        u, s, v = (x.numpy() for x in la.svd(dynamic.tensor(a), full_matrices=full))
        np.testing.assert_allclose(s, np.linalg.svd(wide, compute_uv=False), atol=n * 1e-6)
        np.testing.assert_allclose(u * s[:, None] @ v[:, :n], a, atol=n * 2e-6)
        assert v.shape == (2, n + 3 if full else n, n + 3)
    np.testing.assert_allclose(la.svdvals(dynamic.tensor(a)).numpy(), s, atol=n * 1e-6)
    for mode in ("reduced", "complete"):
        for x in (a, a.swapaxes(1, 2)):
            q, r = (y.numpy() for y in la.qr(dynamic.tensor(x.copy()), mode=mode))
            assert q.shape == (2, x.shape[1], x.shape[1] if mode == "complete" else n)
            np.testing.assert_allclose(q @ r, x, atol=n * 2e-6)
            np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.eye(q.shape[2])[None].repeat(2, 0), atol=n * 1e-6)
            assert not np.tril(r, -1).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_small_square_matrices_are_numpys(dtype, calls):
    """With columns of zeros and equal rows too; other shapes are left to Python."""
    rng = np.random.default_rng(8)
    compiled = static.function(lambda x: tuple(static.linalg.qr(x)))
    for n in (1, 2, 5, 16, 32):
        a = rng.standard_normal((3, n, n)).astype(dtype)
        a[0, :, 0] = 0
        a[1, -1] = a[1, 0]
        wanted = np.linalg.qr(a)
        calls.clear()
        for found in (dynamic.linalg.qr(dynamic.tensor(a)), compiled(a)):
            assert_all_same_bits([x.numpy() for x in found], list(wanted), "qr")
        assert not calls
    for shape in ((3, 2), (2, 3), (33, 33), (0, 0)):
        q, r = dynamic.linalg.qr(dynamic.tensor(rng.standard_normal(shape).astype(dtype)))
        assert q.shape[1] == r.shape[0]


def test_exchanged_rows_are_followed_without_python(monkeypatch):
    """Of matrices of any size; a row that is not there, which no factors tell, is left to Python."""
    rng = np.random.default_rng(3)
    seen, permutation = [], lapack.permutation
    monkeypatch.setattr(lapack, "permutation", lambda *given: (seen.append(given[0]), permutation(*given))[1])
    eager, compiled = (tw.lu_unpack for tw in (dynamic, static)), []
    for unpack in eager:
        for batch, k, m in (((), 3, 3), ((2, 3), 40, 100), ((4,), 0, 2), ((0,), 3, 5), ((5,), 200, 200)):
            pivots = (rng.integers(np.arange(k), m, (*batch, k)) + 1).astype(np.int32)
            P = np.asarray(unpack(dynamic.zeros(*batch, m, k).numpy(), pivots)[0])
            expected = np.zeros_like(P)
            for i in np.ndindex(batch):
                order = np.arange(m)
                for j, p in enumerate(pivots[i] - 1):
                    order[[j, p]] = order[[p, j]]
                expected[i][order, np.arange(m)] = 1
            assert_all_same_bits([P], [expected], f"{batch}, {k} of {m} rows")
        compiled.append(len(seen))
        unpack(np.zeros((3, 3), np.float32), np.array([0, 2, 3], np.int32))  # row -1 is the last one
    assert compiled == [0, 1]
    assert len(seen) == 2
