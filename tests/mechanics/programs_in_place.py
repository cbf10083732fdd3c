"""In-place writes, views, and the errors about them."""

import pytest

from tests.helpers import in_place


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def random_programs(tw):
    """Gradients against the same program on numbers that need none of the machinery: finite differences."""
    for seed in range(40):
        program = in_place.make(seed)

        def value(s, program=program):
            x = tw.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [1.0, 2.0, 3.0]], dtype=tw.float64) * (1 + s)
            return in_place.run(program, x, tw.tensor(0.75, dtype=tw.float64) * (1 + s))

        s = tw.tensor(0.0, dtype=tw.float64, requires_grad=True)
        (slope,) = tw.autograd.grad(value(s), s)
        high, low = value(1e-6).item(), value(-1e-6).item()
        assert slope.item() == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-5), in_place.describe(program)


def a_write_through_a_view_reaches_the_base(tw):
    x = _leaf(tw, 1.0, 2.0, 3.0)
    y = x * 2
    v = y[0:1]
    v.mul_(3.0)
    assert y.tolist() == [6.0, 4.0, 6.0]
    assert "CopySlices" in y.grad_fn.name()
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 2.0, 2.0]


def a_write_to_the_base_reaches_its_views(tw):
    x = _leaf(tw, 1.0, 2.0, 3.0)
    y = x * 2
    v = y[1:]
    y.mul_(x)
    v.sum().backward()
    assert x.grad.tolist() == [0.0, 8.0, 12.0]


def rows_of_a_buffer(tw):
    """A buffer that was not differentiated becomes so by a write to a part of it."""
    out, h = tw.zeros(3, 2), _leaf(tw, 1.0, 2.0)
    for t in range(3):
        out[t] = h * t
    assert out.requires_grad
    (out * out).sum().backward()
    assert h.grad.tolist() == [10.0, 20.0]


def views_of_leaves_are_protected(tw):
    x = _leaf(tw, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0].add_(1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[0] = 1.0
    with tw.no_grad():
        x[0].add_(1)
    assert x.tolist() == [2.0, 2.0]
    assert x.is_leaf


def views_made_without_recording(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    with tw.no_grad():
        v = y[0:1]
    with pytest.raises(RuntimeError, match="no_grad mode and is being modified inplace with grad mode enabled"):
        v.mul_(x[0:1])


def several_views_at_once(tw):
    y = _leaf(tw, 1.0, 2.0, 3.0, 4.0) * 2
    a, _ = y.split(2)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        a.mul_(2.0)


def expanded_views(tw):
    y = _leaf(tw, 1.0) * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        y.expand(3).mul_(2.0)


def masked_writes_to_expanded_tensors(tw):
    mask = tw.tensor([[True, False, False], [False, False, True]])
    for write in (lambda e: e.masked_fill_(mask, 0.5), lambda e: e.__setitem__(mask, 0.5)):
        y = tw.tensor([1.0, 2.0, 3.0])
        with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
            write(y.expand(2, 3))
        assert y.tolist() == [0.5, 2.0, 0.5]


def one_value_at_indices_of_expanded_tensors(tw):
    at = tw.tensor([0, 2])
    writes = [
        ("index_fill_", lambda e: e.index_fill_(0, at, 7.0), [7.0, 1.0, 7.0]),
        ("index_fill_", lambda e: e.index_fill_(1, at, 7.0), [7.0, 7.0, 7.0]),
        ("index_put_", lambda e: e.index_put_((at,), tw.tensor(7.0)), [7.0, 1.0, 7.0]),
        ("index_put_", lambda e: e.index_put_((at, at + 1), tw.tensor([7.0])), [7.0, 1.0, 7.0]),
        ("index_put_", lambda e: e.index_put_((e > 1,), tw.tensor(7.0)), [0.0, 1.0, 7.0]),
        ("index_put_", lambda e: e.__setitem__(at, 7.0), [7.0, 1.0, 7.0]),
    ]
    for name, write, expected in writes:
        y = tw.tensor([0.0, 1.0, 2.0])
        with pytest.warns(UserWarning, match=f"{name} on expanded tensors is deprecated"):
            write(y.reshape(3, 1).expand(3, 4))
        assert y.tolist() == expected


def parts_of_expanded_tensors_that_repeat_nothing(tw):
    for value in (5.0, tw.tensor([[5.0], [5.0], [5.0]])):
        y = tw.tensor([0.0, 1.0, 2.0])
        y.reshape(3, 1).expand(3, 4)[:, 1:2] = value
        assert y.tolist() == [5.0, 5.0, 5.0]


def expanded_tensors_without_elements(tw):
    for x in (tw.zeros(0), tw.zeros(0, requires_grad=True)):
        e = (x * 1).expand(2, 0)
        e.add_(1.0)
        e.copy_(tw.ones(2, 0))
        e[0] = -1.0
        e.masked_fill_(e.detach() > 0, 1.0)
        assert e.requires_grad == x.requires_grad


def a_tensor_copied_to_itself(tw):
    e = tw.tensor([1.0, 2.0]).expand(2, 2)
    assert e.copy_(e) is e
    x = _leaf(tw, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.copy_(x)
    y = x * 2
    y.copy_(y)
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 16.0]
    z = tw.tensor([3.0])
    w = _leaf(tw, 2.0)
    product = w * z
    z.copy_(z)  # counts as a write, though nothing moves
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def overwriting_what_is_saved(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 1
    z = y.exp()
    z.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def overwriting_a_part_of_what_is_saved(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 1
    z = y * y
    y[0:1].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def retained_gradients_move_along(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3.0)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]


def detached_tensors_share_memory(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    d = y.detach()
    d.zero_()
    assert y.tolist() == [0.0, 0.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def writes_through_data_are_not_checked(tw):
    x = tw.ones(2, 3, requires_grad=True)

    def slopes(write):
        x.grad = None
        y = x.exp()
        write(y)
        y.sum().backward()
        return x.grad.sum().item()

    def numbers(y):
        y.data[0] = 3.0
        y.data[1, 1:] *= 0

    def parts(y):
        y.data.view(3, 2)[0].masked_fill_(tw.ones(2) > 0, 5.0)
        y.data += 1

    assert slopes(lambda y: y.data.zero_()) == 0
    assert abs(slopes(numbers) - 9 - 2.718281828) < 1e-5
    assert abs(slopes(parts) - 16 - 4 * 2.718281828) < 1e-5
    for checked in (lambda y: y.detach().zero_(), lambda y: y.detach().add_(y.data)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            slopes(checked)
