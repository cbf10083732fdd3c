"""Jacobians, Hessians and products with them."""

import pytest


def _f(x):
    return x**3 + x.sum()


def _scalar(x, y):
    return (x * x * y).sum()


def products_from_the_left(tw):
    y, g = tw.autograd.functional.vjp(_f, tw.tensor([1.0, 2.0]), tw.tensor([1.0, 10.0]))
    assert (y.tolist(), g.tolist()) == ([4.0, 11.0], [14.0, 131.0])
    assert not y.requires_grad


def products_from_the_right(tw):
    y, g = tw.autograd.functional.jvp(_f, tw.tensor([1.0, 2.0]), tw.tensor([1.0, 10.0]))
    assert (y.tolist(), g.tolist()) == ([4.0, 11.0], [14.0, 131.0])


def jacobians(tw):
    j = tw.autograd.functional.jacobian(_f, tw.tensor([1.0, 2.0]))
    assert j.tolist() == [[4.0, 1.0], [1.0, 13.0]]


def jacobians_of_several(tw):
    x, y = tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0])
    (a, b), (c, d) = tw.autograd.functional.jacobian(lambda x, y: (x * y, x.sum()), (x, y))
    assert a.tolist() == [[3.0, 0.0], [0.0, 4.0]]
    assert b.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert c.tolist() == [1.0, 1.0]
    assert d.tolist() == [0.0, 0.0]


def jacobians_at_once(tw):
    x, y = tw.tensor([1.0, 2.0], requires_grad=True), tw.tensor([3.0, 4.0])
    by_rows = tw.autograd.functional.jacobian(lambda x, y: (x * y, (x * x).sum()), (x, y))
    at_once = tw.autograd.functional.jacobian(lambda x, y: (x * y, (x * x).sum()), (x, y), vectorize=True)
    assert [[j.tolist() for j in row] for row in at_once] == [[j.tolist() for j in row] for row in by_rows]
    tw.autograd.functional.jacobian(lambda x: x**3, x, create_graph=True, vectorize=True).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    hessian = tw.autograd.functional.hessian(lambda x: (x**3).sum(), x, vectorize=True)
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def strict_jacobians(tw):
    with pytest.raises(RuntimeError, match="independent of"):
        tw.autograd.functional.jacobian(lambda x, y: x * 2, (tw.tensor([1.0]), tw.tensor([2.0])), strict=True)


def hessians(tw):
    x, y = tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0])
    (xx, xy), (yx, yy) = tw.autograd.functional.hessian(_scalar, (x, y))
    assert xx.tolist() == [[6.0, 0.0], [0.0, 8.0]]
    assert xy.tolist() == yx.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert yy.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    h = tw.autograd.functional.hessian(lambda x: (x**3).sum(), x)
    assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def products_with_a_hessian(tw):
    x, v = tw.tensor([1.0, 2.0]), tw.tensor([1.0, -1.0])
    for name in ("hvp", "vhp"):
        y, product = getattr(tw.autograd.functional, name)(lambda x: (x**3).sum(), x, v)
        assert (y.tolist(), product.tolist()) == (9.0, [6.0, -12.0])


def differentiating_a_jacobian(tw):
    x = tw.tensor([2.0], requires_grad=True)
    j = tw.autograd.functional.jacobian(lambda x: x**3, x, create_graph=True)
    (g,) = tw.autograd.grad(j.sum(), x)
    assert g.tolist() == [12.0]


def a_vector_is_needed(tw):
    with pytest.raises(RuntimeError, match="v can only be None"):
        tw.autograd.functional.vjp(_f, tw.tensor([1.0, 2.0]))


def transforms(tw):
    x = tw.tensor([1.0, 2.0])
    assert tw.func.jacrev(_f)(x).tolist() == [[4.0, 1.0], [1.0, 13.0]]
    assert tw.func.jacfwd(_f)(x).tolist() == [[4.0, 1.0], [1.0, 13.0]]
    assert tw.func.hessian(lambda x: (x**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    y, t = tw.func.jvp(_f, (x,), (tw.tensor([1.0, 10.0]),))
    assert (y.tolist(), t.tolist()) == ([4.0, 11.0], [14.0, 131.0])
    assert tw.func.grad(lambda x: (x * x).sum())(x).tolist() == [2.0, 4.0]
    g, value = tw.func.grad_and_value(lambda x: (x * x).sum())(x)
    assert (g.tolist(), value.tolist()) == ([2.0, 4.0], 5.0)
    out, pull = tw.func.vjp(_f, x)
    assert pull(tw.tensor([1.0, 10.0]))[0].tolist() == [14.0, 131.0]
    assert out.tolist() == [4.0, 11.0]


def transforms_nest(tw):
    x = tw.tensor([1.0, 2.0])
    third = tw.func.jacrev(tw.func.hessian(lambda x: (x**3).sum()))(x)
    assert third.tolist() == [[[6.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 6.0]]]
    inner = tw.func.grad(lambda x: tw.func.jacrev(lambda x: x * x)(x).sum())
    assert inner(x).tolist() == [2.0, 2.0]


def batches_of_cotangents(tw):
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    (g,) = tw.autograd.grad(y, x, tw.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True)
    assert g.tolist() == [[2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]
