"""Products of small matrices are functions of numbers: no kernel of products, the bits of it, loops as one kernel."""

import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.parity.engines import Derivatives
from tests.static.compare import assert_compiles, program_of

BATCHES = {
    "rotations": (lambda a, b: (a @ b).neg() @ a, (50, 3, 3), (50, 3, 3)),
    "covariances": (lambda a, b: b @ a @ b.mT + a, (50, 2, 2), (50, 2, 2)),
    "quadratic forms": (lambda a, b: (b @ a @ b.mT).squeeze(-1).sqrt(), (40, 4, 4), (40, 1, 4)),
    "of stacks": (lambda a, b: static_or(a).stack([a[:, 0], -a[:, 1]], -1)[:, None] @ b, (9, 2), (9, 2, 2)),
    "elements": (lambda a, b: (a @ b)[:, 0, 1] / (a @ b)[:, 1, 1], (30, 3, 3), (30, 3, 3)),
    "long rows": (lambda a, b: (a @ b).exp() + a[:, :2, :2], (60, 2, 7), (60, 7, 2)),
    "gradients of a triangle": (lambda a, b: a @ a.mT / b, (40, 3, 2), (40, 3, 3)),
    "a larger matrix and vectors": (lambda a, b: a @ b * 2, (50, 6, 7), (50, 7, 1)),
    "elements of a larger matrix": (lambda a, b: elements((a @ b).exp() + 1), (50, 5, 7), (50, 7, 5)),
    "vectors": (lambda a, b: (a @ b)[:, 0, 0].exp() * a[:, 1, 2], (70, 3, 3), (70, 3, 1)),
}
LARGER = {
    "many columns": (lambda a, b: (a @ b).exp(), (70, 3), (3, 20)),
    "five rows": (lambda a, b: a @ b, (70, 5, 5), (70, 5, 5)),
    "rows of a matrix": (lambda a, b: (a @ b)[:, :2].exp() * 2, (30, 5, 7), (30, 7, 5)),
    "a matrix and its elements": (lambda a, b: (a @ b) + (a @ b)[:, :1, :1], (30, 5, 7), (30, 7, 5)),
}


def elements(x):
    """A quotient of elements, as in a factorisation."""
    return (x[:, 4, 0] - x[:, 0, 3] * x[:, 2, 2]) / x[:, 1, 1]


def static_or(x):
    """The engine of a tensor."""
    return dynamic if isinstance(x, dynamic.Tensor) else static


def arrays(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("name", [*BATCHES, *LARGER])
def test_values_and_gradients_have_the_bits_of_the_other_engine(name):
    program, *shapes = {**BATCHES, **LARGER}[name]
    Derivatives(program, order=1).check(arrays(*shapes), np.random.default_rng(1), name)


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_one_loop(name):
    program, *shapes = BATCHES[name]
    f = assert_compiles(program, arrays(*shapes))
    assert [step.name[:2] for step in program_of(f).steps] == ["k_"]
    assert "mm" not in str(f.newest.graph)


def test_larger_matrices_keep_their_kernel():
    for program, *shapes in LARGER.values():
        f = static.function(program)
        f(*arrays(*shapes))
        assert "mm" in str(f.newest.graph)


def test_an_element_is_a_chain_of_fused_multiply_adds():
    a, b = arrays((6, 3, 4), (6, 4, 3), dtype=np.float64)
    found = np.asarray(static.function(lambda a, b: a @ b)(a, b))
    for s, i, j in np.ndindex(found.shape):
        total = 0.0
        for x, y in zip(a[s, i], b[s, :, j], strict=True):
            total = float(Fraction(x) * Fraction(y) + Fraction(total))
        assert found[s, i, j] == total


def test_sums_of_more_elements_than_lanes_keep_their_order():
    def program(tw, a, b):
        return ((a @ b) + tw.arange(160.0).reshape(5, 4, 8)).sum((1, 2)), ((a @ b) * tw.ones(5, 4, 4)).sum((1, 2))

    given = arrays((5, 1, 3), (5, 3, 1))
    expected = program(dynamic, *map(dynamic.tensor, given))
    found = static.function(partial(program, static))(*map(static.tensor, given))
    assert_all_same_bits([np.asarray(x) for x in found], [np.asarray(x) for x in expected], "sums")


def test_zeros_have_the_signs_of_a_sum_from_zero():
    a = np.array([[[-0.0, 0.0], [1.0, -1.0]]], np.float32)
    b = np.array([[[1.0, -0.0], [-1.0, -0.0]]], np.float32)
    f = static.function(lambda a, b: (a @ b, (a @ b[:, :, :1]), a @ b + 0.0))
    given = [dynamic.tensor(x) for x in (a, b)]
    expected = [given[0] @ given[1], given[0] @ given[1][:, :, :1], given[0] @ given[1] + 0.0]
    assert_all_same_bits([np.asarray(x) for x in f(a, b)], [np.asarray(x) for x in expected], "zeros")
    assert not np.signbit(np.asarray(f(a, b)[0])[0, 0]).any()


def test_batches_of_all_sizes_share_a_trace():
    f = static.function(lambda a, b: a @ b)
    for n in (7, 1000, 2, 0):
        a, b = arrays((n, 3, 3), (n, 3, 3))
        np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert len(f.traces) == 1
    a, b = arrays((7, 5, 5), (7, 5, 5))
    np.testing.assert_allclose(f(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert len(f.traces) == 2


def test_rows_of_any_number_share_a_trace():
    f = static.function(lambda x, w: (x @ w).tanh() @ w)
    for m in (70, 3, 9):
        x, w = arrays((m, 4), (4, 4))
        assert_all_same_bits([f(x, w)], [(dynamic.tensor(x) @ dynamic.tensor(w)).tanh() @ dynamic.tensor(w)], "rows")
    assert len(f.traces) == 1


def filtered(tw, A, H, z):
    """A Kalman filter of two numbers."""
    eye = tw.eye(2)

    def step(carry, z):
        m, P = carry
        m, P = A @ m, A @ P @ A.T + 0.01 * eye
        S = P + 0.1 * eye
        det = S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0]
        inverse = tw.stack([tw.stack([S[1, 1], -S[0, 1]]), tw.stack([-S[1, 0], S[0, 0]])]) / det
        K = P @ inverse
        m = m + K @ (z - m)
        return (m, (eye - K) @ P), (m, H @ m - m, P.sum(0).amax(0))

    return tw.scan(step, (z[0] * 0, eye), z)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_filter_is_one_kernel_per_direction(gradient):
    A, H, z = arrays((2, 2), (2, 2), (20, 2))
    A = np.array([[1, 0.1], [0, 1]], np.float32) + 0.01 * A

    def loss(tw, *given):
        carry, rows = filtered(tw, *given)
        return sum((x * x).sum() for x in (*carry, *rows))

    def values(tw, *given):
        carry, rows = filtered(tw, *given)
        return (*carry, *rows)

    def program(tw):
        if gradient:
            return tw.grad(lambda *given: loss(tw, *given), argnums=(0, 1, 2))
        return lambda *given: values(tw, *given)

    f = static.function(program(static))
    found = f(*map(static.tensor, (A, H, z)))
    expected = program(dynamic)(*map(dynamic.tensor, (A, H, z)))
    assert_all_same_bits([np.asarray(x) for x in found], [np.asarray(x) for x in expected], "filter")
    loops = [step for step in program_of(f).steps if step.name == "loop"]
    assert len(loops) == 1 + gradient
    assert all(set(step.regions) == {"iterations"} and len(step.regions["iterations"].steps) == 1 for step in loops)


OPERATIONS = {
    "product": lambda tw, a, b: a @ b,
    "turned": lambda tw, a, b: a @ b.mT,
    "sum": lambda tw, a, b: a + b,
    "function": lambda tw, a, b: tw.sin(a) * b,
    "rows": lambda tw, a, b: tw.stack([a[..., 0, :], b[..., -1, :], a[..., 1, :]][: a.shape[-1]], -2),
    "columns": lambda tw, a, b: tw.cat([a[..., :1], b[..., 1:]], -1),
    "scaled": lambda tw, a, b: a * b.sum(-1).unsqueeze(-1),
    "vector": lambda tw, a, b: (a @ b[..., 0].unsqueeze(-1)) - b,
}


def random_program(seed):
    """A function of two matrices, of six operations on what there is."""
    choose = random.Random(seed)
    steps = [(choose.choice([*OPERATIONS]), choose.random(), choose.random()) for _ in range(6)]

    def run(tw, a, b):
        values = [a, b]
        for name, i, j in steps:
            values.append(OPERATIONS[name](tw, *(values[int(k * len(values))] for k in (i, j))))
        return values[-1]

    return run


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_of_matrices_and_loops_have_the_bits_of_the_other_engine(seed):
    run, size, batch = random_program(seed), 2 + seed % 2, 5
    a, b = arrays((batch, size, size), (batch, size, size))

    def whole(tw, a, b):
        return run(tw, a, b)

    def looped(tw, a, b):
        return tw.scan(lambda c, row: (tw.tanh(run(tw, c, row)), c), a[0], b)[1]

    for form in (whole, looped):
        given = [[tw.tensor(x) for x in (a, b)] for tw in (static, dynamic)]
        found, expected = [], []
        for tw, into, wrap in ((static, found, static.function), (dynamic, expected, lambda f: f)):
            own = given[tw is dynamic]
            program = partial(form, tw)
            into.append(wrap(program)(*own))
            into += wrap(tw.grad(lambda a, b, f=program: f(a, b).square().sum(), argnums=(0, 1)))(*own)
        assert_all_same_bits([np.asarray(x) for x in found], [np.asarray(x) for x in expected], form.__name__)
