"""Checkpoints: a function runs again in backward, with the same results."""

import warnings

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def _checkpoint(tw, f, *args):
    from importlib import import_module

    return import_module(f"{tw.__name__}.utils.checkpoint").checkpoint(f, *args, use_reentrant=False)


def gradients_are_those_of_a_plain_call(tw):
    w = _leaf(tw, 3.0, 4.0)
    runs = []

    def f(x):
        runs.append(1)
        return (x * w).exp() * x

    x, y = _leaf(tw, 0.5, 0.25), _leaf(tw, 0.5, 0.25)
    f(x).sum().backward()
    expected, w.grad = w.grad.tolist(), None
    _checkpoint(tw, f, y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
    assert w.grad.tolist() == expected
    assert len(runs) == 3


def random_numbers_are_drawn_again(tw):
    tw.manual_seed(3)
    masks = []

    def f(x):
        mask = tw.rand(100)
        masks.append(mask.tolist())
        return (x * mask).tanh()

    x = tw.ones(100).requires_grad_()
    y = _checkpoint(tw, f, x)
    after = tw.rand(3).tolist()
    y.sum().backward()
    assert masks[0] == masks[1]
    assert tw.rand(3).tolist() != after


def several_results(tw):
    x = _leaf(tw, 1.0, 2.0)
    a, _ = _checkpoint(tw, lambda x: (x * x, x.exp()), x)
    (a * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def nested(tw):
    x = _leaf(tw, 0.5)
    _checkpoint(tw, lambda x: _checkpoint(tw, lambda y: (y * y).sin(), x * 2) * x, x).sum().backward()
    z = _leaf(tw, 0.5)
    (((z * 2) * (z * 2)).sin() * z).sum().backward()
    assert x.grad.tolist() == pytest.approx(z.grad.tolist(), rel=1e-6)


def second_derivatives(tw):
    x = _leaf(tw, 2.0)
    y = _checkpoint(tw, lambda x: x * x * x, x)
    (g,) = tw.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = tw.autograd.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [12.0])


def arguments_that_are_no_tensors(tw):
    x = _leaf(tw, 2.0)
    _checkpoint(tw, lambda x, n, tag: x**n if tag == "power" else x, x, 3, "power").backward()
    assert x.grad.tolist() == [12.0]


def nothing_to_differentiate(tw):
    y = _checkpoint(tw, lambda x: x * 2, tw.tensor([1.0]))
    assert not y.requires_grad
    with tw.no_grad():
        assert not _checkpoint(tw, lambda x: x * 2, _leaf(tw, 1.0)).requires_grad


MODIFIED = "modified by an inplace operation"


def an_argument_must_stay_as_it_is(tw):
    for needs_grad in (True, False):
        x, c = _leaf(tw, 1.0, 2.0), tw.tensor([3.0, 4.0], requires_grad=needs_grad) * 1
        y = _checkpoint(tw, lambda x, c: x * c, x, c)
        with tw.no_grad():
            c.mul_(2)
        with pytest.raises(RuntimeError, match=MODIFIED):
            y.sum().backward()
        assert x.grad is None


def nor_may_the_function_overwrite_it(tw):
    def f(x, c):
        c.add_(1)
        return x * c

    x = _leaf(tw, 1.0, 2.0)
    y = _checkpoint(tw, f, x, tw.tensor([3.0, 4.0]))
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    z = _checkpoint(tw, lambda h: f(h * 1, h), x * 2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def values_packed_by_hooks_survive_a_write_by_their_own_op(tw):
    w = _leaf(tw, 3.0, 4.0)
    with tw.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
        h = tw.tensor([1.0, 2.0]) * 1
        h.mul_(w)
    h.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]


def functions_that_differentiate_inside(tw):
    checkpoint = tw.utils.checkpoint.checkpoint

    def f(x):
        return x.sin().exp().sin()

    def slope(function):
        def call(x):
            with tw.enable_grad():
                y = function(x)
                (g,) = tw.autograd.grad(y, x, create_graph=True)
            return g

        return call

    def kept(function):
        return lambda x: checkpoint(function, x, use_reentrant=False)

    x = tw.tensor(0.7, requires_grad=True)
    for wanted, found in (
        (slope(f), (slope(kept(f)), slope(kept(kept(f))), kept(slope(f)))),
        (slope(slope(f)), (slope(kept(slope(f))), kept(slope(slope(kept(f)))), slope(kept(slope(kept(f)))))),
        (slope(slope(slope(f))), (slope(kept(slope(kept(slope(kept(f)))))),)),
    ):
        for function in found:
            assert tw.allclose(wanted(x), function(x), atol=1e-4)


def hooks_of_captured_leaves_run_once(tw):
    seen = []
    w = tw.full((2,), 3.0, requires_grad=True)
    w.register_hook(lambda g: seen.append(g.tolist()))
    x = tw.ones(2, requires_grad=True)
    h = w * x
    tw.utils.checkpoint.checkpoint(lambda x: w * x, h, use_reentrant=False).sum().backward()
    assert seen == [[6.0, 6.0]]


def the_kind_of_checkpoint_is_asked_for(tw):
    x, checkpoint = tw.ones(2, requires_grad=True), tw.utils.checkpoint
    for run in (
        lambda **o: checkpoint.checkpoint(tw.exp, x, **o),
        lambda **o: checkpoint.checkpoint_sequential([tw.exp, tw.sin, tw.exp], 3, x, **o),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(use_reentrant=False)
        assert caught == []
        with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
            run()


def results_have_nodes_of_their_own(tw):
    def f(a):
        x = a.sin().cos()
        return x, x.sin()

    a, runs = _leaf(tw, 1.0), []
    x, y = tw.utils.checkpoint.checkpoint(f, a, use_reentrant=False)
    y.grad_fn.register_hook(lambda *_: runs.append("hook") or x.backward(retain_graph=True))
    y.backward(retain_graph=True)
    assert runs == ["hook"]
    plain = _leaf(tw, 1.0)
    x, y = f(plain)
    (x + y).backward()
    assert a.grad.tolist() == pytest.approx(plain.grad.tolist())
