"""Writes inside mapped functions: random programs against the tape of each example, and finite differences where the
tape refuses; writes to arguments against derivatives by hand; writes from branches and loops, which are refused."""

import random

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import GradientError, TraceError

X = np.array([[0.3, -0.7, 1.05], [-1.2, 0.8, 0.45]])
WRITES = (
    "{t}.sigmoid_()", "{t}.tanh_()", "{t}.exp_()", "{t}.abs_()", "{t}.mul_(1.5)", "{t}.mul_(x[0])",
    "{t}.add_(y.sum())", "{t}[0] = y.sum()", "{t}[-1] = 0.5", "{t}[1:] = x[1]", "{t}[::2].mul_(x[0])",
    "{t}.copy_({t} * x[2])", "{t}.masked_fill_({t} > 0.6, 0.25)", "{t}.clamp_(-0.6, 0.9)",
)  # fmt: skip
VIEWS = ("y[1:]", "y[:]", "y[:][1:]", "y.view(3, 1)[1:]", "y.view(1, 3)[0][:2]", "y[None, 1:].t()", "y[1:].view(2, 1)")
TRANSFORMS = {
    "vmap(grad)": lambda tw, f: tw.vmap(tw.grad(f)),
    "grad(vmap)": lambda tw, f: tw.grad(lambda x: tw.vmap(f)(x).sum()),
    "vmap(vjp)": lambda tw, f: tw.vmap(lambda x: tw.func.vjp(f, x)[1](tw.tensor(1.0, dtype=tw.float64))[0]),
    "vmap(jacrev)": lambda tw, f: tw.vmap(tw.func.jacrev(f)),
    "vmap(vmap(grad))": lambda tw, f: lambda x: tw.vmap(tw.vmap(tw.grad(f)))(x[None])[0],
    "function(vmap(grad))": lambda tw, f: tw.function(tw.vmap(tw.grad(f))),
}


def program(seed):
    """A function of one example that writes to a value, and to views of it, and reads all of them."""
    rng = random.Random(seed)
    lines, names = [rng.choice(("y = x * 1", "y = x.clone()", "y = x.exp()"))], ["y"]
    for step in range(rng.randint(3, 6)):
        if rng.random() < 0.3:
            names.append(f"v{step}")
            lines.append(f"v{step} = {rng.choice(VIEWS)}")
        elif rng.random() < 0.2:
            lines.append(f"w{step} = {rng.choice(names)} * 2.0")
            names.append(f"w{step}")
        else:
            lines.append(rng.choice(WRITES).format(t=rng.choice(names)))
    lines.append("return " + " + ".join(f"({name} * {i}.0).sum()" for i, name in enumerate(names, 1)))
    scope = {}
    exec("def f(x):\n    " + "\n    ".join(lines), scope)
    return scope["f"], "\n".join(lines)


def alone(f, x):
    """The gradient at one example: the tape's, or by finite differences where a write destroys what it has saved."""
    leaf = dynamic.tensor(x, requires_grad=True)
    try:
        return np.asarray(dynamic.autograd.grad(f(leaf * 1), leaf)[0])
    except GradientError as error:
        if "modified by an inplace operation" not in str(error):
            raise
    d = 1e-3 * np.eye(3)
    rise = [[f(dynamic.tensor(x + k * e)).item() - f(dynamic.tensor(x - k * e)).item() for k in (1, 0.5)] for e in d]
    return np.array([(8 * half - full) / 6e-3 for full, half in rise])


@pytest.mark.parametrize("seed", range(24))
def test_random_writes_have_the_gradients_of_each_example(seed):
    f, text = program(seed)
    expected = np.stack([alone(f, x) for x in X])
    for name in random.Random(seed).sample(sorted(TRANSFORMS), 2):
        found = [np.asarray(TRANSFORMS[name](tw, f)(tw.tensor(X))) for tw in (dynamic, static)]
        np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-8, err_msg=f"{name}\n{text}")
        assert found[0].tobytes() == found[1].tobytes(), f"{name}\n{text}"


def test_an_argument_with_history_is_written_through_views_of_views():
    def f(r):
        r[:][0:1].mul_(2)
        r[None][0][0:1].sigmoid_()
        return (r * r).sum()

    x = dynamic.tensor(X, requires_grad=True)
    given = x * 1
    dynamic.vmap(f)(given).sum().backward()
    s = 1 / (1 + np.exp(-2 * X[:, 0]))
    expected = 2 * X
    expected[:, 0] = 4 * s * s * (1 - s)
    np.testing.assert_allclose(np.asarray(x.grad), expected, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(given.detach())[:, 0], s, rtol=1e-12)
    with pytest.raises(GradientError, match="leaf Variable that requires grad"):
        dynamic.vmap(f)(x)


def _cond(tw, r, y):
    return tw.cond(r.sum() > 0.5, lambda: (y.mul_(2), y * 1)[1], lambda: r * 3)


def _shared(tw, r, y):
    return tw.cond(tw.tensor(True), lambda: (y[1:].mul_(2), y * 1)[1], lambda: r * 3)


def _while(tw, r, y):
    return tw.while_loop(lambda c: c.sum() < 5, lambda c: (y.mul_(2), c + y * y)[1], r)


def _scan(tw, r, y):
    return tw.scan(lambda c, i: (y.mul_(2), (c + y, c))[1], r, tw.arange(2))[0]


#: All examples run them alike, and the eager engine runs them at once.
SHARED = (_shared, _scan)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("body", [_cond, _shared, _while, _scan])
def test_what_some_examples_run_and_what_is_recorded_writes_to_nothing_outside(tw, body):
    def f(r):
        y = r * 1
        return (body(tw, r, y) + y).sum()

    if tw is dynamic and body in SHARED:
        np.testing.assert_array_equal(tw.vmap(f)(tw.tensor(X)).tolist(), [f(tw.tensor(x)).item() for x in X])
        return
    for made in (tw.vmap(f), tw.vmap(tw.grad(f)), tw.grad(lambda x: tw.vmap(f)(x).sum())):
        with pytest.raises(
            TraceError, match=r"a function that it runs writes to a tensor of shape \(3,\) from outside"
        ):
            made(tw.tensor(X))


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_what_a_branch_has_made_is_written_there(tw):
    def doubled(v):
        w = v * 1
        w[:2].mul_(2)
        return w.abs_()

    found = tw.vmap(lambda r: tw.cond(r.sum() > 0.5, doubled, lambda v: v * 3, r))(tw.tensor(X))
    np.testing.assert_array_equal(np.asarray(found), np.stack([np.abs(X[0] * [2, 2, 1]), X[1] * 3]))


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_a_branch_that_some_examples_take_writes_to_its_operand(tw):
    found = tw.vmap(lambda r: tw.cond(r.sum() > 0.5, lambda v: v.mul_(2), lambda v: v * 3, r))(tw.tensor(X))
    np.testing.assert_array_equal(np.asarray(found), [X[0] * 2, X[1] * 3])
