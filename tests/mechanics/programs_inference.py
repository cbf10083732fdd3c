"""`inference_mode`, and the tensors that are made in it."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def nothing_is_recorded(tw):
    x = _leaf(tw, 1.0)
    with tw.inference_mode():
        assert tw.is_inference_mode_enabled()
        assert not tw.is_grad_enabled()
        y = x * 2
    assert not y.requires_grad
    assert not tw.is_inference_mode_enabled()
    assert (x * 2).requires_grad


def it_can_be_switched_off_inside(tw):
    x = _leaf(tw, 1.0)
    with tw.inference_mode():
        with tw.inference_mode(False):
            assert not tw.is_inference_mode_enabled()
            assert (x * 2).requires_grad
        assert tw.is_inference_mode_enabled()


def as_a_decorator(tw):
    x = _leaf(tw, 1.0)

    @tw.inference_mode()
    def with_parentheses(t):
        return t * 2

    @tw.inference_mode
    def without(t):
        return t * 2

    for f in (with_parentheses, without):
        assert not f(x).requires_grad
    assert with_parentheses.__name__ == "with_parentheses"
    assert without.__name__ == "without"


def an_exception_ends_it(tw):
    try:
        with tw.inference_mode():
            raise KeyError
    except KeyError:
        pass
    assert tw.is_grad_enabled()
    assert not tw.is_inference_mode_enabled()


def results_are_marked(tw):
    x = _leaf(tw, 1.0)
    with tw.inference_mode():
        y = x * 2
        z = tw.ones(2)
        assert (z + 1).is_inference()
        assert z.exp().is_inference()
        assert tw.cat([z, z]).is_inference()
        assert not x.is_inference()
    for t in (y, z, z[0], z.view(2, 1), z.detach()):
        assert t.is_inference()
        assert t.is_leaf
    assert not (y * 3).is_inference()
    assert not y.clone().is_inference()
    assert not x.is_inference()
    with tw.no_grad():
        assert not (x * 2).is_inference()


def views_of_normal_tensors_are_normal(tw):
    n = tw.ones(2)
    with tw.inference_mode():
        assert not n[0].is_inference()
        n.add_(1)
    assert not n.is_inference()
    assert n.tolist() == [2.0, 2.0]


def they_are_not_saved_for_backward(tw):
    x = _leaf(tw, 3.0)
    p = tw.nn.Parameter(tw.tensor([3.0]))
    with tw.inference_mode():
        y = tw.tensor([2.0])
    for leaf in (x, p):
        for call in (
            lambda a: a * y,
            lambda a: y * a,
            lambda a: tw.mul(a, y),
            lambda a: a / y,
            lambda a: (y * 1 + a) @ y,
        ):
            with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
                call(leaf)
    assert (x + y).requires_grad
    (x * y.clone()).backward()
    assert x.grad.tolist() == [2.0]
    with tw.no_grad():
        assert (x * y).tolist() == [6.0]


def they_are_not_overwritten_outside(tw):
    with tw.inference_mode():
        y = tw.ones(2)
        y.add_(1)
        y[0] = 5.0
    for write in (lambda: y.add_(1), lambda: y.zero_(), lambda: y.fill_(2), lambda: y.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    with tw.inference_mode():
        y.fill_(2)
    assert y.tolist() == [2.0, 2.0]


def they_do_not_require_grad_outside(tw):
    with tw.inference_mode():
        y = tw.ones(2)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        y.requires_grad_()


def functions_do_not_save_them_either(tw):
    with tw.inference_mode():
        y = tw.ones(1)

    class Keep(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, None

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        Keep.apply(_leaf(tw, 1.0), y)


def views_of_them_have_no_history(tw):
    with tw.inference_mode():
        y = tw.ones(2, 2, requires_grad=True)
    for v in (y.view(-1), y[0], *y.split(1), y.T):
        assert v.is_inference()
        assert v.is_leaf
        assert not v.requires_grad
        assert not v._is_view()
    assert (y * 2).requires_grad


def views_of_others_know_none_after_a_write(tw):
    for write in (lambda t: t.add_(2), lambda t: t.transpose_(0, 1), lambda t: t[0].mul_(2)):
        for grad in (True, False):
            a = tw.ones(2, 3, requires_grad=grad).clone()
            with tw.inference_mode():
                v = a.view(-1)
            assert v.grad_fn is None
            write(a)
            if grad:
                for use in (lambda v: v.grad_fn, lambda v: v.is_leaf, lambda v: v * 2):
                    with pytest.raises(RuntimeError, match="in inference mode and its base or another view"):
                        use(v)
                assert "grad_fn=<Invalid>" in repr(v)
            else:
                assert v.grad_fn is None


def a_view_of_a_tensor_of_outside_is_not_written_either(tw):
    for write in (lambda v: v.add_(2), lambda v: v.transpose_(0, 1), lambda v: v.unsqueeze_(0)):
        a = tw.ones(2, 3, requires_grad=True).clone()
        with tw.inference_mode():
            v = a.view_as(a)
        with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace"):
            write(v)
