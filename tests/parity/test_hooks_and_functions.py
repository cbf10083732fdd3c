"""Rules and hooks of the user's own, traced and compiled: the bits of the eager engine."""

import numpy as np
import pytest

import dynamic
import static

X = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)


def gated(tw):
    """Two results, a saved result, a saved argument, a number."""

    class Gated(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, scale):
            y = tw.tanh(x @ w)
            ctx.save_for_backward(x, w, y)
            ctx.scale = scale
            return y * scale, y

        @staticmethod
        def backward(ctx, g, h):
            x, w, y = ctx.saved_tensors
            inner = (g * ctx.scale + h) * (1 - y * y)
            return inner @ w.T, x.T @ inner, None

    return Gated


def first_order(tw, x, w):
    def loss(x, w):
        a, b = gated(tw).apply(x, w, 0.3)
        return (a * b + x).sum()

    return tw.value_and_grad(loss, argnums=(0, 1))(x, w)


def one_result_unused(tw, x, w):
    return tw.grad(lambda x: gated(tw).apply(x, w, 2.0)[1].sum())(x)


def second_order(tw, x, w):
    def slope(x):
        return (tw.grad(lambda x: tw.exp(gated(tw).apply(x, w, 0.5)[0]).sum())(x) * x).sum()

    return tw.grad(slope)(x)


def hooks(tw, x, w):
    def loss(x):
        y = x @ w
        y.register_hook(lambda g: g * tw.tanh(g))
        y.grad_fn.register_prehook(lambda gs: (gs[0] + 1,))
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0.1, *inputs[1:]))
        return (y * y).sum()

    return tw.grad(loss)(x)


def checkpointed(tw, x, w):
    def layer(h):
        return tw.tanh(h @ w) * tw.rand(h.shape[0], 5)  # how many is a symbol, another one in each trace

    def loss(x, scale):
        h = x
        for _ in range(3):
            h = tw.utils.checkpoint.checkpoint(layer, h, use_reentrant=False)
        return (h * scale + tw.rand(5)).sum()

    return tw.value_and_grad(loss, argnums=(0, 1))(x, x)


def derivatives(tw, x, w):
    f = lambda a: tw.tanh(a @ w).sum(0)  # noqa: E731
    return (
        tw.func.jacrev(f)(x[0] * x),
        tw.func.hessian(lambda a: tw.exp(a @ w).sum())(x[0]),
        *tw.func.jvp(f, (x,), (x * 0.5,)),
        *tw.autograd.functional.vhp(lambda a: (f(a) * a[0]).sum(), x, x + 1),
    )


PROGRAMS = [derivatives, checkpointed, first_order, one_result_unused, second_order, hooks]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits(program, dtype):
    found = []
    for tw in (dynamic, static):
        tw.manual_seed(5)
        compiled = tw.function(lambda x, w, tw=tw: program(tw, x, w))
        for rows in (7, 3):
            result = compiled(X[:rows].astype(dtype), W.astype(dtype))
            flat = [a for part in (result if isinstance(result, tuple) else (result,)) for a in
                    (part if isinstance(part, tuple) else (part,))]  # fmt: skip
            found.append([(np.asarray(a).dtype, np.asarray(a).tobytes()) for a in flat])
    assert found[:2] == found[2:]


def test_a_rule_of_ones_own_against_finite_differences():
    x, w = X.astype(np.float64), W.astype(np.float64)
    direction = np.random.default_rng(2).standard_normal(x.shape)
    value = lambda x: float(np.asarray(first_order(dynamic, x, w)[0]))  # noqa: E731
    slope = np.sum(np.asarray(first_order(dynamic, x, w)[1][0]) * direction)
    assert abs((value(x + 1e-6 * direction) - value(x - 1e-6 * direction)) / 2e-6 - slope) < 1e-6
