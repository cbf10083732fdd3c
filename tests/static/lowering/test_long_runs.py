"""Chains of small matrices are one kernel, which writes elements far apart by vectors."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from tests.bits import assert_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def exponential(x):
    """The matrix exponential: a Taylor series, then squares."""
    y = x / 4
    total = 1 + y
    for k in (4, 3, 2):
        total = 1 + y @ total / k
    return total @ total


def newton(x):
    """Some steps to the inverse root."""
    y = x @ x.mT / 16
    for _ in range(3):
        y = 1.5 * y - 0.5 * y @ y @ y
    return y.exp() * x


CASES = {"exponential": exponential, "newton": newton}


def matrices(*shape, dtype=np.float32):
    x = RNG.normal(size=shape).astype(dtype)
    x.reshape(-1)[::7] = -0.0
    return x


def gradient(f):
    return tw.grad(lambda x: (f(x) ** 2).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 7, 16, 17, 300])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_products_one_by_one(name, rows, dtype):
    f, x = CASES[name], matrices(rows, 4, 4, dtype=dtype)
    eager = dynamic.tensor(x, requires_grad=True)
    made = f(eager)
    (made**2).sum().backward()
    assert_same_bits(np.asarray(tw.function(f)(x)), made.detach().numpy(), name)
    assert_same_bits(np.asarray(tw.function(gradient(f))(x)), eager.grad.numpy(), name)


@pytest.mark.parametrize("sizes", [(17, 300), (300, 17)])
def test_chains_over_two_batches_stay_apart(sizes):
    f = lambda x, y: (exponential(x)[:, 0, 0], exponential(y)[:, 1, 2])  # noqa: E731
    x, y = (matrices(n, 4, 4) for n in sizes)
    expected = f(dynamic.tensor(x), dynamic.tensor(y))
    for found, wanted in zip(tw.function(f)(x, y), expected, strict=True):
        assert_same_bits(np.asarray(found), wanted.numpy(), "chains")


@pytest.mark.parametrize("compiler", ["own", "numba"])
def test_compilers_agree(compiler):
    x = matrices(37, 4, 4)
    made = tw.function(exponential, **({} if compiler == "own" else {"compiler": compiler}))(x)
    assert_same_bits(np.asarray(made), exponential(dynamic.tensor(x)).numpy(), compiler)
    assert_compiles(exponential, (x,), (matrices(90, 4, 4),))


@pytest.mark.parametrize("name", CASES)
def test_a_chain_is_one_kernel(name):
    f = tw.function(CASES[name])
    f(matrices(100, 4, 4))
    assert len(program_of(f).steps) == 1


def test_elements_far_apart_are_written_by_vectors():
    f = tw.function(exponential)
    f(matrices(100, 4, 4))
    assert "if n0 == 16:" in f.source
