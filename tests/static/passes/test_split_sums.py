"""Gradients of elements that a loop reads of one array are sums of their own."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def variance(tw, p, e):
    def step(v, x):
        v = p[0] + p[1] * x * x + p[2] * v
        return v, v

    return tw.scan(step, p[0] * 0 + 1, e)[1].sum()


def read_twice(tw, p, e):
    def step(v, x):
        return tw.tanh(v * p[1] + p[1] * x) * p[0] - p[1], None

    return tw.scan(step, p[0], e)[0]


def rows(tw, w, e):
    def step(v, x):
        return tw.tanh(v * w[0] + x * w[2]), None

    return tw.scan(step, w[0] * 0, e)[0].sum()


def overlapping(tw, p, e):
    def step(v, x):
        return tw.tanh(v * p[0:2] + x * p[1:3]), None

    return tw.scan(step, p[0:2] * 0, e)[0].sum()


def one_or_some(tw, p, e):
    """Gradients of p[1] are numbers, those of p[1:2] arrays of one."""

    def step(v, x):
        return tw.tanh(v * p[1:2] + x * p[1] - p[0]) + p[0:1], None

    return tw.scan(step, p[0:1] * 0, e)[0].sum()


def from_the_end(tw, p, e):
    def step(v, x):
        return tw.tanh(v * p[-1] + x * p[0]), None

    return tw.scan(step, p[0] * 0, e)[0]


def whole_too(tw, p, e):
    def step(v, x):
        return tw.tanh(v * p[1] + x * p.sum()), None

    return tw.scan(step, p[0] * 0, e)[0]


def nested(tw, p, e):
    def step(v, x):
        def inner(u, y):
            return u * p[0] + y * p[1], None

        return tw.scan(inner, v * p[2], x)[0], None

    return tw.scan(step, p[0] * 0, tw.reshape(e, (-1, 3)))[0]


PROGRAMS = [variance, read_twice, rows, overlapping, one_or_some, from_the_end, whole_too, nested]


@pytest.mark.parametrize("program", PROGRAMS)
def test_bits_are_those_of_sums_of_whole_arrays(program):
    p, given = floats(*((3, 20) if program is rows else (3,))), floats(12)
    given[:5] *= 0.0
    for e in (given, -given, given[:3], given[:0]):
        compiled = static.function(static.value_and_grad(lambda p, e: program(static, p, e), argnums=(0, 1)))(p, e)
        eager = dynamic.value_and_grad(lambda p, e: program(dynamic, p, e), argnums=(0, 1))(p, e)
        assert_all_same_bits(*([np.asarray(x) for x in (y, *dx)] for y, dx in (compiled, eager)), "gradient")


@pytest.mark.parametrize("program", [variance, read_twice, nested])
def test_bits_of_second_derivatives(program):
    def second(tw):
        def slope(p, e):
            return (tw.grad(lambda p: program(tw, p, e))(p) ** 2).sum()

        return tw.grad(slope, argnums=(0, 1))

    p, e = floats(3), floats(12)
    eager, compiled = second(dynamic)(p, e), static.function(second(static))(p, e)
    assert_all_same_bits([np.asarray(x) for x in compiled], [np.asarray(x) for x in eager], "second")


@pytest.mark.parametrize("program", [variance, read_twice])
def test_the_gradient_of_a_loop_over_numbers_is_a_loop_over_numbers(program):
    gradient = static.function(static.grad(lambda p, e: program(static, p, e)))
    gradient(floats(3), floats(50))
    assert gradient.source.count("while done < stop") == 2


def lorenz(tw, p, e):
    """Differences are taken apart in the loop, and others in its gradient."""

    def slope(s):
        x, y, z = s[0], s[1], s[2]
        return tw.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    def step(s, _):
        a = slope(s)
        b = slope(s + 0.005 * a)
        c = slope(s + 0.005 * b)
        return s + (a + 2 * b + 2 * c + slope(s + 0.01 * c)) / 600, None

    return (tw.scan(step, tw.reshape(e, (3, -1)), tw.zeros(7))[0] ** 2).mean()


def test_what_passes_add_to_a_loop_and_to_its_gradient_is_told_apart():
    p, e = np.array([10, 28, 2.667], np.float32), floats(24)
    found = [
        value(tw.grad(lambda p, e, tw=tw: lorenz(tw, p, e), argnums=(0, 1)))(p, e)
        for tw, value in ((static, static.function), (dynamic, lambda f: f))
    ]
    assert_all_same_bits(*([np.asarray(x) for x in gradients] for gradients in found), "gradient")
