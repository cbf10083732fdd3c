"""What programs do besides calling ops: numbers, structures, slices, writes in place, gradients of gradients."""

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from common.autograd import backward as autograd
from common.core.tree import flatten
from tests.bits import assert_same_bits

RNG = np.random.default_rng(90)
X, Y = RNG.normal(size=(2, 4, 3)).astype(np.float32)
IDS = np.arange(12).reshape(4, 3)


def in_place(x, y):
    z = x * 1
    z.add_(y)
    z.mul_(z)
    z -= 1
    z /= 2
    w = z.clone()
    w.zero_()
    w.fill_(3)
    z.copy_(x[0])
    return z, w


def accumulated(x, y):
    leaf = x.detach().requires_grad_()
    (leaf * y).sum().backward()
    first = leaf.grad.clone()
    (leaf * leaf).sum().backward()
    return first, leaf.grad


def third_derivative(x):
    leaf = x.detach().requires_grad_()
    first = autograd.grad(F.sum(F.tanh(leaf) * leaf), leaf, create_graph=True)[0]
    second = autograd.grad(F.sum(first * first), leaf, create_graph=True)[0]
    return first.detach(), second.detach(), *autograd.grad(F.sum(second), leaf)


def unrecorded(x):
    leaf = x.detach().requires_grad_()
    with dynamic.no_grad():
        factor = leaf * 2
    return autograd.grad((leaf * factor).sum(), leaf)


def loop(x):
    total = F.zeros_like(x[0])
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


def nested_transform(x):
    return dynamic.grad(lambda z: F.sum(dynamic.grad(lambda w: F.sum(F.exp(w) * w))(z) * z))(x)


PROGRAMS = {
    "a number as argument": (lambda x, s: (x * s + s**2, x / s, s * 2.0, s / 3, x**s, s - x), X, 0.1),
    "an int as argument": (lambda x, s: (x * s + s * 2, x / s, x - s), X, 3),
    "numbers only": (lambda s, t: (s + t, s * t, s / t, s**t, -s, abs(s)), 0.3, 1.7),
    "a branch on a number": (lambda x, s: x * 2 if s > 0.5 else x * 3, X, 0.7),
    "inputs and views returned": (lambda x: (x, x, x.T, x[1:], x.reshape(-1), x[0, 0]), X),
    "structures": (lambda d: {"a": d["p"] + d["q"][0], "b": [d["p"], (d["q"][0],)]}, {"p": X, "q": [Y]}),
    "a static argument": (lambda x, y, flag: x + y if flag else x - y, X, Y, False),
    "lengths as numbers": (lambda x: x * len(x) + x.shape[1] * x.sum() / x.numel(), X),
    "powers of sizes": (lambda x: (x / x.shape[1] ** 0.5, x * 2 ** x.shape[0], x * x.shape[0] ** 2), X),
    "inverse powers of sizes": (lambda x: x * x.shape[0] ** -1, X),
    "quotients of sizes": (lambda x: x.sum() * divmod(x.shape[0], 3)[0] + divmod(7, x.shape[0])[1], X),
    "numpy's root of a size": (lambda x, i: (x / np.sqrt(x.shape[1]), i / np.sqrt(x.shape[1])), X, IDS),
    "sizes as numbers": (
        lambda x: (x * abs(x.shape[0] - 9), x * +x.shape[1], x * (x.shape[0] // 3.0 + 7.5 % x.shape[0])),
        X,
    ),
    "a size as text": (lambda x: x * float(f"{x.shape[1]:d}"), X),
    "a loop over rows": (loop, X),
    "iteration": (lambda x: [row * 2 for row in x], X),
    "comparisons": (lambda x, y: ((x < y) & (x > 0), ~(x < y), (x < y) | (y < 0), (x < y) ^ (y < 0), x == y), X, Y),
    "ints": (lambda x, i: (x * i, i * 2.5, i / 2, i.sum(), i.double().mean(), -i, abs(i), i - 1, i**2), X, IDS),
    "int32": (lambda i: (i * 2, i + 1.5, i / i, i.sum(0), (i > 2).sum(), F.amax(i, 1), i * True), IDS.astype(np.int32)),
    "uint8": (lambda i: (i * 2, i + 250, i / 3, -i, i - 7, i.sum(0), i.float()), IDS.astype(np.uint8)),
    "0-d": (lambda a, b: (a + b, b / a, a.double() * b, F.sum(a), a.reshape(1), a.expand(3)), X[0, 0], Y[0, 0]),
    "0-d float64 with float32": (lambda a, x: (a + x, x * a, a / x, a.reshape(1) * x), np.array(1.1), X),
    "captured arrays": (lambda x: x * Y + Y + F.embedding(np.array([0, 2, 2, 1]), x), X),
    "empty slices": (lambda x: (x[:0].sum(0), x[:0].mean(0), F.cat([x[:0], x]), x[:0] @ x.T, x[5:]), X),
    "slices": (lambda x: (x[-1:], x[-2:-1, ::2], x[None], x[..., None], x[:, -1]), X),
    "in place": (in_place, X, Y),
    "accumulation in .grad": (accumulated, X, Y),
    "third derivative": (third_derivative, X),
    "no_grad": (unrecorded, X),
    "nested transforms": (nested_transform, X),
    "value_and_grad": (lambda x: dynamic.value_and_grad(lambda z: F.sum(F.sin(z)))(x), X),
    "vjp": (lambda x, y: (lambda out: (out[0], out[1](y)))(dynamic.vjp(F.exp, x)), X, Y),
}


@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"interpret": True}], ids=["fused", "unfused", "interpreted"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, options):
    f, *arguments = PROGRAMS[name]
    expected = results(dynamic.function(f)(*lifted(arguments)))
    compiled = static.function(f, **options)
    for _ in range(2):  # the second call takes the short way to its plan
        actual = results(compiled(*arguments))
        assert len(actual) == len(expected)
        for position, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_same_bits(a, b, f"{name}, result {position}")


def test_an_integer_power_of_a_size_is_a_size():
    f = static.function(lambda x: static.ones(x.shape[0] ** 2, x.shape[1] ** 0) * x.sum())
    assert [f(X[:n]).shape for n in (4, 3, 2)] == [(16, 1), (9, 1), (4, 1)]
    assert len(f.traces) == 1


def lifted(tree):
    """The arguments with tensors for arrays."""
    if isinstance(tree, dict):
        return {k: lifted(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [lifted(v) for v in tree]
    return dynamic.as_tensor(tree) if isinstance(tree, (np.ndarray, np.generic)) else tree


def results(tree):
    """All results as arrays."""
    return [np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in flatten(tree)[0]]
