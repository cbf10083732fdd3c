"""Programs besides their ops: numbers, structures, slices, writes in place, gradients of gradients."""

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
    first = leaf.grad
    (leaf * leaf).sum().backward()
    return first, leaf.grad


def gradients_under_other_names(x, y):
    """A gradient that is added to, overwritten and replaced, as views, lists, other leaves and aliases see it."""
    leaf, other = x.clone().requires_grad_(), y.clone().requires_grad_()
    (leaf * y).sum().backward()
    held = [leaf.grad]
    view, flat, alias = held[0][1:], held[0].reshape(-1), leaf.grad.detach()
    (leaf * leaf).sum().backward()
    seen = [flat * 1]
    view.mul_(2)
    alias[:1].sub_(y[:1])
    leaf.grad.data.mul_(3)
    (leaf * y).sum().backward()
    other.grad = leaf.grad
    (other * leaf).sum().backward(inputs=[other])
    leaf.grad.zero_()
    leaf.data -= 0.5 * y
    (leaf * leaf).sum().backward()
    leaf.grad = leaf.grad * 2
    (leaf * 5).sum().backward()
    return *seen, *held, view, flat, alias, leaf.grad, other.grad, leaf.detach()


def aliases_of_aliases(x, y):
    """Names of one memory whose other names are gone."""
    z = x * y
    first, second, third = z.detach(), z.detach().detach(), z.detach()[1:].detach()
    del z
    second.mul_(2)
    third.data.add_(first.data[:1])
    w = y * 1
    w.data.detach()[0].sub_(1)
    return first, second, third, w


def gradients_in_the_users_memory(x, y):
    """A gradient that is a part of a buffer, an argument's rows, or several elements in one place."""
    leaf, buffer = x.detach().requires_grad_(), y.new_zeros(2, *y.shape)
    leaf.grad = buffer[1]
    (leaf * y).sum().backward()
    (leaf * 3).sum().backward()
    row, z = x[0].detach().requires_grad_(), y * 1
    row.grad = z[1]
    (row * 2).sum().backward()
    repeated = x.detach().requires_grad_()
    repeated.grad = z[:1].expand(x.shape)
    (repeated * 3).sum().backward()
    return leaf.grad, buffer, z, repeated.grad


def recorded_gradients(x, y):
    """A recorded pass leaves new tensors; a plain one adds to what they left, but not to its own cotangent."""
    leaf, cotangent = x.detach().requires_grad_(), y * 1
    (leaf * leaf * leaf).sum().backward(create_graph=True)
    first = leaf.grad
    (leaf * y).backward(cotangent, create_graph=True)
    second = leaf.grad
    second.sum().backward()
    other = x.detach().requires_grad_()
    (other * 1).backward(cotangent, create_graph=True)
    (other * 2).sum().backward()
    return first.detach(), second.detach(), leaf.grad.detach(), other.grad.detach(), cotangent


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
    "numpy's questions of the form": (lambda x: x * np.ndim(x) + np.shape(x)[1] - np.shape(x[0])[0], X),
    "lengths as numbers": (lambda x: x * len(x) + x.shape[1] * x.sum() / x.numel(), X),
    "powers of sizes": (lambda x: (x / x.shape[1] ** 0.5, x * 2 ** x.shape[0], x * x.shape[0] ** 2), X),
    "inverse powers of sizes": (lambda x: x * x.shape[0] ** -1, X),
    "quotients of sizes": (lambda x: x.sum() * divmod(x.shape[0], 3)[0] + divmod(7, x.shape[0])[1], X),
    "numpy's root of a size": (lambda x, i: (x / np.sqrt(x.shape[1]), i / np.sqrt(x.shape[1])), X, IDS),
    "numpy's functions of sizes": (
        lambda x: (x * np.log(x.shape[1]) + np.exp2(-x.shape[0]), x + np.ceil(x.shape[1])),
        X,
    ),
    "numpy's functions of quotients": (
        lambda x: (x * np.cos(2 * np.pi / x.shape[1]), x * np.hypot(x.shape[0], x.shape[1] / 3)),
        X,
    ),
    "arrays and sizes": (lambda x: x[:, :1] * float((np.arange(3.0) * x.shape[0] / x.shape[1]).sum()), X),
    "numpy's arrays of sizes": (
        lambda x: (
            x * np.arange(x.shape[1]),
            x[:, np.repeat(np.arange(x.shape[1] // 2), 2)],
            x + np.array(x.shape)[0],
            x * np.sin(np.arange(x.shape[0])[:, None] / x.shape[1]),
            x.reshape(np.prod(x.shape)),
        ),
        X,
    ),
    "numpy's numbers and sizes": (
        lambda x: (x[: np.int64(9) // x.shape[1]], x * (np.float64(0.3) / x.shape[0]), x * np.maximum(x.shape[0], 2)),
        X,
    ),
    "numpy's scalars": (
        lambda x, i: [
            (y * s, s + y, y / s, y < s)
            for y in (x, i, x.sum(), i > 2)
            for s in (np.float64(0.1), np.float32(0.1), np.float16(0.5), np.int64(3), np.int32(3))
        ],
        X,
        IDS,
    ),
    "a quotient as text": (lambda x: x * float(f"{x.shape[1] / 7:.3f}"), X),
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
    "gradients under other names": (gradients_under_other_names, X, Y),
    "aliases of aliases": (aliases_of_aliases, X, Y),
    "gradients in the user's memory": (gradients_in_the_users_memory, X, Y),
    "recorded gradients": (recorded_gradients, X, Y),
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


def set_to_buffer(p, x, buffer):
    p.grad = buffer


#: What a step does with the gradient of a captured parameter between two passes, and returns of it.
BETWEEN = {
    "nothing": lambda p, x, buffer: None,
    "a name": lambda p, x, buffer: p.grad,
    "a view": lambda p, x, buffer: p.grad[1:],
    "zeros in place": lambda p, x, buffer: p.grad.zero_(),
    "a write": lambda p, x, buffer: p.grad.mul_(x),
    "a write through data": lambda p, x, buffer: p.grad.data.mul_(x),
    "a detached name": lambda p, x, buffer: p.grad.detach(),
    "a clipped gradient": lambda p, x, buffer: dynamic.nn.utils.clip_grad_norm_([p], 0.5),
    "a buffer": set_to_buffer,
}


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("name", BETWEEN)
def test_gradients_of_captured_parameters(name, existing):
    seen = []
    for tw in (dynamic, static):
        p, buffer = dynamic.nn.Parameter(dynamic.tensor([1.0, 2.0, 3.0])), dynamic.zeros(3)
        if existing:
            (p * 2).sum().backward()
        held = p.grad

        def step(x, p=p, buffer=buffer):
            (p * x).sum().backward()
            kept = BETWEEN[name](p, x, buffer)
            (p * p).sum().backward()
            p.data -= 0.1 * p.grad.data
            return p.grad * 2 if kept is None else kept * 1

        f = tw.function(step)
        for start in (1.0, 2.0, 4.0):
            result = f(dynamic.tensor([start, 2.0, 3.0]))
            seen.append([x if x is None else x.tolist() for x in (result, p, p.grad, buffer, held)])
    assert seen[:3] == seen[3:]


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
