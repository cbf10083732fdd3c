"""A transformed call adds gradients in one order, wherever it is: plainly, in a `function`, and in either engine."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TraceError
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, share

X = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)


def cubed(tw):
    return lambda z: z**3 * tw.sin(z)


PROGRAMS = {
    "vmap": lambda tw, x: tw.vmap(lambda r: tw.tanh(r * r) * r)(x),
    "vmap, an argument whole": lambda tw, x: tw.vmap(lambda r, s: tw.tanh(r * s.sum(0) * r), in_dims=(0, None))(x, x),
    "vmap, a captured tensor": lambda tw, x: tw.vmap(lambda r: tw.tanh(r * x.sum(0) * r))(x),
    "vmap of grad": lambda tw, x: tw.vmap(tw.grad(lambda z: cubed(tw)(z).sum()))(x),
    "grad": lambda tw, x: tw.grad(lambda z: cubed(tw)(z).sum())(x),
    "grad, a captured tensor": lambda tw, x: tw.grad(lambda z: (cubed(tw)(z) * x * x).sum())(x),
    "vjp": lambda tw, x: tw.vjp(cubed(tw), x)[1](x * 0.5)[0],
    "jvp": lambda tw, x: tw.func.jvp(cubed(tw), (x,), (x * 0.5,))[1],
    "linearize": lambda tw, x: tw.func.linearize(cubed(tw), x)[1](x * 0.5),
    "jacrev": lambda tw, x: tw.func.jacrev(lambda z: cubed(tw)(z).sum(1))(x).sum(0),
    "jacfwd": lambda tw, x: tw.func.jacfwd(lambda z: cubed(tw)(z).sum(1))(x).sum(0),
}


def gradients(tw, program, x):
    """Of a sum with something besides the transformed call, and of that gradient: two places meet in `x`."""
    y = program(tw, x) * x
    (first,) = tw.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tw.autograd.grad((first * first).sum(), x)
    return first, second


@pytest.mark.parametrize("name", core(PROGRAMS, lambda name: share(name, 4) == 0))
def test_gradients_of_transformed_calls(name):
    expected = None
    for tw in (dynamic, static):
        for wrapped in (False, True):
            call = tw.function(gradients) if wrapped else gradients
            found = call(tw, PROGRAMS[name], tw.tensor(X, requires_grad=True))
            expected = expected or found
            for order, (a, b) in enumerate(zip(found, expected, strict=True), start=1):
                assert_same_bits(a, b, f"order {order}, {tw.__name__}{', in a function' * wrapped}")


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_a_function_runs_once_however_often_its_pullback_is_called(tw):
    x, count = tw.tensor([1.0, 2.0]), tw.zeros(1)

    def counting(x):
        with tw.no_grad():
            count.add_(1)
        return x * x * count

    _, pull = tw.func.vjp(counting, x)
    assert [pull(tw.ones(2))[0].tolist() for _ in range(2)] == [[2.0, 4.0]] * 2
    _, push = tw.func.linearize(lambda x: counting(x) / 2, x)
    assert [push(tw.ones(2)).tolist() for _ in range(2)] == [[2.0, 4.0]] * 2
    assert count.item() == 2
    y, push = tw.func.linearize(lambda x: x * tw.rand(2), x)
    assert [push(x).tolist() for _ in range(2)] == [y.tolist()] * 2  # of the numbers that were drawn then
    if tw is static:
        with pytest.raises(TraceError, match="draws random numbers or writes"):
            tw.function(push)(x)
    norm = tw.nn.BatchNorm1d(2)
    _, pull = tw.func.vjp(norm, tw.randn(4, 2))
    pull(tw.ones(4, 2))
    assert norm.num_batches_tracked.item() == 1


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_a_pullback_of_a_pullback_by_the_same_name(tw):
    x = tw.tensor([1.0, 2.0])
    _, pull = tw.func.vjp(lambda x: x * x * x, x)
    y, pull = tw.func.vjp(lambda c: pull(c)[0], x)
    assert y.tolist() == [3.0, 24.0]
    assert pull(tw.ones(2))[0].tolist() == [3.0, 12.0]
