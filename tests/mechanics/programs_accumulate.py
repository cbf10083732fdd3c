"""Where `.grad` is: added to in place, deleted, shared with what the user has put there."""

import numpy as np
import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def gradients_are_added_to_in_place(tw):
    x = _leaf(tw, 1.0, 2.0)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    assert x.grad is held
    assert held.tolist() == [5.0, 5.0]
    x.grad = None
    (x * 3).sum().backward()
    assert held.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [3.0, 3.0]


def gradients_are_added_to_the_users_memory(tw):
    for shown in (lambda b: b[0], lambda b: b[:, 0], lambda b: b.view(-1)[::2]):
        buffer, x = tw.zeros(2, 2), _leaf(tw, 1.0, 2.0)
        x.grad = shown(buffer)
        (x * tw.tensor([2.0, 3.0])).sum().backward()
        assert shown(buffer).tolist() == [2.0, 3.0]
        assert buffer.sum().item() == 5.0


def recorded_gradients_are_new_tensors(tw):
    x = _leaf(tw, 1.0, 2.0)
    (x * x).sum().backward(create_graph=True)
    held = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not held
    assert held.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [4.0, 8.0]
    x.grad.sum().backward()
    assert x.grad.tolist() == [8.0, 12.0]


def what_was_saved_of_a_gradient_is_watched(tw):
    x, w = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0)
    (x * 2).sum().backward()
    y = (x.grad * w).sum()
    (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def a_cotangent_is_not_what_is_added_to(tw):
    x, z, g = _leaf(tw, 1.0, 2.0), _leaf(tw, 1.0, 2.0), tw.ones(2)
    (x + z).backward(g)
    (x * 1).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert z.grad.tolist() == g.tolist() == [1.0, 1.0]
    x.grad = None
    (x * 1).backward(g, create_graph=True)
    (x * 1).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert g.tolist() == [1.0, 1.0]


def what_shares_memory_with_data_keeps_doing_so(tw):
    x = _leaf(tw, 1.0, 2.0)
    view, data = x.detach()[1:], x.data
    x.data -= 0.5
    x.data[1:] += 2
    assert x.tolist() == data.tolist() == [0.5, 3.5]
    assert view.tolist() == [3.5]


def a_gradient_is_deleted(tw):
    x = _leaf(tw, 1.0, 2.0)
    (x * 2).sum().backward()
    del x.grad
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def arrays_are_handed_out_where_nothing_is_recorded(tw):
    x = _leaf(tw, 1.0, 2.0)
    for y in (x, x * 2):
        with pytest.raises(RuntimeError, match="requires grad"):
            y.numpy()
        for mode in (tw.no_grad, tw.inference_mode):
            with mode():
                assert y.numpy().tolist() == y.tolist()
                assert np.asarray(y).tolist() == y.tolist()
        assert y.numpy(force=True).tolist() == y.tolist()


def results_of_several_may_be_overwritten(tw):
    x = _leaf(tw, 1.0, 2.0, 4.0)
    variance, mean = tw.var_mean(x * 1)
    variance.mul_(2)
    mean.add_(1)
    (variance + mean).backward()
    expected = [2 * (v - 7 / 3) + 1 / 3 for v in (1.0, 2.0, 4.0)]
    assert np.allclose(x.grad.tolist(), expected)
    for several in (
        lambda y: y.max(0),
        lambda y: y.min(0),
        lambda y: y.median(0),
        lambda y: y.mode(0),
        lambda y: y.kthvalue(2, 0),
        lambda y: y.sort(0),
        lambda y: y.topk(2, 0),
        lambda y: y.cummax(0),
        lambda y: y.cummin(0),
    ):
        plain, written = _leaf(tw, 1.0, 3.0, 2.0), _leaf(tw, 1.0, 3.0, 2.0)
        (several(plain * 1)[0] * 3).sum().backward()
        values = several(written * 1)[0]
        values.mul_(3)
        values.sum().backward()
        assert written.grad.tolist() == plain.grad.tolist()


def hooks_of_a_result_that_is_an_input_of_backward(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: seen.append("before"))
    y.grad_fn.register_hook(lambda ins, outs: seen.append("after"))
    (y * 3).sum().backward(inputs=[y], retain_graph=True)
    assert seen == ["tensor", "before", "after"]
    assert y.grad.tolist() == [3.0, 3.0]
    assert x.grad is None
    seen.clear()
    (y * 3).sum().backward(inputs=[x])
    assert seen == ["tensor", "before", "after"]
    assert x.grad.tolist() == [6.0, 6.0]


def _deep(tw):
    class Deep(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with tw.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.x.item() < 0:
                if ctx.x.item() < -1:
                    raise ValueError("too far")
                return g
            with tw.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return g

    return Deep


def backward_inside_backward_may_be_deep(tw):
    x = tw.tensor(600.0, requires_grad=True)
    _deep(tw).apply(x).sum().backward()
    assert x.grad.item() == 1.0


def errors_come_from_the_depth(tw):
    x = tw.tensor(99.5, requires_grad=True)
    with pytest.raises(ValueError, match="too far"):
        _deep(tw).apply(x * 1 - 101).sum().backward()

    class Fails(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                raise ValueError("at the bottom")
            with tw.enable_grad():
                Fails.apply(g.detach().requires_grad_(), ctx.depth - 1).sum().backward()
            return g, None

    with pytest.raises(ValueError, match="at the bottom"):
        Fails.apply(x, 200).backward()


def gradcheck_of_functions_that_differentiate(tw):
    x = tw.tensor([0.5, 1.5], dtype=tw.float64, requires_grad=True)
    w = tw.tensor([2.0, 1.0], dtype=tw.float64, requires_grad=True)

    def penalty(x, w):
        (g,) = tw.autograd.grad((x**3 * w).sum(), x, create_graph=True)
        return (g * g).sum()

    assert tw.autograd.gradcheck(penalty, (x, w))
    assert tw.autograd.gradgradcheck(penalty, (x, w))
    assert tw.autograd.gradcheck(penalty, (x, w), fast_mode=True)

    def unrecorded(x):
        with tw.no_grad():
            scale = x.detach() * 0 + 2
        return x * scale

    assert tw.autograd.gradcheck(unrecorded, (x,))


def tensors_come_from_any_iterable(tw):
    """Meta-learning scripts differentiate with respect to `parameters.values()`."""
    given = {"a": _leaf(tw, 2.0), "b": _leaf(tw, 5.0)}

    def product():
        return (given["a"] * given["b"]).sum()

    for inputs in (given.values(), (x for x in given.values()), map(given.get, given)):
        assert [g.item() for g in tw.autograd.grad(product(), inputs)] == [5.0, 2.0]
    product().backward(inputs=given.values())
    assert [x.grad.item() for x in given.values()] == [5.0, 2.0]
    roots = {"a": given["a"] * 3, "b": given["b"] * 3}
    tw.autograd.backward(roots.values(), iter([tw.tensor([1.0]), tw.tensor([2.0])]))
    assert [x.grad.item() for x in given.values()] == [8.0, 8.0]


def leaves_that_are_frozen_after_their_use_get_no_gradient(tw):
    for freeze in (lambda x: x.requires_grad_(False), lambda x: x.detach_()):
        x, w, heard = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0), []
        y = (x * w).sum()
        x.register_hook(heard.append)
        freeze(x)
        y.backward()
        assert x.grad is None
        assert [g.tolist() for g in heard] == [[3.0, 4.0]]
        assert w.grad.tolist() == [1.0, 2.0]
