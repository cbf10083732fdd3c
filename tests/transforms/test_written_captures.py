"""What a transformed function writes to a tensor from outside stays, without a history in the transform's own tape."""

import numpy as np
import pytest

import dynamic
import static

X = np.array([1.0, 2.0, 3.0])
WRITES = {
    "copy": (lambda c, x: c.copy_(x), lambda x: x),
    "add": (lambda c, x: c.add_(x), lambda x: x),
    "part": (lambda c, x: c.__setitem__(1, x[0] * 2), lambda x: np.array([0, 2 * x[0], 0])),
    "view": (lambda c, x: c[:2].copy_(x[:2]), lambda x: np.array([*x[:2], 0])),
}


def derivatives(f, x, h=1e-4):
    """The value of f at x, its gradient and its second derivatives by central differences."""
    n, step = len(x), h * np.eye(len(x))
    gradient = np.array([(f(x + s) - f(x - s)) / (2 * h) for s in step])
    hessian = [[f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for a in step] for b in step]
    return f(x), gradient, np.reshape(hessian, (n, n)) / (4 * h * h)


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", WRITES)
def test_a_captured_tensor_that_is_written_has_no_history_afterwards(tw, name):
    write, written = WRITES[name]
    value, gradient, hessian = derivatives(lambda x: (x * written(x)).sum(), X)
    func, x, v = tw.func, tw.tensor(X), tw.ones(3, dtype=tw.float64)
    for transform, wanted in (
        (lambda f: func.grad(f)(x), gradient),
        (lambda f: func.grad_and_value(f)(x)[1], value),
        (lambda f: func.jacrev(f)(x), gradient),
        (lambda f: func.jacfwd(f)(x), gradient),
        (lambda f: func.hessian(f)(x), hessian),
        (lambda f: func.grad(lambda x: func.grad(f)(x).sum())(x), hessian.sum(0)),
        (lambda f: func.jvp(f, (x,), (v,))[1], gradient.sum()),
        (lambda f: func.vjp(f, x)[1](tw.tensor(1.0, dtype=tw.float64))[0], gradient),
        (lambda f: func.linearize(f, x)[1](v), gradient.sum()),
    ):
        captured = tw.zeros(3, dtype=tw.float64)

        def f(x, captured=captured):
            write(captured, x)
            return (x * captured).sum()

        for _ in range(2):  # the second time would meet the history of the first
            captured.zero_()
            found = transform(f)
            np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-6)
            assert (captured.requires_grad, captured.grad_fn, found.requires_grad) == (False, None, False)
            assert captured.tolist() == written(X).tolist()


@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_is_returned_keeps_its_history_where_somebody_goes_through_it(tw):
    x = tw.tensor(X, requires_grad=True)

    def f(x):
        y = tw.zeros(3, dtype=tw.float64)
        y.copy_(x * x)
        return y.sum(), y

    gradient, aux = tw.func.grad(f, has_aux=True)(x)
    aux.sum().backward()
    np.testing.assert_array_equal(gradient.detach(), 2 * X)
    np.testing.assert_array_equal(x.grad, 2 * X)


def test_what_a_function_has_put_aside_is_a_constant():
    aside = []

    def f(x):
        y = dynamic.zeros(3, dtype=dynamic.float64)
        y[0] = x[0]
        y.add_(x)
        aside.append(y)
        return (y * x).sum()

    dynamic.func.grad(f)(dynamic.tensor(X))
    assert (aside[0].requires_grad, aside[0].tolist()) == (False, [2, 2, 3])
