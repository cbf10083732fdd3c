"""Attributes and switches: what cannot be deleted, versions of resized memory, classes that nobody instantiates."""

import warnings

import pytest


def attributes_stay(tw):
    x = tw.ones(2, requires_grad=True)
    del x.grad
    assert x.grad is None
    with pytest.raises(RuntimeError):
        del x.data
    with pytest.raises(RuntimeError):
        del x.requires_grad
    assert x.requires_grad
    assert tw.equal(x.data, tw.ones(2))


def resizing_is_a_write(tw):
    x, y = tw.ones(1), tw.ones(3)
    x.resize_((1, 2))
    assert x._version == 1
    x.resize_as_(y)
    assert x._version == 2
    x.resize_((3,))
    x.resize_as_(y)
    assert x._version == 2
    x.add_(1)
    assert x._version == 3


def switches_of_threads(tw):
    autograd = tw.autograd
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
        autograd.set_multithreading_enabled(True)
        assert autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(False)
    assert not autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(True)
    assert autograd.is_multithreading_enabled()


def classes_without_instances(tw):
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        tw.autograd.SavedTensor()

    class Identity(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Identity()
    assert isinstance(made, Identity)
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        made(tw.ones(1))


def medians_share_gradients(tw):
    for f in (tw.median, tw.nanmedian, tw.max, tw.min):
        for values in ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [float("nan")] * 3):
            x = tw.tensor(values, requires_grad=True)
            f(x).backward()
            assert (x.grad == 1 / 3).sum() == 3
            assert x.grad.sum() == 1
    x = tw.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=tw.float64, requires_grad=True)
    (grad,) = tw.autograd.grad(x.median() ** 2, x, create_graph=True)
    assert tw.equal(grad, tw.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=tw.float64))
    (second,) = tw.autograd.grad(grad.sum(), x)
    assert tw.allclose(second.sum(), tw.tensor(2.0, dtype=tw.float64))


def versions_count_what_changes_the_form_and_what_is_marked(tw):
    class Marked(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, write):
            if write:
                x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, None

    for grad in (True, False):
        for write in (0, 1):
            x = tw.ones(2, 3, requires_grad=grad).clone()
            Marked.apply(x, write)
            assert x._version == write + 1
    x = tw.ones(2, 3)
    changes = (lambda: x.t_(), lambda: x.transpose_(0, 1), lambda: x.unsqueeze_(0), lambda: x.squeeze_(0),
               lambda: x.as_strided_((2,), (1,)), lambda: x.set_(tw.ones(3)))  # fmt: skip
    for count, change in enumerate(changes, 1):
        change()
        assert x._version == count


def a_warning_names_the_line_of_the_program(tw):
    x = tw.ones(3, requires_grad=True)
    calls = [
        lambda: (x * x).sum().backward(create_graph=True),
        lambda: tw.autograd.backward((x * x).sum(), create_graph=True),
        lambda: (x * x).grad,
        lambda: tw.nn.functional.softmax(x),
        lambda: tw.nn.Softmax()(x),
        lambda: tw.cov(tw.ones(3, 1)),
        lambda: x.sum().volatile,
        lambda: tw.autograd.gradcheck(lambda y: y * 1, (x,), atol=1.0),
        lambda: tw.nn.functional.dropout2d(tw.ones(2, 3, 4, 5, 6)),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert any(w.filename == __file__ for w in seen) or tw.__name__ == "torch"  # some of its own are of its files
