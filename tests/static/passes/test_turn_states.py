"""States of loops whose last dimension is short are carried, and stacked for gradients, with that dimension first."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(11)


def floats(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def state_space(tw, h, u, a, b):
    def step(h, u):
        h = tw.sigmoid(a) * h + b * u[:, None]
        return h, h.sum(1)

    return tw.scan(step, h, u)[1]


def selective(tw, h, u, a, b):
    """The rows of a state are weighted by the numbers of a row, which the step makes."""

    def step(h, u):
        h = h * tw.exp(-tw.abs(a)) + b * u[:, None]
        return h, (h * (a[0] * u[0])).sum(-1)

    return tw.scan(step, h, u)[1]


def columns(tw, h, u, a, b):
    """A swing of each row: position and velocity are columns."""

    def step(h, u):
        x, v = h[:, 0], h[:, 1]
        v = v - 0.1 * tw.sin(x) + 0.01 * u
        rest = [h[:, i] * 0.5 for i in range(2, h.shape[1])]
        return tw.stack([x + 0.1 * v, v, *rest], 1), x * v

    return tw.scan(step, h, u)


def normalised(tw, h, u, a, b):
    """A forward pass of a hidden Markov model: states add up to one, by their maxima first."""

    def step(h, u):
        h = tw.exp(h - h.amax(1, keepdim=True))
        h = h / h.sum(1, keepdim=True) + a * u[:, None]
        return h, tw.log(h.sum(1) ** 2 + 1)

    return tw.scan(step, h, u)


def shifted(tw, h, u, a, b):
    """A delay line, and its elements in another order; one of its rows is read, and the sum of all."""

    def step(h, u):
        h = tw.cat([u[:, None], h[:, :-1]], -1)
        return h * a, tw.cat([h[:, 1:], h[:, :1]], -1).sum(1) + h[0].sum() + h.sum(0)[0]

    return tw.scan(step, h, u)


def every_state(tw, h, u, a, b):
    """The states are a result, so that they are put in order in the loop."""

    def step(h, u):
        h = a * h + b * u[:, None]
        return h, (h, h.sum(1))

    return tw.scan(step, h, u)


PROGRAMS = [state_space, selective, columns, normalised, shifted, every_state]


def given(rows=9, columns=5, length=6, dtype=np.float32):
    h, a, b = (floats(rows, columns, dtype=dtype) for _ in "hab")
    return [h, floats(length, rows, dtype=dtype), a, b]


def flat(found):
    return [x for y in found for x in flat(y)] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def turned_loops(function):
    """How many loops carry a state with its last dimension, of 5, first."""
    loops = [node for node in function.newest.optimised.graph().all_nodes() if node.name == "loop"]
    return sum(any(int(x.shape[0]) == 5 for x in loop.attrs["body"].inputs[: loop.attrs["carried"]]) for loop in loops)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_of_values_and_gradients(program, dtype):
    def gradients(tw):
        return tw.grad(lambda *xs: sum((x * x).sum() for x in leaves(program(tw, *xs))), argnums=(0, 1, 2, 3))

    def leaves(found):
        return [x for y in found for x in leaves(y)] if isinstance(found, (tuple, list)) else [found]

    function, derivatives = static.function(lambda *xs: program(static, *xs)), static.function(gradients(static))
    function(*given(dtype=dtype)), derivatives(*given(dtype=dtype))
    assert turned_loops(function) == 1
    assert turned_loops(derivatives) == 2
    for sizes in ((9, 5, 6), (9, 5, 1), (3, 5, 4), (9, 2, 3), (8, 20, 3)):
        xs = given(*sizes, dtype=dtype)
        assert_all_same_bits(flat(function(*xs)), flat(program(dynamic, *xs)), program.__name__)
        assert_all_same_bits(flat(derivatives(*xs)), flat(gradients(dynamic)(*xs)), program.__name__)


@pytest.mark.parametrize("program", [state_space, normalised])
def test_second_derivatives_and_batches(program):
    def slope(tw, *xs):
        def total(*xs):
            found = program(tw, *xs)
            return (found if tw.is_tensor(found) else found[1]).sum()

        return (tw.grad(total)(*xs) ** 2).sum()

    xs = given()
    second = [tw.grad(lambda *xs, tw=tw: slope(tw, *xs), argnums=(0, 2)) for tw in (static, dynamic)]
    assert_all_same_bits(flat(static.function(second[0])(*xs)), flat(second[1](*xs)), "second")
    many = [np.stack([x, -x, 2 * x]) for x in xs]
    batched = [tw.vmap(lambda *xs, tw=tw: program(tw, *xs)) for tw in (static, dynamic)]
    assert_all_same_bits(flat(static.function(batched[0])(*many)), flat(batched[1](*many)), "batch")


def test_a_state_that_products_read_stays_as_it_is():
    def recurrent(tw, h, u, w):
        return tw.scan(lambda h, u: (tw.tanh(h @ w + u[:, None]), h.sum(1)), h, u)

    xs = [*given()[:2], floats(5, 5)]
    function = static.function(lambda *xs: recurrent(static, *xs))
    assert_all_same_bits(flat(function(*xs)), flat(recurrent(dynamic, *xs)), "products")
    assert turned_loops(function) == 0


def test_a_state_of_which_all_elements_are_summed_stays_as_it_is():
    """They are added up in the order of their dimensions."""

    def totals(tw, h, u):
        return tw.scan(lambda h, u: (tw.tanh(h + u[:, None]), h.sum()), h, u)

    xs = given(20)[:2]
    function = static.function(lambda *xs: totals(static, *xs))
    assert_all_same_bits(flat(function(*xs)), flat(totals(dynamic, *xs)), "sums")
    assert turned_loops(function) == 0


def test_states_without_short_rows_stay_as_they_are():
    function = static.function(lambda h, u, a: static.scan(lambda h, u: (h * a + u.sum(), u.sum()), h, u))
    function(*given()[:3])
    assert turned_loops(function) == 0
