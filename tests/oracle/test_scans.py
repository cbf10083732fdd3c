"""Running sums, products and extremes, and products, against loops in plain Python and exact arithmetic."""

from fractions import Fraction
from math import inf, nan

import mpmath
import numpy as np
import pytest

import common.ops.functional as F
import dynamic
from common.autograd import backward as autograd
from static.jit.function import CompiledFunction
from static.running import executable
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap
from tests.parity.arrays import SIZES, mixed

RNG = np.random.default_rng(61)
ALL = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


def ordered_product(x):
    """The product of docs/numerics.md, one multiplication after the other."""
    if x.size > 1024:
        return ordered_product(np.array([ordered_product(x[i : i + 1024]) for i in range(0, x.size, 1024)], x.dtype))
    lanes = [x.dtype.type(1)] * 16
    with np.errstate(all="ignore"):
        for i, v in enumerate(x):
            lanes[i % 16] = lanes[i % 16] * v
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [a * b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [*SIZES, 5000])
def test_product_follows_the_definition(n, dtype):
    x = RNG.uniform(0.97, 1.03, n).astype(dtype) if dtype != "int64" else RNG.integers(-99, 99, n) * 2 + 1
    columns = np.stack([x, x[::-1], -x], 1)
    program = CompiledFunction(lambda x: (F.prod(x, 0), F.prod(x * 1, 0)))
    expected = np.array([ordered_product(column) for column in columns.T], columns.dtype)
    assert_same_bits(F.prod(wrap(columns), 0).numpy(), expected, f"columns of {n}")
    assert_same_bits(F.prod(wrap(np.ascontiguousarray(columns.T)), 1).numpy(), expected, f"rows of {n}")
    for result in program(columns):
        assert_same_bits(result, expected, f"columns of {n}, compiled")


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_results_follow_the_definition(name, dtype):
    """One operation after the other; float32 in float64, ints as int64 that wraps."""
    for shape in ((1, 40), (9, 33), (3, 1)):
        x = mixed(RNG, shape, dtype, 0.02)
        held = np.float64 if x.dtype.kind == "f" else np.int64
        result = x.dtype if x.dtype.kind == "f" else np.int64
        expected = np.empty(shape, result)
        with np.errstate(all="ignore"):
            for row, out in zip(x, expected, strict=True):
                state = held(name == "cumprod")
                for i, v in enumerate(row):
                    state = state + held(v) if name == "cumsum" else state * held(v)
                    out[i] = state.astype(result)
        f = getattr(F, name)
        assert_same_bits(f(wrap(x), 1).numpy(), expected, f"{name} of rows")
        turned = f(wrap(np.ascontiguousarray(x.T)), 0).numpy()
        assert_same_bits(turned, np.ascontiguousarray(expected.T), f"{name} of columns")
        middle = f(wrap(np.stack([x.T, x.T])), 1).numpy()
        assert_same_bits(middle, np.stack([expected.T] * 2), f"{name} in the middle")


@pytest.mark.parametrize("dtype", ALL)
def test_running_extremes(dtype):
    """As numpy's accumulate, which knows no signs of zeros; positions are the last of equal ones."""
    for n, special in ((1, 0.1), (2, 0.1), (50, 0.1), (300, 0.002)):
        x = mixed(RNG, (4, n), dtype, special)
        x[:, n // 2] = x[:, 0]
        for name, accumulate in (("cummax", np.maximum), ("cummin", np.minimum)):
            values, indices = (part.numpy() for part in getattr(F, name)(wrap(x), 1))
            np.testing.assert_array_equal(values, accumulate.accumulate(x, 1))
            assert_same_bits(values, np.take_along_axis(x, indices, 1), "values are at the positions")
            for row, at in zip(x, indices, strict=True):
                for i, p in enumerate(at):
                    later = row[p + 1 : i + 1]
                    again = np.isnan(later) if row[p] != row[p] else (later == row[p]) & (row[p] != 0)
                    assert p <= i
                    assert not again.any()


def test_zeros_have_an_order():
    x = wrap(np.array([-0.0, 0.0, -0.0, 0.0, -0.0]))
    assert F.cummax(x, 0).indices.tolist() == [0, 1, 1, 3, 3]
    assert F.cummin(x, 0).indices.tolist() == [0, 0, 2, 2, 4]


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 6e-7), ("float64", 2e-15)])
def test_logcumsumexp(dtype, bound):
    rows = [RNG.normal(size=200) * 50, np.sort(RNG.normal(size=200) * 300), -np.sort(RNG.normal(size=200) * 300)]
    for row in np.array(rows, dtype):
        actual = F.logcumsumexp(wrap(row), 0).numpy()
        with mpmath.workdps(40):
            total, expected = mpmath.mpf(0), []
            for v in row:
                total += mpmath.exp(mpmath.mpf(float(v)))
                expected.append(float(mpmath.log(total)))
        np.testing.assert_allclose(actual, expected, rtol=bound * 4, atol=bound * 4)


def test_logcumsumexp_of_infinities():
    def of(*values):
        return F.logcumsumexp(wrap(np.array(values)), 0).tolist()

    assert of(-inf, -inf, -1e5, 0.0) == [-inf, -inf, -1e5, 0.0]
    assert of(1000.0, inf, 0.0) == [1000.0, inf, inf]
    assert np.isnan(of(0.0, nan, 1.0)).tolist() == [False, True, True]
    x = wrap(np.array([-inf, 1.0, 2.0]), requires_grad=True)
    F.logcumsumexp(x, 0).sum().backward()
    later = 1 / (1 + np.exp(1.0))
    np.testing.assert_allclose(x.grad.numpy(), [0, 1 + later, 1 - later])


def test_second_derivatives_of_logcumsumexp_of_large_numbers():
    """The derivatives are those of the same numbers less 1000: it is the same function, shifted."""

    def second(values):
        x = wrap(np.array(values), requires_grad=True)
        (g,) = dynamic.autograd.grad(F.logcumsumexp(x, 0).sum(), x, create_graph=True)
        return dynamic.autograd.grad((g * g).sum(), x)[0].numpy()

    near = np.array([0.0, -1.5, 2.0, 1.0])
    np.testing.assert_allclose(second(near + 1000), second(near), rtol=1e-10)


def derivatives_of_product(x, order):
    """All partial derivatives of a product, exactly: the product of the elements not named, 0 where one is twice."""
    values = [Fraction(float(v)) for v in x]
    out = np.zeros((len(values),) * order)
    for place in np.ndindex(*out.shape):
        if len(set(place)) == order:
            rest = Fraction(1)
            for i, v in enumerate(values):
                rest *= 1 if i in place else v
            out[place] = float(rest)
    return out


@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 4])
def test_derivatives_of_a_product_with_zeros(zeros):
    """First, second and third order, of `prod` and of the last of `cumprod`; small ints, so all is exact."""
    values = np.array([0.0] * zeros + [2.0, -3.0, 5.0, 7.0, -1.0][: 5 - zeros])
    RNG.shuffle(values)
    for f in (F.prod, lambda x: F.cumprod(x, 0)[-1], lambda x: F.prod(F.reshape(x, (1, 5, 1)), (1, 2))[0]):
        x = wrap(values, requires_grad=True)
        (first,) = autograd.grad([f(x)], [x], create_graph=True)
        np.testing.assert_array_equal(first.detach().numpy(), derivatives_of_product(values, 1))
        for i in range(5):
            (second,) = autograd.grad([first[i]], [x], create_graph=True, retain_graph=True)
            np.testing.assert_array_equal(second.detach().numpy(), derivatives_of_product(values, 2)[i])
            for j in range(5):
                (third,) = autograd.grad([second[j]], [x], retain_graph=True)
                np.testing.assert_array_equal(third.numpy(), derivatives_of_product(values, 3)[i, j])


def test_scalars_and_nothing():
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        f = getattr(F, name)
        assert f(wrap(np.array(2.5)), -1).tolist() == 2.5
        assert f(wrap(np.ones((0, 3))), 0).shape == (0, 3)
        assert f(wrap(np.ones((3, 0))), 0).shape == (3, 0)
    assert F.cummax(wrap(np.array(2.5)), 0).indices.tolist() == 0
    assert F.cummin(wrap(np.ones((0, 3))), 0).values.shape == (0, 3)
    assert F.prod(wrap(np.ones((0, 3))), 0).tolist() == [1, 1, 1]
    assert F.prod(wrap(np.array(3)), -1).tolist() == 3
    assert F.prod(wrap(np.array([True, False]))).dtype == np.int64


def test_new_sizes_compile_nothing(monkeypatch):
    program = CompiledFunction(
        lambda x: (F.cumsum(x, 0), F.cumprod(x, 1), F.logcumsumexp(x, 0), F.prod(x, 0), F.var(x, 0),
                   F.norm(x), F.any(x > 0, 0), F.cummax(x, 0)))  # fmt: skip
    program(RNG.normal(size=(4, 3)))
    monkeypatch.setattr(executable, "compile_kernel", None)
    for n in (5, 9, 1000):
        program(RNG.normal(size=(n, 3)))
    assert len(program.traces) == 1
