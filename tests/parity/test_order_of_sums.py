"""Contributions to a gradient are added in one order, though equal sizes have several names in a trace."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.parity.engines import Derivatives


def neighbours(x):
    t = x[1:] + x[:-1] * x[:-1]
    return F.pad(t, [0, 1]) * x, t


def both(x, y):
    t = x + y * y
    return t * x, t, t.sin()


def chain(x, y, z):
    t = (x + y) - z * y
    u = t + x * z
    return u * t, t, u


PROGRAMS = {"neighbours": (1, neighbours), "both": (2, both), "chain": (3, chain)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_of_several_results_have_equal_bits(name):
    """The cotangents are arguments, whose sizes have names of their own: what fits them is no step of its own."""
    count, program = PROGRAMS[name]
    engines = Derivatives(program, order=2)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        engines.check([rng.normal(size=20).astype("f4") for _ in range(count)], rng, f"{name}, {seed}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_by_the_cotangents_have_equal_bits(name):
    count, program = PROGRAMS[name]

    def second(tw, x, cotangents, h):
        x, cotangents = ([tw.as_tensor(a).detach().requires_grad_() for a in given] for given in (x, cotangents))
        first = tw.autograd.grad(program(*x), x, cotangents, create_graph=True)
        return tw.autograd.grad(first, [*x, *cotangents], h, allow_unused=True)

    compiled = static.function(lambda *given: second(static, *given))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = [rng.normal(size=20).astype("f4") for _ in range(count)]
        results = program(*map(dynamic.as_tensor, x))
        cotangents, h = ([rng.normal(size=y.shape).astype("f4") for y in like] for like in (results, x))
        expected = second(dynamic, x, cotangents, [dynamic.as_tensor(a) for a in h])
        assert_all_same_bits(compiled(x, cotangents, h), expected, f"{name}, {seed}")
