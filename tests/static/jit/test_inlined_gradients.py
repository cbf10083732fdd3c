"""Backward inside a traced function, through a node that a compiled call made before: the bits of the eager engine."""

from importlib import import_module

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import NotDefinedError
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import core

X = np.array([0.5, 1.5, -0.25])

PROGRAMS = {
    "a scalar": lambda tw: lambda x: (x.sin() * x).sum(),
    "a vector": lambda tw: lambda x: x.exp() * x,
    "two results": lambda tw: lambda x: (x * x, x.sin()),
    "a product": lambda tw: lambda x: tw.softmax(x.outer(x), 0) @ x,
    "a number": lambda tw: lambda x: x.sin().float() * 2.5,
    "while": lambda tw: lambda x: tw.while_loop(lambda s: s.sum() < 50, lambda s: s * 1.5 + x * x, x),
    "cond": lambda tw: lambda x: tw.cond(x.sum() > 0, lambda x: x * x * x, lambda x: x, x),
    "scan": lambda tw: lambda x: tw.scan(lambda c, r: (c * r.sin(), c + r), x, tw.stack([x, x * 2]))[1],
    "fori": lambda tw: lambda x: tw.fori_loop(0, 3, lambda i, c: c * c.sin() + x, x),
}


def called(tw, program):
    """An input, the results of the call as leaves of a tape, and cotangents."""
    x = tw.tensor(X, requires_grad=True)
    y = tw.function(program(tw))(x * 1.0)
    results = y if isinstance(y, tuple) else (y,)
    return x, results, [tw.full_like(part.detach(), 1.75) for part in results]


def first(tw, x, y, *g):
    return tw.autograd.grad(y, x, g, retain_graph=True)


def second(tw, x, y, *g):
    (slope,) = tw.autograd.grad(y, x, g, create_graph=True)
    return tw.autograd.grad(slope.sin().sum(), x)


def third(tw, x, y, *g):
    (slope,) = tw.autograd.grad(y, x, g, create_graph=True)
    (curve,) = tw.autograd.grad(slope.sin().sum(), x, create_graph=True)
    return tw.autograd.grad((curve * slope).sum(), x)


def of_cotangents(tw, x, y, *g):
    g = [part.detach().requires_grad_() for part in g]
    (slope,) = tw.autograd.grad(y, x, g, create_graph=True)
    return tw.autograd.grad((slope * slope * x).sum(), [x, *g])


def returned(tw, x, y, *g):
    """The results of the traced function have a history that goes on outside."""
    return tw.autograd.grad(y, x, g, create_graph=True)


def mapped(tw, x, y, *g):
    def row(*cotangents):
        return tw.autograd.grad(y, x, cotangents, retain_graph=True)[0]

    return (tw.vmap(row)(*[tw.stack([part, part * 2]) for part in g]),)


def mapped_twice(tw, x, y, *g):
    def row(*cotangents):
        return tw.autograd.grad(y, x, cotangents, retain_graph=True)[0]

    return (tw.vmap(tw.vmap(row))(*[tw.stack([part, part * 2]).reshape(1, 2, *part.shape) for part in g]),)


def pushed(tw, x, y, *g):
    return tw.func.jvp(lambda *c: tw.autograd.grad(y, x, c, create_graph=True)[0], g, g)


def with_tangents(tw, x, y, *g):
    forward = import_module(f"{tw.__name__}.autograd.forward_ad")
    with forward.dual_level():
        duals = [forward.make_dual(part, part * 2) for part in g]
        (slope,) = tw.autograd.grad(y, x, duals, retain_graph=True)
        return (forward.unpack_dual(slope).tangent,)


WAYS = [first, second, third, of_cotangents, returned, mapped, mapped_twice, pushed, with_tangents]


@pytest.mark.parametrize("way", core(WAYS, lambda way: way in (first, second)), ids=lambda way: way.__name__)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_bits_are_those_of_the_eager_engine(program, way):
    found = []
    for tw in (dynamic, static):
        x, y, g = called(tw, program)
        results = tw.function(lambda *g, tw=tw, x=x, y=y: way(tw, x, y, *g))(*g)
        if way is returned:
            results = tw.autograd.grad(results[0].sin().sum(), x)
        found.append([part.detach().numpy() for part in results])
    assert_all_same_bits(found[1], found[0], way.__name__)


def test_the_function_runs_again_for_other_cotangents():
    x, (y,), _ = called(static, PROGRAMS["a vector"])
    pull = static.function(lambda c: static.autograd.grad(y, x, c, retain_graph=True)[0])
    for c in np.random.default_rng(0).standard_normal((3, 3)):
        np.testing.assert_allclose(pull(c).numpy(), c * (X + 1) * np.exp(X), rtol=1e-12)
    assert len(pull.traces) == 1


def test_tangents_are_not_dropped_outside_of_a_trace():
    x, y, g = called(static, PROGRAMS["a vector"])
    with pytest.raises(NotDefinedError, match="forward AD with CompiledBackward"):
        with_tangents(static, x, y, *g)
