"""Modules with hooks, modules as functions, and mapped functions, traced and compiled: the bits of the eager engine."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits, assert_same_bits

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
STATE = {
    "0.weight": np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32),
    "0.bias": np.random.default_rng(2).standard_normal(3).astype(np.float32),
    "2.weight": np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32),
    "2.bias": np.zeros(2, np.float32),
}


def model(tw):
    net = tw.nn.Sequential(tw.nn.Linear(4, 3), tw.nn.Tanh(), tw.nn.Linear(3, 2))
    net.load_state_dict(STATE)
    return net


def hooked(tw):
    net = model(tw)
    net[0].register_forward_pre_hook(lambda m, args: (args[0] * 1.5,))
    net[0].register_forward_hook(lambda m, args, y: tw.sin(y))
    net[2].register_full_backward_pre_hook(lambda m, gs: (gs[0] * tw.tanh(gs[0]),))
    net[1].register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + outputs[0],))
    return lambda x: tw.value_and_grad(lambda x: (net(x) * x[:, :2]).sum())(x)


def functional(tw):
    net = model(tw)

    def loss(state, x):
        return (tw.func.functional_call(net, state, x) * 0.3).sum()

    return lambda x: tuple(tw.func.grad(loss)({n: tw.as_tensor(a) for n, a in STATE.items()}, x).values())


def mapped(tw):
    w = STATE["0.weight"]

    def f(row):
        return tw.exp(tw.as_tensor(w) @ row).sum()

    return lambda x: (
        tw.func.vmap(f)(x),
        tw.func.vmap(tw.func.grad(f))(x),
        tw.func.jacrev(tw.func.vmap(f))(x),
        tw.func.grad(lambda x: (tw.func.vmap(f, randomness="same")(x) * tw.rand(6)).sum())(x),
        tw.func.vmap(lambda r: r * tw.rand(4), randomness="same")(x),
        tw.func.vmap(lambda r: r * tw.rand(4), randomness="different", out_dims=1)(x),
    )


def linearised(tw):
    return lambda x: tw.func.linearize(lambda a: tw.tanh(a @ tw.as_tensor(STATE["0.weight"]).T), x)[1](x * 0.5)


@pytest.mark.parametrize("program", [hooked, functional, mapped, linearised], ids=lambda f: f.__name__)
def test_bits(program):
    found = []
    for tw in (dynamic, static):
        tw.manual_seed(5)
        compiled = tw.function(program(tw))
        results = [compiled(X) for _ in range(2)]
        flat = [a for result in results for a in (result if isinstance(result, tuple) else (result,))]
        found.append([np.asarray(a.detach() if hasattr(a, "detach") else a) for a in flat])
    assert_all_same_bits(found[1], found[0], program.__name__)


def test_hooks_of_modules_are_recorded_once_per_trace():
    calls = []
    layer = static.nn.Linear(4, 3)
    layer.register_forward_hook(lambda m, args, y: calls.append(1))
    f = static.function(lambda x: layer(x))
    f(X)
    f(X)
    assert calls == [1]


def test_a_static_linear_map_outside_a_trace():
    y, push = static.func.linearize(lambda x: x * x, X)
    assert_same_bits(y, X * X, "value")
    assert_same_bits(push(X), X * X + X * X, "tangent")
