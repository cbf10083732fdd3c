"""Pack hooks see these values, and backward passes of every order use the results of unpack hooks."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), dtype=tw.float64, requires_grad=True)


def _doubled(tw):
    return tw.autograd.graph.saved_tensors_hooks(lambda x: 2 * x.detach(), lambda x: x)


def _square(tw):
    class Square(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    return Square


def hooks_see_tensors_that_backward_reads(tw):
    x = _leaf(tw, 2.0, 3.0)
    cases = [
        (lambda: x * 2, 0), (lambda: x / 2, 0), (lambda: x + 1, 0), (lambda: x**3, 1), (lambda: x * x, 2),
        (lambda: x.exp(), 1), (lambda: x.sum(), 0), (lambda: x * tw.ones(2, dtype=tw.float64), 1),
        (lambda: x.clamp(0, 1), 1), (lambda: _square(tw).apply(x), 1), (lambda: x.relu(), 1),
    ]  # fmt: skip
    for run, count in cases:
        seen = []

        def pack(value, seen=seen):
            assert isinstance(value, tw.Tensor)
            assert not value.requires_grad or value.is_leaf or value.grad_fn is not None
            seen.append(value)
            return value

        with tw.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            run()
        assert len(seen) == count


def every_order_uses_what_was_packed(tw):
    x = _leaf(tw, 2.0, 3.0)
    with _doubled(tw):
        y = x**3
    (g,) = tw.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [48.0, 108.0]
    (h,) = tw.autograd.grad(g.sum(), x, create_graph=True)
    assert h.tolist() == [24.0, 36.0]
    with _doubled(tw):
        y = (x * 1).exp()
    (g,) = tw.autograd.grad(y.sum(), x, create_graph=True)
    assert (g / x.exp()).detach().round().tolist() == [2.0, 2.0]


def functions_save_through_hooks(tw):
    x = _leaf(tw, 2.0, 3.0)
    with _doubled(tw):
        y = _square(tw).apply(x)
        z = _square(tw).apply(x * 1)
    for result in (y, z):
        (g,) = tw.autograd.grad(result.sum(), x, create_graph=True)
        assert g.tolist() == [8.0, 12.0]
        assert tw.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 2.0]


def what_comes_back_unchanged_changes_nothing(tw):
    def gradients(context):
        x = _leaf(tw, 2.0, 3.0)
        with context:
            y = (x * x.exp() / (1 + x)).cumsum(0)
        (g,) = tw.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = tw.autograd.grad((g * g).sum(), x)
        return g.tolist(), h.tolist()

    graph = tw.autograd.graph
    plain = gradients(tw.enable_grad())
    assert gradients(graph.saved_tensors_hooks(lambda x: x.numpy(force=True).copy(), tw.from_numpy)) == plain
    assert gradients(graph.save_on_cpu()) == plain


def hooks_do_not_overwrite_what_they_get(tw):
    x = _leaf(tw, 2.0, 3.0)
    hooks = tw.autograd.graph.saved_tensors_hooks(lambda value: value.mul_(2), lambda value: value)
    with hooks, pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        (x * 1).exp()


def hooks_may_be_refused(tw):
    graph = tw.autograd.graph
    hooks = graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass
    with hooks, pytest.raises(RuntimeError, match="not here"), graph.disable_saved_tensors_hooks("not here"):
        pass
    with hooks:
        pass


def saved_values_may_be_overwritten_where_that_is_allowed(tw):
    x = _leaf(tw, 2.0, 3.0)
    with tw.autograd.graph.allow_mutation_on_saved_tensors():
        a = x * 1
        b = a * a
        c = a.exp()
        a.add_(1)
        c.mul_(0)
        (b + c).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
    with tw.autograd.graph.allow_mutation_on_saved_tensors():
        b = x * x
    with pytest.raises(Exception, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        b.sum().backward()


def versions_count_writes(tw):
    a = tw.ones(3)
    v = a[:1]
    assert (a._version, v._version) == (0, 0)
    a.add_(1)
    v.mul_(2)
    a[0] = 2
    with tw.no_grad():
        a.zero_()
    a.detach().zero_()
    assert (a._version, v._version) == (5, 5)
    tw.autograd.graph.increment_version(a)
    tw.autograd.graph.increment_version([a, v])
    assert a._version == 8
    x = _leaf(tw, 2.0, 3.0)
    b = x * 1
    c = b * b
    tw.autograd.graph.increment_version(b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward()
    with tw.inference_mode():
        d = tw.ones(2)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = d._version


def views_know_their_base(tw):
    a = tw.ones(3)
    v = a[:1]
    w = v[0]
    with tw.no_grad():
        u = a[1:]
    assert v._base is a
    assert w._base is a
    assert u._base is a
    assert a._base is None
    assert v._is_view()
    assert not a._is_view()
    assert not a.detach()._is_view()
    assert not (v * 1)._is_view()


def saved_values_that_were_overwritten_are_not_shown(tw):
    x = _leaf(tw, 2.0, 3.0)
    a = x * 1
    b = a * a
    assert b.grad_fn._saved_self.tolist() == [2.0, 3.0]
    a.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = b.grad_fn._saved_self


def hooks_of_several_wait_for_what_the_pass_computes(tw):
    a, b, c = _leaf(tw, 2.0), _leaf(tw, 3.0), _leaf(tw, 4.0)
    seen = []

    def note(gradients):
        seen.append([None if g is None else g.item() for g in gradients])

    tw.autograd.graph.register_multi_grad_hook((a, b, c), note)
    (a * b).sum().backward()
    (a * b * c).sum().backward(inputs=[a])
    assert seen == [[3.0, 2.0, None], [12.0, None, None]]
    d = a * 2
    e = d * 3
    seen.clear()
    tw.autograd.graph.register_multi_grad_hook((d, e), note)
    e.sum().backward(inputs=[d])
    assert seen == [[3.0, 1.0]]


def gradients_are_tensors(tw):
    x = _leaf(tw, 2.0)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 5
    with pytest.raises(RuntimeError):
        x.grad = x


def checkpoints_in_sequence_and_in_contexts(tw):
    from importlib import import_module

    checkpoint = import_module(f"{tw.__name__}.utils.checkpoint")
    functions = [tw.sin, tw.cos, tw.exp, tw.tanh, tw.square]
    x = _leaf(tw, 0.5, 1.5)
    plain = x
    for function in functions:
        plain = function(plain)
    (expected,) = tw.autograd.grad(plain.sum(), x)
    for segments in (1, 2, 3, 5):
        y = checkpoint.checkpoint_sequential(functions, segments, x, use_reentrant=False)
        assert tw.autograd.grad(y.sum(), x)[0].tolist() == expected.tolist()
    order = []

    class Noting:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            order.append(self.name)

        def __exit__(self, *exc):
            pass

    y = checkpoint.checkpoint(tw.sin, x, use_reentrant=False, context_fn=lambda: (Noting("first"), Noting("again")))
    y.sum().backward()
    assert order == ["first", "again"]
    with checkpoint.set_checkpoint_early_stop(False):
        plain = checkpoint.noop_context_fn
        checkpoint.checkpoint(tw.sin, x, use_reentrant=False, context_fn=plain).sum().backward()


def unpacked_values_may_be_overwritten(tw):
    class Sine(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            x.add_(1)
            return g

    x = _leaf(tw, 1.0)
    copy = x.detach().clone()
    with tw.autograd.graph.saved_tensors_hooks(lambda t: copy, lambda t: t):
        y = Sine.apply(x)
    y.backward()
    assert (x.tolist(), x._version, copy.tolist()) == ([1.0], 0, [2.0])
