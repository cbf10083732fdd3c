"""`data`, `detach`, `requires_grad`: a tensor's place in the graph, as users change it."""

import math

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


def a_saved_value_is_not_detached_in_place(tw):
    for function in (lambda x: x.sin(), lambda x: x * x, lambda x: x**3, lambda x: (x * 2).sin() * x):
        x = _leaf(tw, 1.0)
        y = x.clone()
        z = function(y)
        y.detach_()
        with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
            z.backward()
    for function, gradient in ((lambda x: x.exp(), math.e), (lambda x: x * 2, 2.0), (lambda x: x + 1, 1.0)):
        x = _leaf(tw, 1.0)
        y = x.clone()
        z = function(y)  # saves its result, or nothing
        y.detach_()
        z.backward()
        assert x.grad.item() == pytest.approx(gradient)
    x = _leaf(tw, 1.0)
    y = x.clone().detach_()
    (y * x).backward()  # saved as it is since
    assert x.grad.tolist() == [1.0]


def data_of_a_differentiated_tensor_are_floats(tw):
    x = _leaf(tw, 1.0)
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = tw.tensor([3])


def other_memory_by_set(tw):
    x = tw.nn.Parameter(tw.ones(4))
    for n in (3, 2):
        with tw.no_grad():
            x.set_(x[1:])
        x.grad = None
        tw.cat((x, x)).sum().backward()
        assert x.grad.tolist() == [2.0] * n
    with pytest.raises(RuntimeError):
        x.set_(tw.ones(2))


def part_of_a_storage_by_set(tw):
    x = tw.arange(10.0)
    y = tw.tensor(())
    y.set_(x.storage(), storage_offset=0, size=tw.Size([4]), stride=[2])
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    y.set_(x.untyped_storage(), 1, (2, 2))
    y[0, 0] = 99.0
    assert y.tolist() == [[99.0, 2.0], [3.0, 4.0]]
    assert x[1].item() == 99.0
    y.set_(x[2:].storage())
    assert y.shape == (10,)
    y.set_(x[2:], 1, (3,), (3,))
    assert y.tolist() == [3.0, 6.0, 9.0]
    with pytest.raises((RuntimeError, TypeError)):
        y.set_(tw.arange(3).storage())


def parameters_and_buffers_share_memory(tw):
    x = tw.arange(6.0).view(2, 3)
    p = tw.nn.Parameter(x.t())
    with tw.no_grad():
        p[0, 1] = 7.0
    x[0, 0] = 5.0
    assert x.tolist() == p.t().tolist() == [[5.0, 1.0, 2.0], [7.0, 4.0, 5.0]]
    assert p.stride() == (1, 3)
    y = tw.tensor([1.0, 2.0], requires_grad=True) * 2
    p = tw.nn.Parameter(y)
    assert p.is_leaf
    z = (y * y).sum()
    with tw.no_grad():
        p.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    counts = tw.zeros(2)
    module = tw.nn.Module()
    module.register_buffer("counts", counts)
    module.counts += 1
    assert counts.tolist() == [1.0, 1.0]


def tables_that_are_given_are_scaled_down_in_place(tw):
    table = tw.tensor([[3.0, 4.0], [0.5, 0.0], [6.0, 8.0]])
    embedding = tw.nn.Embedding.from_pretrained(table, max_norm=1.0)
    assert abs(embedding(tw.tensor([0])).norm().item() - 1.0) < 1e-5
    assert abs(table[0].norm().item() - 1.0) < 1e-5
    assert table[1:].tolist() == [[0.5, 0.0], [6.0, 8.0]]
    bags = tw.nn.EmbeddingBag.from_pretrained(table, max_norm=1.0, mode="sum")
    bags(tw.tensor([[2, 1]]))
    assert abs(table[2].norm().item() - 1.0) < 1e-5
    for make in (tw.nn.Embedding, tw.nn.EmbeddingBag):
        with pytest.raises(AssertionError, match="num_embeddings"):
            make(3, 2, padding_idx=3)
    with pytest.raises((RuntimeError, ValueError)):
        bags(tw.tensor([[2, 1]]), per_sample_weights=tw.ones(1, 2, dtype=tw.float64))


def storages_are_compared_and_counted(tw):
    x = tw.arange(5.0)
    part = x[1:3]
    assert len(part.storage()) == len(x.storage()) == 5
    assert part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()
    assert part.untyped_storage().nbytes() == x.untyped_storage().size() == 20
    assert part.storage().tolist() == x.tolist()


def views_change_their_shape_in_place(tw):
    changes = [
        lambda v: v.as_strided_((1, 0), (2, 2)), lambda v: v.transpose_(0, 1), lambda v: v.t_(),
        lambda v: v.squeeze_(0), lambda v: v.unsqueeze_(0), lambda v: v.swapdims_(0, 1),
    ]  # fmt: skip
    for change in changes:
        x = tw.arange(6.0).view(2, 3).requires_grad_()
        base = x.clone()
        view = base.view_as(base)
        other = base.view_as(base)
        change(view)
        view.mul_(3)
        assert base.tolist() == other.tolist()
        (base * tw.arange(6.0).view(2, 3)).sum().backward()
        scale = 1.0 if view.numel() == 0 else 3.0
        assert x.grad.tolist() == (tw.arange(6.0).view(2, 3) * scale).tolist()
        with tw.no_grad():
            quiet = base.view_as(base)
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
            change(quiet)
        with pytest.raises(RuntimeError, match="function that returns multiple views"):
            change(base.unbind()[0])
        with tw.no_grad():
            change(view)
        assert (view * 1).requires_grad


def volatile_warns(tw):
    x = tw.ones(2)
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="volatile was removed"):
        x.volatile = True
