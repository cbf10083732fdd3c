"""Control flow against what shares no code with it: finite differences, plain Python loops over numpy, closed forms."""

import numpy as np
import pytest

import dynamic as tw
import static
from tests.helpers.control import CASES, recurrence
from tests.helpers.differences import check_gradient
from tests.helpers.wrapped import wrap

ORDERS = [(name, order) for name, case in CASES.items() for order in (1, 2)[: 1 + case.twice]]


@pytest.mark.quick
@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_gradients_are_derivatives(name, order):
    case = CASES[name]
    arrays = case.arrays(np.random.default_rng(1), np.float64, most=40)
    check_gradient(lambda *x: tuple(flat(case.run(*x))), arrays, name, order=order)


def flat(results):
    return results if isinstance(results, (tuple, list)) else (results,)


def test_a_scan_is_a_loop():
    x, w = CASES["scan"].arrays(np.random.default_rng(2), np.float64)
    h, products = x[0], []
    for v in x:
        h = np.tanh(h @ w + v) * w.sum()
        products.append(h * 2 * (v * h))
    ours = [y.numpy() for y in recurrence(wrap(x), wrap(w))]
    for actual, expected in zip(ours, (h, np.array(products), h * w[0]), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("engine", [tw, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("a", [0.25, 2.0, 1e6, 3e-9])
def test_newtons_root_and_its_derivatives(engine, a):
    """However many iterations it takes, d sqrt(a) / da = 1 / (2 sqrt(a)), and d2 = -1 / (4 a^1.5)."""
    root = lambda a: engine.while_loop(  # noqa: E731
        lambda s: engine.abs(s[0] * s[0] - a) > 1e-14 * a, lambda s: ((s[0] + a / s[0]) * 0.5, s[1] + 1), (a, 0)
    )
    first = engine.grad(lambda a: root(a)[0])
    results = engine.function(lambda a: (*root(a), first(a), engine.grad(lambda a: first(a))(a)))(np.array(a))
    y, steps, dy, ddy = (float(np.asarray(x)) for x in results)
    assert steps == pytest.approx(steps_of(a), abs=1)
    assert y == pytest.approx(a**0.5, rel=1e-13)
    assert dy == pytest.approx(0.5 / a**0.5, rel=1e-6)
    assert ddy == pytest.approx(-0.25 / a**1.5, rel=1e-3)


def steps_of(a):
    y, steps = a, 0
    while abs(y * y - a) > 1e-14 * a:
        y, steps = (y + a / y) * 0.5, steps + 1
    return steps


def test_powers_by_a_loop_whose_length_is_data():
    """d^k/dx^k of x^n, for n that the compiled program learns only when it runs."""
    power = lambda x, n: static.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x * 0 + 1))[1]  # noqa: E731
    first = static.grad(power)
    second = static.grad(first)
    f = static.function(lambda x, n: (power(x, n), first(x, n), second(x, n), static.grad(second)(x, n)))
    for n in (0, 1, 2, 5, 70, 300):
        x = 1.01
        expected = (x**n, n * x ** (n - 1), n * (n - 1) * x ** (n - 2), n * (n - 1) * (n - 2) * x ** (n - 3))
        np.testing.assert_allclose(f(np.array(x), np.array(n)), expected, rtol=1e-12)
    assert len(f.traces) == 1
