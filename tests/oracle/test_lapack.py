"""LAPACK's results: against numpy and SciPy, errors in PyTorch's words, and where programs call it."""

import threading

import numpy as np
import pytest
import scipy.linalg

import dynamic
import static
from common.core.errors import DTypeError, GradientError, LinAlgError, ShapeError
from common.core.spec import Spec
from common.evaluate.native_results import in_memory_of_its_own

ENGINES = (dynamic, static)
RNG = np.random.default_rng(70)
A = RNG.normal(size=(2, 4, 4)) + 3 * np.eye(4)
S = A @ A.swapaxes(-1, -2)
B = RNG.normal(size=(2, 4, 3))
TALL = RNG.normal(size=(2, 5, 3))
VALUES = {
    "cholesky": (lambda la: la.cholesky(S), np.linalg.cholesky(S)),
    "upper cholesky": (lambda la: la.cholesky(S, upper=True), np.linalg.cholesky(S).swapaxes(-1, -2)),
    "solve": (lambda la: la.solve(A, B), np.linalg.solve(A, B)),
    "solve of vectors": (lambda la: la.solve(A[0], B[0, :, 0]), np.linalg.solve(A[0], B[0, :, 0])),
    "solve from the right": (
        lambda la: la.solve(A, B.swapaxes(-1, -2), left=False),
        np.linalg.solve(A.swapaxes(-1, -2), B).swapaxes(-1, -2),
    ),
    "inv": (lambda la: la.inv(A), np.linalg.inv(A)),
    "det": (lambda la: la.det(A), np.linalg.det(A)),
    "slogdet": (lambda la: la.slogdet(-A).logabsdet, np.linalg.slogdet(-A)[1]),
    "eigvalsh": (lambda la: la.eigvalsh(S), np.linalg.eigvalsh(S)),
    "svdvals": (lambda la: la.svdvals(TALL), np.linalg.svd(TALL, compute_uv=False)),
    "pinv": (lambda la: la.pinv(TALL), np.linalg.pinv(TALL)),
    "matrix_rank": (lambda la: la.matrix_rank(S - S), np.zeros(2, np.int64)),
    "cond": (lambda la: la.cond(A, 1), np.linalg.cond(A, 1)),
    "cond of 2": (lambda la: la.cond(A), np.linalg.cond(A)),
    "matrix_exp": (lambda la: la.matrix_exp(A / 3), scipy.linalg.expm(A / 3)),
    "matrix_power": (lambda la: la.matrix_power(A, -3), np.linalg.matrix_power(A, -3)),
    "lstsq": (lambda la: la.lstsq(TALL[0], B[0, :1].repeat(5, 0)).solution,
              np.linalg.lstsq(TALL[0], B[0, :1].repeat(5, 0), None)[0]),
    "ldl": (lambda la: la.ldl_solve(*la.ldl_factor(S - 20 * np.eye(4)), B), np.linalg.solve(S - 20 * np.eye(4), B)),
    "lu_solve": (lambda la: la.lu_solve(*la.lu_factor(A), B, adjoint=True), np.linalg.solve(A.swapaxes(-1, -2), B)),
    "tensorinv": (lambda la: la.tensorinv(A[0].reshape(2, 2, 4), ind=2),
                  np.linalg.tensorinv(A[0].reshape(2, 2, 4), ind=2)),
    "tensorsolve": (lambda la: la.tensorsolve(A[0].reshape(2, 2, 4), B[0, :, 0].reshape(2, 2)),
                    np.linalg.tensorsolve(A[0].reshape(2, 2, 4), B[0, :, 0].reshape(2, 2))),
    "nuc": (lambda la: la.norm(TALL, "nuc", (1, 2)), np.linalg.norm(TALL, "nuc", (1, 2))),
    "norm of 1": (lambda la: la.matrix_norm(TALL, -1), np.linalg.norm(TALL, -1, (1, 2))),
    "vander": (lambda la: la.vander(B[0, 0], N=4), np.vander(B[0, 0], 4, increasing=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    call, expected = VALUES[name]
    for tw in ENGINES:
        np.testing.assert_allclose(np.asarray(call(tw.linalg)), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("tw", ENGINES, ids=lambda e: e.__name__)
@pytest.mark.parametrize("order", [1, 2, np.inf, "fro", "nuc"])
def test_norms_of_matrices_without_elements_are_0(tw, order):
    for shape in ((0, 0), (0, 3), (3, 0)):
        x = tw.ones(2, *shape, requires_grad=True)
        found = tw.linalg.matrix_norm(x, order)
        assert found.tolist() == [0.0, 0.0]
        assert tw.autograd.grad(found.sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("tw", ENGINES, ids=lambda e: e.__name__)
@pytest.mark.parametrize("largest", [True, False])
def test_extreme_pairs_of_a_pencil_are_those_of_scipy(tw, largest):
    metric = S[1] @ S[1] + np.eye(4)
    values, vectors = (np.asarray(x) for x in tw.lobpcg(tw.tensor(S), 2, tw.tensor(metric), largest=largest))
    for a, found, X in zip(S, values, vectors, strict=True):
        every = scipy.linalg.eigh(a, metric, eigvals_only=True)
        np.testing.assert_allclose(found, every[:-3:-1] if largest else every[:2], rtol=1e-9)
        np.testing.assert_allclose(a @ X, metric @ X * found, atol=1e-11)
        np.testing.assert_allclose(X.T @ metric @ X, np.eye(2), atol=1e-12)
    alone, like = tw.lobpcg(tw.tensor(S), X=tw.ones(4, 3), largest=largest), np.linalg.eigvalsh(S)
    np.testing.assert_allclose(np.asarray(alone[0]), like[:, :0:-1] if largest else like[:, :3], rtol=1e-9)


def test_factors_multiply_to_what_they_factor():
    la = dynamic.linalg
    for x in (A, TALL, TALL.swapaxes(-1, -2)):
        P, L, U = la.lu(x)
        q, r = la.qr(x)
        u, s, v = la.svd(x, full_matrices=False)
        packed, tau = dynamic.geqrf(x)
        for y in (P @ L @ U, q @ r, (u * s.unsqueeze(-2)) @ v, dynamic.ormqr(packed, tau, packed.triu())):
            np.testing.assert_allclose(np.asarray(y), x, atol=1e-12)
    w, v = la.eigh(S)
    np.testing.assert_allclose(np.asarray((v * w.unsqueeze(-2)) @ v.transpose(-2, -1)), S, atol=1e-10)


SINGULAR = np.stack([np.eye(3), np.ones((3, 3))])
ERRORS = {
    "cholesky": (lambda tw, x: tw.linalg.cholesky(-x), SINGULAR[0], LinAlgError,
                 r"^linalg.cholesky: The factorization could not be completed because the input is not "
                 r"positive-definite \(the leading minor of order 1 is not positive-definite\)."),
    "of a batch": (lambda tw, x: tw.linalg.cholesky(x), SINGULAR, LinAlgError, r"linalg.cholesky: \(Batch element 1\)"),
    "inv": (lambda tw, x: tw.linalg.inv(x), SINGULAR, LinAlgError,
            r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero, the inversion could not be completed"),
    "solve": (lambda tw, x: tw.linalg.solve(x, x), SINGULAR, LinAlgError,
              r"linalg.solve: \(Batch element 1\): The solver failed because the input matrix is singular."),
    "eigh": (lambda tw, x: tw.linalg.eigh(x)[0], np.full((2, 2), np.nan), LinAlgError,
             "linalg.eigh: The algorithm failed"),
    "svd": (lambda tw, x: tw.linalg.svdvals(x), np.full((2, 2), np.inf), LinAlgError, "contained non-finite values"),
    "rectangle": (lambda tw, x: tw.linalg.det(x), np.ones((2, 3)), ShapeError,
                  "linalg.det: A must be batches of square matrices, but they are 2 by 3 matrices"),
    "vector": (lambda tw, x: tw.linalg.inv(x), np.ones(2), ShapeError, "must have at least 2 dimensions"),
    "ints": (lambda tw, x: tw.linalg.inv(x), np.eye(2, dtype=np.int64), DTypeError, "Expected a floating point"),
    "sizes": (lambda tw, x: tw.linalg.solve(x, x[:2, :1]), np.eye(3), ShapeError, "Incompatible shapes of A and B"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("tw", ENGINES, ids=lambda e: e.__name__)
def test_errors(tw, name):
    call, x, kind, told = ERRORS[name]
    with pytest.raises(kind, match=told):
        call(tw, tw.tensor(x))
    with pytest.raises(kind, match=told):
        tw.function(lambda x: call(tw, x) + 1)(x)


def test_without_a_check_info_tells():
    for tw in ENGINES:
        assert tw.linalg.inv_ex(SINGULAR).info.tolist() == [0, 2]
        assert tw.linalg.cholesky_ex(SINGULAR).info.tolist() == [0, 2]
        assert tw.linalg.lu_factor_ex(SINGULAR).info.tolist() == [0, 2]
        assert tw.linalg.det(SINGULAR).tolist() == [1, 0]
        assert tw.linalg.slogdet(SINGULAR).logabsdet.tolist() == [0, -np.inf]


def finite(tw):
    return (
        lambda x: tw.linalg.eigvalsh(x).sum(),
        lambda x: tw.linalg.svdvals(x).sum(),
        lambda x: (tw.linalg.eigh(x).eigenvectors ** 2).sum(),
        lambda x: tw.linalg.det(x - 1),
    )


def test_gradients_stay_finite_where_values_are_equal_or_zero():
    for tw in ENGINES:
        for f in finite(tw):
            assert np.isfinite(np.asarray(tw.function(tw.grad(f))(np.eye(3)))).all()
    x = dynamic.tensor(TALL, requires_grad=True)
    with pytest.raises(GradientError, match="not differentiable when mode='complete' and nrows > ncols"):
        dynamic.linalg.qr(x, "complete").Q.sum().backward()


def test_loops_and_sizes_share_one_program():
    def f(tw, x):
        return tw.fori_loop(0, 3, lambda i, c: tw.linalg.solve(c + x, x), x)

    compiled = static.function(lambda x: f(static, x))
    for n in (4, 2, 1, 3):
        x = A[0, :n, :n].copy()
        assert compiled(x).numpy().tobytes() == f(dynamic, dynamic.tensor(x)).numpy().tobytes()


def test_threads_that_call_one_program_do_not_meet():
    compiled = static.function(lambda x: static.linalg.inv(static.tanh(x)) @ x + static.linalg.det(x * 2))
    inputs = [RNG.normal(size=(30, 30)) for _ in range(4)]
    expected = [compiled(x).numpy().copy() for x in inputs]
    wrong = []

    def work(i):
        wrong.extend(i for _ in range(30) if compiled(inputs[i]).numpy().tobytes() != expected[i].tobytes())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_a_library_raises_leaves_the_program(monkeypatch):
    def broken(*args):
        raise MemoryError("no memory")

    compiled = static.function(lambda x: static.matrix_exp(x) + 1)
    monkeypatch.setattr(np.linalg, "qr", broken)
    with pytest.raises(MemoryError, match="no memory"):
        static.function(lambda x: static.linalg.qr(x + 1)[1] + 1)(np.eye(3, 2) * 2)  # no small square matrix
    assert compiled(np.zeros((2, 2))).tolist() == [[2, 1], [1, 2]]


def test_exponentials_of_float32_have_its_accuracy():
    """Squaring doubles an error each time, so that a rounded one would show."""
    x = np.random.default_rng(3).uniform(-9, 9, (5, 5)).astype(np.float32)
    exact = scipy.linalg.expm(x.astype(np.float64))
    np.testing.assert_allclose(dynamic.matrix_exp(x).numpy(), exact, rtol=1.2e-7)


def test_eager_results_of_lapack_have_memory_of_their_own_in_order():
    a = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    spd = a @ a.swapaxes(1, 2) + np.eye(4, dtype=np.float32)
    for x in (spd, spd[::-1], np.asfortranarray(spd), spd.swapaxes(1, 2)):
        t = dynamic.tensor(np.array(x, order="K"))
        for y in (dynamic.linalg.cholesky(t), *dynamic.linalg.qr(t), *dynamic.linalg.eigh(t), dynamic.linalg.inv(t)):
            assert y.is_contiguous()
            assert y.dtype == dynamic.float32
            assert not np.shares_memory(y.numpy(), t.numpy())
        c = dynamic.linalg.cholesky(t).numpy()
        assert np.allclose(c @ c.swapaxes(1, 2), x, rtol=1e-5, atol=1e-5)
        assert np.array_equal(static.function(static.linalg.cholesky)(t).numpy(), c)
    with pytest.raises(LinAlgError, match="not positive-definite"):
        dynamic.linalg.cholesky(dynamic.tensor(-spd))


def test_an_operand_or_an_array_by_columns_is_copied_into_a_result():
    x = np.arange(6.0).reshape(2, 3)
    spec = Spec((2, 3), x.dtype)
    for y in (x, np.asfortranarray(x), x[:], x.astype(np.float32)):
        made = in_memory_of_its_own(y, spec, (x,))
        assert made.flags.c_contiguous
        assert made.dtype == x.dtype
        assert np.array_equal(made, x)
        assert not np.shares_memory(made, x)
    fresh = x + 1
    assert in_memory_of_its_own(fresh, spec, (x,)) is fresh


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 40])  # below and above the size from which on potrf is called by itself
def test_a_matrix_of_a_batch_has_the_factor_that_it_has_alone(n, dtype):
    x = np.random.default_rng(n).normal(size=(3, n, n))
    a = (x @ x.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)
    a[1, -1, -1] = -1
    factors, info = dynamic.linalg.cholesky_ex(dynamic.tensor(a))
    assert info.tolist() == [0, n, 0]
    for i in (0, 2):
        alone = dynamic.linalg.cholesky(dynamic.tensor(a[i]))
        assert factors[i].numpy().tobytes() == alone.numpy().tobytes()
        assert not np.triu(alone.numpy(), 1).any()
        np.testing.assert_allclose(alone.numpy(), np.linalg.cholesky(a[i].astype(np.float64)), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match=f"Batch element 1.*leading minor of order {n} "):
        dynamic.linalg.cholesky(dynamic.tensor(a))


@pytest.mark.parametrize(("n", "k"), [(1, 3), (3, 1), (40, 7)])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_a_triangular_system_reads_one_triangle(n, k, upper, unit):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n, n)) / n + 2 * np.eye(n), rng.normal(size=(2, n, k))
    t = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    t = t + np.eye(n) if unit else t
    found = dynamic.linalg.solve_triangular(
        dynamic.tensor(a), dynamic.tensor(b), upper=upper, unitriangular=unit
    ).numpy()
    np.testing.assert_allclose(found, np.linalg.solve(t, b), rtol=1e-9, atol=1e-12)
