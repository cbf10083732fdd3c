"""A transformed call adds gradients in one order, wherever it is: plainly, in a `function`, and in either engine."""

import numpy as np
import pytest

import dynamic
import static
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
