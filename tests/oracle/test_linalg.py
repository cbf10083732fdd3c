"""Products against numpy's formulas: integers exactly, so that no rounding can hide a wrong element; and errors."""

import itertools

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.tensor.base import Tensor
from tests.helpers.cases_linalg import EQUATIONS
from tests.helpers.wrapped import wrap


def ints(rng, *shape):
    return rng.integers(-9, 10, shape)


def assert_same(actual, expected):
    actual = np.asarray(actual)
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("n", [3, 1, 0])
@pytest.mark.parametrize("equation", EQUATIONS, ids=lambda e: e[0])
def test_equation(equation, n):
    text, *shapes = equation
    rng = np.random.default_rng(50)
    operands = [ints(rng, *(n if s == "n" else s for s in shape)) for shape in shapes]
    expected = np.einsum("...i->...i", operands[0]).sum((0, 1)) if text == "...i->i" else _numpys(text, operands)
    for engine in (dynamic, static):
        assert_same(engine.einsum(text, *operands), expected)


def _numpys(text, operands):
    """numpy's einsum, which does not broadcast sizes of 1 that have a letter."""
    sizes = {}
    terms = text.partition("->")[0].split(",")
    if "." not in text:
        for term, x in zip(terms, operands, strict=True):
            for letter, n in zip(term, x.shape, strict=True):
                sizes[letter] = n if sizes.get(letter, 1) == 1 else sizes[letter]
        operands = [
            np.broadcast_to(x, [sizes[letter] for letter in term]) for term, x in zip(terms, operands, strict=True)
        ]
    return np.einsum(text, *operands)


def test_random_equations():
    """Up to four operands over five letters and "...", with repeated letters and sizes of 0 and 1."""
    rng = np.random.default_rng(51)
    for _ in range(300):
        sizes = {letter: int(rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.2, 0.25, 0.25, 0.25])) for letter in "aBcde"}
        hidden = tuple(rng.choice([1, 2, 3], 2).tolist())
        terms, operands = [], []
        for _ in range(rng.integers(1, 5)):
            letters = [str(x) for x in rng.choice(list(sizes), rng.integers(0, 4))]
            shape = [sizes[x] for x in letters]
            if rng.random() < 0.4:
                at = int(rng.integers(0, len(letters) + 1))
                some = hidden[rng.integers(0, 3) :]
                letters.insert(at, "...")
                shape[at:at] = [1 if rng.random() < 0.3 else n for n in some]
            terms.append("".join(letters))
            operands.append(ints(rng, *shape))
        used = sorted({x for term in terms for x in term if x != "."})
        chosen = [str(x) for x in rng.permutation(used)[: rng.integers(0, len(used) + 1)]]
        if any("..." in term for term in terms):
            chosen.insert(int(rng.integers(0, len(chosen) + 1)), "...")
        text = ",".join(terms)
        if rng.random() < 0.8:
            text += "->" + "".join(chosen)
        expected = np.einsum(text, *operands)
        actual = dynamic.einsum(text, *operands)
        assert actual.shape == expected.shape, text
        np.testing.assert_array_equal(actual.numpy(), expected, err_msg=text)
        np.testing.assert_array_equal(static.einsum(text, *operands), expected, err_msg=text)


SHAPES = [(3,), (2, 3), (3, 2), (4, 2, 3), (4, 3, 2), (1, 3, 2), (5, 1, 2, 3), (4, 3, 3), (3, 3), (0, 3), (3, 0), (0,),
          (2, 0, 3), (0, 2, 3), (0, 3, 2), (1,), (1, 1)]  # fmt: skip


def test_matmul_of_every_mixture_of_dimensions():
    """Each pair of these shapes either fits as in numpy, or raises; `@` with arrays on either side too."""
    rng = np.random.default_rng(52)
    fitting = 0
    for a, b in itertools.product(SHAPES, repeat=2):
        x, y = ints(rng, *a), ints(rng, *b)
        try:
            expected = np.matmul(x, y)
        except ValueError:
            for engine in (dynamic, static):
                with pytest.raises(ShapeError):
                    engine.matmul(x, y)
            continue
        fitting += 1
        assert_same(dynamic.matmul(x, y), expected)
        assert_same(static.matmul(x, y), expected)
        for result in (wrap(x) @ y, x @ wrap(y)):
            assert type(result) is Tensor
            assert_same(result, expected)
    assert fitting > 60


def test_matmul_with_an_array_inside_a_trace():
    x, y = ints(np.random.default_rng(53), 3, 4), ints(np.random.default_rng(54), 4, 2)
    assert_same(static.function(lambda a: a @ y)(x), x @ y)
    assert_same(static.function(lambda b: x @ b)(y), x @ y)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_wrap_in_their_own_dtype(dtype):
    rng = np.random.default_rng(55)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((5, 40), (40, 3)))
    with np.errstate(all="ignore"):
        expected = np.matmul(a, b)
    for name, call in {
        "matmul": lambda tw: tw.matmul(a, b),
        "einsum": lambda tw: tw.einsum("ij,jk", a, b),
        "tensordot": lambda tw: tw.tensordot(a, b, 1),
    }.items():
        for engine in (dynamic, static):
            result = np.asarray(call(engine))
            assert result.dtype == dtype, name
            assert_same(result, expected)
    summed = np.asarray(dynamic.einsum("ij,k->k", a, b[0]))
    assert summed.dtype == dtype
    with np.errstate(all="ignore"):
        assert_same(summed, (a.sum(dtype=dtype) * b[0]).astype(dtype))


RNG = np.random.default_rng(56)
A, B, C, V, W = ints(RNG, 3, 4), ints(RNG, 4, 5), ints(RNG, 5, 2), ints(RNG, 4), ints(RNG, 3)
P, Q, S = ints(RNG, 2, 3, 4), ints(RNG, 2, 4, 5), ints(RNG, 4, 4)
FORMULAS = {
    "dot": (F.dot, (V, V[::-1]), (V * V[::-1]).sum()),
    "mv": (F.mv, (A, V), A @ V),
    "outer": (F.outer, (V, W), np.outer(V, W)),
    "inner": (F.inner, (P, A), np.inner(P, A)),
    "inner, 0-d": (F.inner, (P, V[0]), P * V[0]),
    "kron": (F.kron, (A, P), np.kron(A, P)),
    "trace": (F.trace, (A,), np.trace(A)),
    "cross": (F.cross, (A.T, A.T[::-1]), np.cross(A.T, A.T[::-1])),
    "cross, first": (lambda a, b: F.cross(a, b, 0), (A, A[:, :1]), np.cross(A, A[:, :1] + 0 * A, axis=0)),
    "tensordot": (lambda a, b: F.tensordot(a, b, 1), (P, Q[0]), np.tensordot(P, Q[0], 1)),
    "tensordot, lists": (
        lambda a, b: F.tensordot(a, b, ([-1, 0], [1, 0])), (P, Q), np.tensordot(P, Q, ([2, 0], [1, 0])),
    ),
    "tensordot, all": (F.tensordot, (S, S), (S * S).sum()),
    "tensordot, of size 1": (lambda a, b: F.tensordot(a, b, ([0], [0])), (A, B[:1]), np.outer(A.sum(0), B[0])),
    "chain_matmul": (F.chain_matmul, (A, B, C), A @ B @ C),
    "multi_dot": (lambda *x: F.multi_dot(x), (W, A, B, C), W @ A @ B @ C),
    "matrix_power": (lambda x: F.matrix_power(x, 6), (S,), np.linalg.matrix_power(S, 6)),
    "matrix_power, 0": (lambda x: F.matrix_power(x, 0), (np.stack([S, S]),), np.stack([np.eye(4, dtype=int)] * 2)),
    "addmm": (lambda c, a, b: F.addmm(c, a, b, beta=2, alpha=-3), (ints(RNG, 5), A, B), None),
    "baddbmm": (F.baddbmm, (A[:, :1], P, Q), A[:, :1] + P @ Q),
    "addmv": (lambda c, a, b: F.addmv(c, a, b, beta=2, alpha=-3), (W, A, V), 2 * W - 3 * (A @ V)),
    "addr": (F.addr, (V, W, V), V + np.outer(W, V)),
    "bilinear": (
        F.bilinear, (A, A[::-1], ints(RNG, 2, 4, 4), W[:2]), None,
    ),
}  # fmt: skip
FORMULAS["addmm"] = (*FORMULAS["addmm"][:2], 2 * FORMULAS["addmm"][1][0] - 3 * (A @ B))
_x, _y, _w, _b = FORMULAS["bilinear"][1]
FORMULAS["bilinear"] = (F.bilinear, (_x, _y, _w, _b), np.einsum("ni,oij,nj->no", _x, _w, _y) + _b)


@pytest.mark.parametrize("name", FORMULAS)
def test_value(name):
    f, arrays, expected = FORMULAS[name]
    for kind in ("int64", "float64"):  # small integers are exact in both
        assert_same(f(*[wrap(x.astype(kind)) for x in arrays]).numpy(), np.asarray(expected))


def test_a_beta_of_zero_ignores_the_input():
    nan = wrap(np.full((3, 5), np.nan))
    a, b = wrap(A.astype(float)), wrap(B.astype(float))
    assert_same(F.addmm(nan, a, b, beta=0).numpy(), (A @ B).astype(float))


@pytest.mark.parametrize("engine", [dynamic, static])
@pytest.mark.parametrize("n", [3, 40])
def test_triangular_systems_without_right_hand_sides_have_the_empty_solution(engine, n):
    a, lu, pivots = engine.eye(n) * 2, engine.eye(n), engine.arange(1, n + 1, dtype=engine.int32)
    b = engine.zeros(n, 0, requires_grad=True)
    for solve in (
        lambda b: engine.linalg.solve_triangular(a, b, upper=True),
        lambda b: engine.linalg.solve_triangular(a, b.mT, upper=True, left=False).mT,
        lambda b: engine.triangular_solve(b, a)[0],
        lambda b: engine.cholesky_solve(b, a),
        lambda b: engine.lu_solve(b, lu, pivots),
    ):
        assert solve(b).shape == engine.function(solve)(b).shape == (n, 0)
        assert engine.autograd.grad(solve(b).sum(), b)[0].shape == (n, 0)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_lists_of_numbers_stand_for_the_equation_of_einsum(engine):
    x, y = engine.arange(6.0).reshape(2, 3), engine.arange(12.0).reshape(3, 4)
    calls = [
        lambda f, x, y: f(x, [0, 1], y, [1, 2], [2, 0]),
        lambda f, x, y: f(x, [30, 1], y, [1, 2]),
        lambda f, x, y: f(x, [..., 1], y[:, 0], [1], [...]),
        lambda f, x, y: f(x, (51, 26), []),
        lambda f, x, y: f(x, [2, 1]),
    ]
    for call in calls:
        expected = call(np.einsum, x.numpy(), y.numpy())
        assert_same(call(engine.einsum, x, y).numpy(), expected)
        assert_same(engine.function(lambda x, y, call=call: call(engine.einsum, x, y))(x, y).numpy(), expected)
    for wrong in ([52, 0], [-1, 0], [0.5, 0], ["a", "b"]):
        with pytest.raises(ArgumentError, match="valid range"):
            engine.einsum(x, wrong)
    with pytest.raises(ArgumentError, match="must be str, not list"):
        engine.einsum([x, y], [0, 1])


@pytest.mark.parametrize("engine", [dynamic, static])
@pytest.mark.parametrize("equation", ["bhd,bmd->bhmd", "i,jk->kij", "abc,abd->adc", "ik,jk->ji", "ab,cd,ae->cbade"])
def test_results_of_einsum_lie_in_their_order(engine, equation):
    rng = np.random.default_rng(58)
    given = [ints(rng, *["abcdehijkm".index(x) + 2 for x in term]) for term in equation.split("->")[0].split(",")]
    flat = engine.function(lambda *given: engine.einsum(equation, *given).view(-1))
    for result in (engine.einsum(equation, *map(engine.tensor, given)).view(-1), flat(*given)):
        assert_same(result.numpy(), np.einsum(equation, *given).ravel())


def test_einsum_contracts_from_left_to_right():
    """The order of contraction is part of the definition: the bits are those of the products written out."""
    rng = np.random.default_rng(57)
    a, b, c = (wrap(rng.normal(size=s).astype(np.float32)) for s in ((20, 30), (30, 40), (40, 5)))
    left, right = (a @ b) @ c, a @ (b @ c)
    assert left.numpy().tobytes() != right.numpy().tobytes()
    for result in (F.einsum("ij,jk,kl->il", a, b, c), F.chain_matmul(a, b, c), F.multi_dot([a, b, c])):
        assert result.numpy().tobytes() == left.numpy().tobytes()


F32, M, T3 = np.float32, np.ones((2, 3), np.float32), np.ones((2, 3, 4), np.float32)
ERRORS = {
    "number of subscripts": (lambda tw: tw.einsum("ijk", M), ShapeError, "does not match the number of dimensions"),
    "fewer operands": (lambda tw: tw.einsum("ij,jk", M), ShapeError, "fewer operands"),
    "more operands": (lambda tw: tw.einsum("ij", M, M), ShapeError, "more operands"),
    "sizes": (lambda tw: tw.einsum("ij,jk", M, M), ShapeError, "subscript j has size 2 for operand 1"),
    "repeated": (lambda tw: tw.einsum("ii", M), ShapeError, "subscript i is repeated for operand 0"),
    "unknown output": (lambda tw: tw.einsum("ij->k", M), ShapeError, "output subscript k does not appear"),
    "output twice": (lambda tw: tw.einsum("ij->ii", M), ShapeError, "more than once in the output"),
    "one dot": (lambda tw: tw.einsum("i.j", M), ShapeError, "not part of any ellipsis"),
    "two ellipses": (lambda tw: tw.einsum("i...j...", M), ShapeError, "ellipsis was already found"),
    "no letter": (lambda tw: tw.einsum("i1->i", M), ShapeError, "invalid subscript '1'"),
    "too many letters": (lambda tw: tw.einsum("ijk...", M), ShapeError, "is more than the number of dimensions"),
    "no string": (lambda tw: tw.einsum(3, M), ArgumentError, "must be str, not int"),
    "no operands": (lambda tw: tw.einsum("ij"), ArgumentError, "at least one operand"),
    "einsum dtypes": (lambda tw: tw.einsum("ij,ij", M, M.astype("f8")), DTypeError, "operands of one dtype"),
    "tensordot sizes": (lambda tw: tw.tensordot(M, M, 1), ShapeError, "size 3 in dim 1 and second has size 2 in dim 0"),
    "tensordot dims": (lambda tw: tw.tensordot(M, M, 3), ShapeError, "dims < ndim_a or ndim_b, but got dims=3"),
    "tensordot negative": (lambda tw: tw.tensordot(M, M, -1), ShapeError, "dims >= 0"),
    "tensordot lists": (lambda tw: tw.tensordot(M, M, ([1], [0, 1])), ShapeError, "same length"),
    "tensordot range": (lambda tw: tw.tensordot(M, M, ([5], [0])), IndexRangeError, "out of range"),
    "tensordot twice": (lambda tw: tw.tensordot(M, M, ([0, 0], [0, 0])), ShapeError, "multiple times"),
    "outer": (lambda tw: tw.outer(M, M[0]), ShapeError, "outer: Expected 1-D argument self, but got 2-D"),
    "dot": (lambda tw: tw.dot(M, M), ShapeError, "1D tensors expected, but got 2D and 2D tensors"),
    "dot sizes": (lambda tw: tw.dot(M[0], M[0, :2]), ShapeError, "inconsistent tensor size"),
    "dot dtypes": (lambda tw: tw.dot(M[0], M[0].astype("f8")), DTypeError, "same dtype"),
    "inner": (lambda tw: tw.inner(M, M[:, :2]), ShapeError, "last dimension must match"),
    "mv": (lambda tw: tw.mv(M, M), ShapeError, r"vector \+ matrix @ vector expected, got 2, 2"),
    "mv sizes": (lambda tw: tw.mv(M, M[:, 0]), ShapeError, r"size mismatch, got input \(2\), mat \(2x3\), vec \(2\)"),
    "matmul 0-d": (lambda tw: tw.matmul(F32(1), M), ShapeError, "need to be at least 1D, but they are 0D and 2D"),
    "matmul batches": (lambda tw: tw.matmul(T3, np.ones((3, 4, 2), F32)), ShapeError, "do not broadcast"),
    "matmul bools": (lambda tw: tw.matmul(M > 0, M.T > 0), DTypeError, "not implemented for bool"),
    "addmm": (lambda tw: tw.addmm(M[0], M, M.T), ShapeError, "size 3 cannot become 2"),
    "addmm dims": (lambda tw: tw.addmm(T3[..., :2], M, M.T), ShapeError, "more dimensions"),
    "addmv": (lambda tw: tw.addmv(M[0], M, M[0]), ShapeError, "size 3 cannot become 2"),
    "trace": (lambda tw: tw.trace(M[0]), ShapeError, "expected a matrix, but got tensor with dim 1"),
    "matrix_power": (lambda tw: tw.matrix_power(M, 2), ShapeError, "they are 2 by 3 matrices"),
    "matrix_power 1-d": (lambda tw: tw.matrix_power(M[0], 2), ShapeError, "at least 2 dimensions"),
    "matrix_power float": (lambda tw: tw.matrix_power(M[:, :2], 2.5), ArgumentError, "must be int, not float"),
    "matrix_power of no square": (lambda tw: tw.matrix_power(M, -1), ShapeError, "square"),
    "chain_matmul": (lambda tw: tw.chain_matmul(M, M[0]), ShapeError, "dimension is 1, expected 2"),
    "chain_matmul nothing": (lambda tw: tw.chain_matmul(), ShapeError, "one or more matrices"),
    "multi_dot": (lambda tw: tw.multi_dot([M]), ShapeError, "at least 2 tensors but got 1"),
    "multi_dot sizes": (lambda tw: tw.multi_dot([M, M]), ShapeError, r"tensors 0 and 1 with shapes \[2, 3\] and"),
    "multi_dot dims": (lambda tw: tw.multi_dot([T3, M]), ShapeError, "first tensor must be 1D or 2D but got 3D"),
    "multi_dot inside": (lambda tw: tw.multi_dot([M, M[0], M]), ShapeError, "tensor 1 must be 2D but got 1D"),
    "cross": (lambda tw: tw.cross(M[:, :2], M[:, :2]), ShapeError, "no dimension of size 3"),
    "cross dims": (lambda tw: tw.cross(M, M[0]), ShapeError, "same number of dimensions"),
    "cross size": (lambda tw: tw.cross(M, M, 0), ShapeError, "must have length 3. Got 2 and 2"),
    "bilinear dims": (lambda tw: tw.nn.functional.bilinear(M, M[0], T3), ShapeError, "do not match: got 2 and 1"),
    "bilinear sizes": (lambda tw: tw.nn.functional.bilinear(M, M, T3), ShapeError, "got 3 but expected 4"),
    "bilinear batch": (
        lambda tw: tw.nn.functional.bilinear(M, np.ones((5, 4), F32), T3), ShapeError, "batch dimensions do not match",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    call, kind, text = ERRORS[name]
    for engine in (dynamic, static):
        with pytest.raises(kind, match=text):
            call(engine)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_a_batch_of_vectors_is_solved_in_a_trace_too(n):
    rng = np.random.default_rng(3)
    matrices, vectors = rng.normal(size=(n, 5, 5)) + 5 * np.eye(5), rng.normal(size=(n, 5))
    found = static.function(static.linalg.solve)(matrices, vectors)
    assert found.shape == vectors.shape
    assert np.allclose((matrices @ found.numpy()[..., None])[..., 0], vectors)
    assert found.numpy().tobytes() == dynamic.linalg.solve(matrices, vectors).numpy().tobytes()
