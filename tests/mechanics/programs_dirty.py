"""Functions that overwrite their arguments, where these are views or have some."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def _times(tw, factor):
    class Times(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(factor)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * factor

    return Times


def _accumulate(tw):
    class Accumulate(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(y)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, g * 5

    return Accumulate


def _identity(tw, shown):
    class Identity(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return shown(x)

        @staticmethod
        def backward(ctx, g):
            return g * 10

    return Identity


def a_view_that_is_overwritten_changes_its_base(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = x * 1
    v = a[:1]
    y = _times(tw, 3).apply(v)
    assert y is v
    a.sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


def a_base_that_is_overwritten_changes_its_views(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = x * 1
    v = a[:1]
    _times(tw, 3).apply(a)
    v.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]


def siblings_see_what_was_overwritten(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = x * 1
    v, w = a[:1], a[0]
    _times(tw, 3).apply(v)
    (w * 10 + a.sum()).backward()
    assert x.grad.tolist() == [33.0, 1.0]


def a_constant_gets_the_history_of_what_is_written_to_it(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = tw.ones(2)
    v = a[:1]
    _accumulate(tw).apply(a, x)
    assert v.requires_grad
    assert not v.is_leaf
    v.sum().backward()
    assert x.grad.tolist() == [5.0, 0.0]
    x, a = _leaf(tw, 1.0), tw.ones(2)
    _accumulate(tw).apply(a[:1], x)
    a.sum().backward()
    assert x.grad.tolist() == [5.0]
    assert a.tolist() == [2.0, 1.0]


def a_retained_gradient_is_that_of_the_result(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = x * 1
    a.retain_grad()
    _times(tw, 3).apply(a)
    a.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert a.grad.tolist() == [1.0, 1.0]


def leaves_are_not_overwritten(tw):
    for shown in (lambda x: x, lambda x: x[:1]):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            _times(tw, 3).apply(shown(_leaf(tw, 1.0, 1.0)))
    a = tw.ones(2)
    v = a[:1]
    a.requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        _times(tw, 3).apply(v)


def parts_of_several_are_not_overwritten(tw):
    a = _leaf(tw, 1.0, 1.0) * 1
    with pytest.raises(RuntimeError, match="returns multiple views"):
        _times(tw, 3).apply(a.split(1)[0])


def results_that_show_an_argument_are_not_overwritten(tw):
    for shown in (lambda x: x, lambda x: x.view(-1), lambda x: x[:1]):
        function = _identity(tw, shown)
        for change in (
            lambda y: y.mul_(2),
            lambda y: y[:1].mul_(2),
            lambda y: y.__setitem__(0, 1.0),
            lambda y: _times(tw, 3).apply(y),
        ):
            y = function.apply(_leaf(tw, 1.0, 1.0) * 1)
            with pytest.raises(RuntimeError, match="created inside a custom Function"):
                change(y)


def a_write_takes_the_gradient_of_what_a_function_has_shown(tw):
    for shown in (lambda x: x, lambda x: x.view(-1)):
        x = _leaf(tw, 1.0, 1.0)
        a = x * 1
        y = _identity(tw, shown).apply(a)
        z = y[:1]
        a.mul_(2)
        for result in (y, z):
            with pytest.raises(RuntimeError, match="has been modified inplace"):
                result.sum().backward()
        a.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def results_that_show_an_argument_may_be_cloned(tw):
    x = _leaf(tw, 1.0, 1.0)
    a = x * 1
    y = _identity(tw, lambda x: x.view(-1)).apply(a).clone()
    a.mul_(2)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def what_was_saved_and_overwritten_is_noticed(tw):
    x = _leaf(tw, 2.0, 2.0)
    a = x * 1
    b = a * a
    _times(tw, 3).apply(a[:1])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()


def setup_context_gets_the_defaults_of_forward(tw):
    class Scale(tw.autograd.Function):
        @staticmethod
        def forward(x, factor=3, offset=0.0):
            return x * factor + offset

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor, ctx.offset = inputs

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False, False)
            return g * ctx.factor, None, None

    x = _leaf(tw, 1.0, 1.0)
    Scale.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    Scale.apply(x, offset=1.0).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    Scale.apply(x, factor=4).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def several_results_that_show_an_argument_are_not_overwritten(tw):
    class Both(tw.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a.view_as(a), b.view_as(b)

        @staticmethod
        def backward(ctx, g, h):
            return g, h

    for position in (0, 1):
        y = Both.apply(_leaf(tw, 1.0), _leaf(tw, 1.0))[position]
        with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
            y.mul_(2)
