"""Loops over a few numbers: sizes of their states are those of the call, and equal functions go by vectors."""

from __future__ import annotations

import random

import numpy as np
import pytest

import dynamic
import static
from static.lowering.codegen import functions_together
from static.lowering.codegen.bodies_of_numbers import SETTLED
from tests.bits import assert_same_bits
from tests.static.compare import as_tuple, assert_compiles

RNG = np.random.default_rng(0)


def arrays(*shapes, dtype=np.float32):
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


def regions(f):
    return [name for step in f.newest.program.steps for name in step.regions]


def forward(tw, e, a):
    """Logarithms of sums over paths through states."""

    def step(c, x):
        c = tw.logsumexp(c[:, None] + a, 0) + x
        return c, tw.logsumexp(c, 0)

    return tw.scan(step, e[0], e[1:])[1].sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"compiler": "numba"}])
def test_states_of_a_few_numbers(dtype, options):
    f = static.function(static.value_and_grad(lambda e, a: forward(static, e, a), (0, 1)), **options)
    eager = dynamic.value_and_grad(lambda e, a: forward(dynamic, e, a), (0, 1))
    for length, states in [(9, 3), (9, 6), (2, 3), (300, 5), (4, SETTLED)]:
        given = arrays((length, states), (states, states), dtype=dtype)
        (x, dx), (y, dy) = f(*given), eager(*map(dynamic.tensor, given))
        for a, b in zip((x, *dx), (y, *dy), strict=True):
            assert_same_bits(a, b, f"{states} states")
        assert regions(f)[0] == "iterations"
    e, a = (x.astype(np.float64) for x in given)
    c = e[0]
    total = 0.0
    for row in e[1:]:
        c = np.log(np.exp(c[:, None] + a).sum(0)) + row
        total += np.log(np.exp(c).sum())
    assert float(x) == pytest.approx(total, rel=1e-5)


def test_larger_states_have_any_size():
    f = static.function(lambda e, a: forward(static, e, a))
    for states in (SETTLED + 1, SETTLED + 2):
        given = arrays((5, states), (states, states))
        assert_same_bits(f(*given), forward(dynamic, *map(dynamic.tensor, given)), f"{states} states")
    assert len(f.traces) == 1
    assert "body" in regions(f)


def test_equal_functions_of_numbers_are_one_loop():
    def program(x, c):
        return static.scan(lambda c, x: ((c / c.sum()).tanh() + static.exp(-c) * x, c[0].exp()), c, x)

    f = assert_compiles(program, (RNG.random((300, 5)).astype(np.float32), np.ones(5, np.float32)))
    assert f.source.count("f = tanh(e)") == f.source.count("f = exp(e)") == 1
    assert "f = " not in assert_compiles(program, *[(x[:, :3], c[:3]) for x, c in [arrays((9, 5), 5)]]).source


KINDS = ("sum", "max", "row", "outer", "all", "product", "one")
FUNCTIONS = ("exp", "tanh", "sin", "log1p", "expm1", "sigmoid")


def drawn(tw, steps, x, c):
    """A loop of random functions of the elements of its state, their sums, products and maxima."""

    def step(c, x):
        for kind, name in steps:
            y = getattr(tw, name)(c * 0.5) if name != "log1p" else tw.log1p(c * c)
            c = {
                "sum": lambda c, y: y / (1 + c.abs().sum()),
                "max": lambda c, y: y - c.amax(),
                "row": lambda c, y: y + x,
                "outer": lambda c, y: (y[:, None] * x).sum(0),
                "all": lambda c, y: c / (1 + (y[:, None] * x).abs().sum()),
                "product": lambda c, y: y @ (c[:, None] - x),
                "one": lambda c, y: tw.stack([y[0], *(c[k] for k in range(1, c.shape[0]))]),
            }[kind](c, y)
        return c, (c, c.sum())

    last, stacks = tw.scan(step, c, x, reverse=len(steps) % 2 == 0)
    return (last, *stacks)


@pytest.mark.parametrize("seed", range(12))
def test_random_bodies(seed, monkeypatch):
    draw = random.Random(seed)
    monkeypatch.setattr(functions_together, "FEWEST", draw.choice([1, 2, 4]))
    steps = [(draw.choice(KINDS), draw.choice(FUNCTIONS)) for _ in range(3)]
    size, dtype = draw.randint(2, SETTLED), draw.choice([np.float32, np.float64])
    rng = np.random.default_rng(seed)
    given = rng.standard_normal((draw.choice([1, 7, 260]), size)).astype(dtype), rng.standard_normal(size).astype(dtype)

    def loss(tw):
        return tw.grad(lambda *x: sum((y * y).sum() for y in drawn(tw, steps, *x)), (0, 1))

    f = assert_compiles(lambda *x: drawn(static, steps, *x), given)
    eager = drawn(dynamic, steps, *map(dynamic.tensor, given))
    for a, b in zip(as_tuple(f(*given)), eager, strict=True):
        assert_same_bits(a, b, str(steps))
    g = assert_compiles(loss(static), given)
    for a, b in zip(g(*given), loss(dynamic)(*map(dynamic.tensor, given)), strict=True):
        assert_same_bits(a, b, str(steps))


def test_sums_of_short_columns_in_a_body():
    """The kernel of a body is called once in each iteration, so it may be one for its sizes."""

    def program(tw, q, k, v):
        def step(s, x):
            q, k, v = x
            s = s + k[:, :, None] * (v - (s * k[:, :, None]).sum(1))[:, None]
            return s, (s * q[:, :, None]).sum(1)

        return tw.scan(step, q[0][:, :, None] * v[0][:, None] * 0, (q, k * 0.25, v))[1]

    f = static.function(lambda *x: program(static, *x))
    for length, size in [(40, 9), (40, 8), (3, 9), (2, 20)]:
        given = arrays(*[(length, 2, size)] * 3)
        assert_same_bits(f(*given), program(dynamic, *map(dynamic.tensor, given)), f"{length} of {size}")
    assert f.source.count(" == 9 and ") == 2
    assert len(f.traces) == 1
