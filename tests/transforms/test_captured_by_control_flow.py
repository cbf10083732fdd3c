"""Control flow that reads the differentiated value from its closure, under nested transforms, against derivatives by
hand: what a mapped loop captures is as much an input of its gradient as what it is given."""

import numpy as np
import pytest

import dynamic
import static

X = np.array([1.3, -0.7, 0.4])


def _scan(tw, r):
    return tw.scan(lambda c, i: (c * r, c.sum()), r, tw.arange(3))[0].sum()


def _stacked(tw, r):
    return tw.scan(lambda c, i: (c * r, c * r), tw.ones((), dtype=tw.float64), tw.arange(4))[1][-1]


def _while(tw, r):
    return tw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * r), (tw.tensor(0), r))[1]


def _nested(tw, r):
    return tw.scan(lambda c, i: (tw.fori_loop(0, 3, lambda j, d: d * r, c), c), r, tw.arange(1))[0]


def _cond(tw, r):
    return tw.cond(r * r > 0, lambda x: x * r * r * r, tw.sin, r)


def _switch(tw, r):
    return tw.switch(1, [lambda x: x, lambda x: x * r * r * r, lambda x: -x], r)


def _map(tw, r):
    return tw.map(lambda i: i * r * r * r * r, tw.ones(1, dtype=tw.float64)).sum()


#: Name -> the transform of a function of one number, and which derivative of r^4 it gives, element by element.
TRANSFORMS = {
    "grad(vmap)": (lambda tw, f: tw.grad(lambda x: tw.vmap(f)(x).sum()), 1),
    "vmap(jvp)": (lambda tw, f: tw.vmap(lambda r: tw.func.jvp(f, (r,), (tw.ones_like(r),))[1]), 1),
    "grad(vmap(grad))": (lambda tw, f: tw.grad(lambda x: tw.vmap(tw.grad(f))(x).sum()), 2),
    "jvp(vmap(grad))": (lambda tw, f: lambda x: tw.func.jvp(tw.vmap(tw.grad(f)), (x,), (tw.ones_like(x),))[1], 2),
    "vjp(vmap(grad))": (lambda tw, f: lambda x: tw.func.vjp(tw.vmap(tw.grad(f)), x)[1](tw.ones_like(x))[0], 2),
    "grad(vmap(vmap(grad)))": (lambda tw, f: tw.grad(lambda x: tw.vmap(tw.vmap(tw.grad(f)))(x[None]).sum()), 2),
    "grad(vmap(jacfwd))": (lambda tw, f: tw.grad(lambda x: tw.vmap(tw.func.jacfwd(f))(x).sum()), 2),
    "grad(grad(vmap(grad)))": (
        lambda tw, f: tw.grad(lambda y: tw.grad(lambda x: tw.vmap(tw.grad(f))(x).sum())(y).sum()), 3,
    ),
}  # fmt: skip
EXPECTED = {1: 4 * X**3, 2: 12 * X**2, 3: 24 * X}


@pytest.mark.parametrize("function", [_scan, _stacked, _while, _nested, _cond, _switch, _map])
def test_what_is_captured_is_differentiated(function):
    for name, (transform, order) in TRANSFORMS.items():
        bits = set()
        for tw in (dynamic, static):
            made = transform(tw, lambda r, tw=tw: function(tw, r))
            for run in (made, tw.function(made)) if name in ("grad(vmap(grad))", "vmap(jvp)") else (made,):
                found = run(tw.tensor(X))
                assert not found.requires_grad, name
                np.testing.assert_allclose(np.asarray(found), EXPECTED[order], rtol=1e-12, err_msg=name)
                bits.add(np.asarray(found).tobytes())
        assert len(bits) == 1, name


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_what_all_examples_share_is_differentiated(tw):
    w = tw.tensor(2.0, requires_grad=True)
    mapped = tw.vmap(tw.grad(lambda r: tw.scan(lambda c, i: (c * r * w, c), r, tw.arange(3))[0]))
    (found,) = tw.autograd.grad(mapped(tw.tensor([1.0, 2.0])).sum(), w)
    assert found.item() == 432.0  # 4 r^3 w^3, by w


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_second_derivatives_of_loops_that_only_read_rows(tw):
    """Nothing that a gradient's loop is given itself has a history: what it reads of the loop before has one."""

    def total(x):
        return tw.map(lambda r: r.sin() * r * r, x).sum()

    x = np.stack([X, X * 0.9])
    curves = 2 * np.sin(x) + 4 * x * np.cos(x) - x * x * np.sin(x)
    found = tw.vmap(tw.func.hessian(total))(tw.tensor(x)).numpy()
    np.testing.assert_allclose(found, curves[:, :, None] * np.eye(3), rtol=1e-12)
    pushed = tw.vmap(lambda row: tw.func.jvp(tw.func.grad(total), (row,), (tw.tensor(X),))[1])(tw.tensor(x)).numpy()
    np.testing.assert_allclose(pushed, curves * X, rtol=1e-12)
