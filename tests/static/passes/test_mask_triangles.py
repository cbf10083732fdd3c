"""Triangles of matrices become choices, and single elements of them elements of the matrices."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from tests.bits import assert_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def solve(x):
    """Forward substitution, one column after the other."""
    low = x.tril()
    rows = []
    for i in range(3):
        v = x[..., i, 2]
        for j in range(i):
            v = v - low[..., i, j] * rows[j]
        rows.append(v / low[..., i, i])
    return rows[0] * rows[1] - rows[2]


MASKED = {
    "of a function": lambda x: (x * 2).tril(),
    "before a function": lambda x: x.triu().sin() if hasattr(x, "sin") else x,
    "above the diagonal": lambda x: (x * x).triu(1),
    "below the diagonal": lambda x: (x * x).tril(-1) + 1,
    "both": lambda x: x.tril(-1) * 2 + x.triu(1) - x,
    "beyond the matrix": lambda x: (x + 1).tril(-9) + (x + 1).triu(-9),
    "inside a product": lambda x: (x + 0).tril() @ x.mT,
}
PICKED = {
    "elements": lambda x: x.tril()[..., 1, 0] + x.tril()[..., 0, 0] * x.triu(1)[..., 0, 2],
    "elements among zeros": lambda x: x.tril()[..., 0, 1] + x.triu()[..., 2, 1] * 3,
    "rows and one element": lambda x: (lambda y: y[..., 1, :].sum(-1) + y[..., 2, 0])(x.tril()),
    "substitution": solve,
}
CASES = {**MASKED, **PICKED}


def matrices(*shape, dtype=np.float32):
    x = RNG.normal(size=shape).astype(dtype)
    x[..., 0, 1], x[..., 1, 0] = -0.0, np.nan
    return x


def gradient(f):
    return tw.grad(lambda x: f(x).sum())


@pytest.mark.parametrize("shape", [(3, 3), (40, 3, 3), (7, 20, 6, 6), (5, 3, 70)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_the_triangle(name, shape):
    f = CASES[name]
    if name in ("inside a product", "substitution") and shape[-1] == 70:
        shape = (5, 4, 4)
    x = matrices(*shape)
    eager = dynamic.tensor(x, requires_grad=True)
    made = f(eager)
    made.sum().backward()
    assert_same_bits(np.asarray(tw.function(f)(x)), made.detach().numpy(), name)
    assert_same_bits(np.asarray(tw.function(gradient(f))(x)), eager.grad.numpy(), name)
    assert_compiles(gradient(f), (x,), (matrices(2, *shape[-2:]) if len(shape) == 3 else matrices(*shape),))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, bool, np.float64])
def test_of_every_dtype(dtype):
    x = (RNG.normal(size=(4, 3, 5)) > 0).astype(dtype)
    f = lambda t, m: m.logical_not(t).tril() if dtype is bool else (t * 3).tril(1)  # noqa: E731
    assert_same_bits(np.asarray(tw.function(lambda t: f(t, tw))(x)), np.asarray(f(dynamic.tensor(x), dynamic)), "tril")


@pytest.mark.parametrize("name", [name for name in CASES if name != "inside a product"])
def test_no_kernel_of_triangles_is_left(name):
    f = tw.function(CASES[name])
    f(matrices(40, 3, 3))
    assert not {"tril", "triu"} & {node.name for node in program_of(f).graph.nodes}


@pytest.mark.parametrize("offset", [1 << 62, -(1 << 62), "a size"])
def test_borders_far_away_and_of_traced_sizes(offset):
    f = lambda x: (x + 1).tril(x.shape[0] - 2 if offset == "a size" else offset)  # noqa: E731
    assert_same_bits(np.asarray(tw.function(f)(x := matrices(3, 4))), f(dynamic.tensor(x)).numpy(), "tril")


def test_a_large_matrix_alone_is_copied_row_by_row():
    f = tw.function(lambda x: x.tril())
    f(matrices(90, 80))
    assert "tril" in {node.name for node in program_of(f).graph.nodes}
