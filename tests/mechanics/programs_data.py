"""`data`, `detach`, `requires_grad`: a tensor's place in the graph, as users change it."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def data_is_a_tensor_over_the_same_memory(tw):
    x = _leaf(tw, 1.0, 2.0)
    assert isinstance(x.data, tw.Tensor)
    assert not x.data.requires_grad
    assert x.data.grad_fn is None
    x.data.mul_(3)
    x.data[0] = 7.0
    assert x.tolist() == [7.0, 6.0]
    assert x.requires_grad


def gradient_descent_of_the_tutorials(tw):
    w = _leaf(tw, 1.0, 2.0)
    for _ in range(2):
        (w * w).sum().backward()
        w.data -= 0.25 * w.grad.data
        w.grad.data.zero_()
    assert w.tolist() == [0.25, 0.5]
    assert w.grad.tolist() == [0.0, 0.0]
    assert w.is_leaf


def data_is_replaced(tw):
    x = _leaf(tw, 1.0)
    other = tw.tensor([7.0])
    x.data = other
    other.add_(1)
    assert x.tolist() == [8.0]
    (x * x).backward()
    assert x.grad.tolist() == [16.0]
    m = tw.nn.Linear(1, 1)
    m.weight.data = tw.ones(1, 1)
    assert m.weight.tolist() == [[1.0]]
    assert isinstance(m.weight, tw.nn.Parameter)
    with pytest.raises(TypeError, match="has to be a tensor"):
        x.data = 3.0


def detached_in_place(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)
    y.requires_grad_()
    (y * 3).backward()
    assert y.grad.tolist() == [3.0]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2)[:1].detach_()


def detached_values_share_memory(tw):
    x = _leaf(tw, 1.0)
    d = x.detach()
    d.fill_(5.0)
    assert x.tolist() == [5.0]


def the_flag_is_checked(tw):
    x = _leaf(tw, 1.0)
    x.requires_grad = False
    assert not (x * 2).requires_grad
    x.requires_grad = True
    assert (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (x * 2).requires_grad = False
    for make in (lambda: tw.tensor([1]).requires_grad_(), lambda: setattr(tw.tensor([1]), "requires_grad", True)):
        with pytest.raises(RuntimeError, match="only Tensors of floating point"):
            make()
