"""The order in which gradients are added up (docs/numerics.md), written out by hand: what parity cannot show."""

import numpy as np
import pytest

import common.ops.functional as F
from common.autograd import backward as autograd
from static.jit.function import CompiledFunction
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap
from tests.oracle.test_kernels import ordered_sum

pytestmark = pytest.mark.quick

f4 = np.float32


def normals(seed, *shapes):
    """Arrays of values of many magnitudes, so that every order of addition shows."""
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=s) * 10.0 ** rng.integers(-3, 4, s)).astype(f4) for s in shapes]


def both(f, *arrays):
    """The gradients of ``f`` by both engines, which must be the same; f gives a list of tensors."""

    def program(*tensors):
        leaves = [x.detach().requires_grad_() for x in tensors]
        return [x.detach() for x in f(*leaves)]

    eager = [x.numpy() for x in program(*map(wrap, arrays))]
    for a, b in zip(eager, CompiledFunction(program)(*arrays), strict=True):
        assert_same_bits(b, a, "compiled")
    return eager


def test_contributions_are_added_from_the_last_consumer_to_the_first():
    x, a, b, c, d = normals(1, *[200] * 5)

    def f(x):
        first = x * wrap(a)
        left = first + x * wrap(b)
        right = x * wrap(c) + x * wrap(d)
        return autograd.grad(F.sum(left + right), x)

    (grad,) = both(f, x)
    assert_same_bits(grad, ((d + c) + b) + a, "x.grad")
    assert (grad != ((a + b) + c) + d).any(), "the order does not show with these numbers"


def test_operands_of_one_node_are_taken_from_left_to_right():
    x, a = normals(2, 100, 100)

    def f(x):
        return autograd.grad(F.where(wrap(a > 0), x * wrap(a), x), x, wrap(a))

    (grad,) = both(f, x)
    # where's contribution to its last operand comes before that of the older mul
    assert_same_bits(grad, np.where(a > 0, f4(0), a) + np.where(a > 0, a, f4(0)) * a, "x.grad")


def test_a_missing_contribution_is_no_zero():
    (x,), seed = normals(3, 5), np.full(5, -0.0, f4)
    (grad,) = both(lambda x: autograd.grad(x * 1.0, x, wrap(seed)), x)
    assert_same_bits(grad, seed, "the gradient -0.0")


def test_a_leaf_is_totalled_before_it_is_added_to_grad():
    x, a, b, c = normals(4, *[300] * 4)

    def f(x):
        F.sum(x * wrap(a)).backward()
        F.sum(x * wrap(b) + x * wrap(c)).backward()
        return [x.grad]

    (grad,) = both(f, x)
    assert_same_bits(grad, a + (c + b), "x.grad")
    assert (grad != (a + c) + b).any(), "the order does not show with these numbers"


def test_undoing_a_broadcast_is_one_sum():
    x, g = normals(5, (1, 1), (40, 37))
    (grad,) = both(lambda x: autograd.grad(x + wrap(np.zeros((40, 37), f4)), x, wrap(g)), x)
    expected = ordered_sum(g.ravel())
    assert_same_bits(grad, expected.reshape(1, 1), "x.grad")
    by_axis = ordered_sum(np.array([ordered_sum(row) for row in g]))
    assert by_axis != expected, "the order does not show with these numbers"


def test_sizes_that_happen_to_be_one_or_equal_are_not_summed():
    """A sum over one element turns -0 into +0: neither engine does it where nothing was repeated."""
    seed = np.full((1, 3), -0.0, f4)

    def f(x, b, seed):
        # in a trace x[1:] has the size n - 1, which is 1 here and which nothing says to be that of the seed
        return autograd.grad(x[1:] + b, b, seed)

    x, b = normals(8, (2, 3), (1, 3))
    for operand in (b, np.concatenate([b, b])[:1]):
        (grad,) = both(f, x, operand, seed)
        assert_same_bits(grad, seed, "b.grad")
    x, c = normals(9, (3, 3), (2, 3))
    (grad,) = both(f, x, c, np.full((2, 3), -0.0, f4))
    assert_same_bits(grad, np.full((2, 3), -0.0, f4), "c.grad")


def test_contributions_are_cast_before_they_are_added():
    (x,), (a, b) = normals(6, 100), np.random.default_rng(6).normal(size=(2, 100))

    def f(x):
        wide = x.double() * wrap(a)
        return autograd.grad(F.sum(wide) + F.sum(x.double() * wrap(b)), x)

    (grad,) = both(f, x)
    assert_same_bits(grad, b.astype(f4) + a.astype(f4), "x.grad")


def test_gradients_of_a_slice_are_placed_then_added():
    x, a, b = normals(7, 10, 4, 10)
    (grad,) = both(lambda x: autograd.grad(F.sum(x[2:6] * wrap(a)) + F.sum(x * wrap(b)), x), x)
    placed = np.zeros(10, f4)
    placed[2:6] = a
    assert_same_bits(grad, b + placed, "x.grad")


def test_special_values_have_the_documented_results():
    nan, inf = np.nan, np.inf
    table = [
        (F.maximum, (-0.0, 0.0), 0.0), (F.maximum, (0.0, -0.0), 0.0), (F.minimum, (0.0, -0.0), -0.0),
        (F.maximum, (nan, 1.0), nan), (F.minimum, (1.0, nan), nan), (F.relu, (-0.0,), 0.0), (F.relu, (nan,), nan),
        (F.relu, (-inf,), 0.0), (F.sign, (-0.0,), -0.0), (F.sign, (nan,), nan), (F.pow, (0.0, 0.0), 1.0),
        (F.pow, (nan, 0.0), 1.0), (F.pow, (-8.0, 1 / 3), nan), (F.pow, (-2.0, 3.0), -8.0), (F.sqrt, (-0.0,), -0.0),
        (F.rsqrt, (0.0,), inf), (F.log, (0.0,), -inf), (F.log, (-1.0,), nan), (F.exp, (-inf,), 0.0),
        (F.sigmoid, (-inf,), 0.0), (F.tanh, (-0.0,), -0.0), (F.erf, (inf,), 1.0), (F.div, (1.0, -0.0), -inf),
    ]  # fmt: skip
    for dtype in (np.float32, np.float64):
        for f, operands, expected in table:
            result = f(*[wrap(np.array([v], dtype)) for v in operands]).numpy()
            assert_same_bits(result, np.array([expected], dtype), f"{f}{operands}")


def test_integers_follow_their_table():
    low, big = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    x = wrap(np.array([low, big], np.int32))
    assert_same_bits((x + 1).numpy(), np.array([low + 1, low], np.int32), "sums wrap")
    assert_same_bits((-x).numpy(), np.array([low, -big], np.int32), "negation wraps")
    assert_same_bits(F.abs(x).numpy(), np.array([low, big], np.int32), "the magnitude wraps")
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -2.7, 2.7], f4)
    limits = np.iinfo(np.int64)
    expected = np.array([0, limits.max, limits.min, limits.max, -2, 2])
    assert_same_bits(wrap(values).to(np.int64).numpy(), expected, "float to int saturates")
