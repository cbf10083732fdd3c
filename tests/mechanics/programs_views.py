"""Views, joins, and writes that overwrite all of a tensor."""

import warnings

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def names_of_views(tw):
    x = tw.ones(2, 3, requires_grad=True) * 1
    names = {
        "Select": x[0],
        "Slice": x[1:],
        "Permute": x.permute(1, 0),
        "View": x.view(6),
        "Split": x.split(1)[0],
        "Unbind": x.unbind(0)[1],
        "Cat": tw.cat([x, x]),
        "Stack": tw.stack([x, x]),
    }
    for name, y in names.items():
        assert y.grad_fn.name() == f"{name}Backward0"
        assert y.grad_fn.next_functions[0][0] is x.grad_fn


def one_index_is_one_node(tw):
    x = tw.ones(2, 3, requires_grad=True) * 1
    assert x[0].grad_fn.next_functions[0][0] is x.grad_fn
    assert x[1:].grad_fn.next_functions[0][0] is x.grad_fn


def gradients_of_parts_are_padded(tw):
    x = tw.ones(3, 4, requires_grad=True)
    (x[1] * 2).sum().backward()
    assert x.grad.tolist() == [[0.0] * 4, [2.0] * 4, [0.0] * 4]
    x.grad = None
    (x[:, None, 1::2] * 3).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0, 0.0, 3.0]] * 3
    x.grad = None
    (x[2, 3] * x[0, 1]).backward()
    assert x.grad.sum().item() == 2.0
    assert x.grad[2, 3].item() == x.grad[0, 1].item() == 1.0


def gradients_of_gradients_of_parts(tw):
    x = _leaf(tw, 1.0, 2.0, 3.0)
    (g,) = tw.autograd.grad((x[1] ** 3 + x[0:2].sum()).sum(), x, create_graph=True)
    (gg,) = tw.autograd.grad(g[1], x)
    assert gg.tolist() == [0.0, 12.0, 0.0]


def views_of_other_shapes_in_turn(tw):
    """The same call on tensors of several shapes, dtypes and layouts."""
    for _ in range(3):
        for x in (tw.zeros(2, 3), tw.zeros(3), tw.zeros(2, 3, dtype=tw.float64), tw.zeros(3, 2).t(), tw.zeros(1, 2, 3)):
            assert tuple(x[0].shape) == tuple(x.shape[1:])
            assert x[0].dtype == x.dtype
            assert tuple(x.unsqueeze(0).shape) == (1, *x.shape)
            assert x.reshape(-1).shape[0] == x.numel()


def indices_are_checked_every_time(tw):
    x = tw.zeros(2, 3)
    for _ in range(3):
        assert x[1].shape[0] == 3
        with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 with size 2"):
            x[2]
        with pytest.raises(IndexError):
            x.select(1, 3)
        with pytest.raises(RuntimeError, match="invalid for input of size 6"):
            x.reshape(4, 2)
        with pytest.raises(ValueError, match="step must be greater than zero"):
            x[::-1]


def only_matrices_are_transposed_by_t(tw):
    assert tw.ones(2, 3).t().shape == (3, 2)
    assert tw.ones(3).t().shape == (3,)
    with pytest.raises(RuntimeError, match="expects a tensor with <= 2 dimensions, but self is 3D"):
        tw.ones(2, 3, 4).t()


def a_flat_tensor_is_flattened_already(tw):
    x = _leaf(tw, 1.0, 2.0)
    assert x.flatten() is x


def what_is_overwritten_stays_recorded(tw):
    """Its old values get zeros as their gradient."""
    for write in (lambda y: y.zero_(), lambda y: y.fill_(2.0), lambda y: y.copy_(tw.ones(2))):
        x = _leaf(tw, 1.0, 2.0)
        y = x * 3
        write(y)
        assert y.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]


def what_is_copied_gets_the_gradient(tw):
    x, w = _leaf(tw, 1.0, 2.0), _leaf(tw, 5.0, 6.0)
    y = x * 3
    y.copy_(w)
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert w.grad.tolist() == [10.0, 12.0]


def expanded_tensors_are_not_written(tw):
    y = tw.zeros(3).expand(2, 3)
    for write in (lambda: y.copy_(tw.ones(2, 3)), lambda: y.add_(1.0)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
            write()
    y.fill_(2.0)  # one value for all has no order
    assert y.tolist() == [[2.0, 2.0, 2.0]] * 2
    y.zero_()
    assert y.tolist() == [[0.0, 0.0, 0.0]] * 2


def stacked_shapes_have_to_agree(tw):
    with pytest.raises(RuntimeError, match=r"each tensor to be equal size, but got \[2\] at entry 0 and"):
        tw.stack([tw.zeros(2), tw.zeros(3)])
    with pytest.raises(IndexError, match="Dimension out of range"):
        tw.stack([tw.zeros(2), tw.zeros(2)], 2)


def empty_vectors_join_anything(tw):
    nothing, x = tw.zeros(0, dtype=tw.float64, requires_grad=True), tw.ones(2, 3, requires_grad=True)
    for dim in (0, 1, -1):
        y = tw.cat([nothing, x, nothing, x], dim)
        assert (y.dtype, list(y.shape)) == (tw.float64, [4, 3] if dim == 0 else [2, 6])
        x.grad = None
        y.sum().backward()
        assert list(nothing.grad.shape) == [0]
        assert x.grad.tolist() == [[2.0] * 3] * 2
    assert list(tw.cat([tw.zeros(0), tw.zeros(0)]).shape) == [0]
    with pytest.raises(RuntimeError, match="Tensors must have same number of dimensions: got 2 and 1"):
        tw.cat([nothing, x, tw.zeros(2)])
    with pytest.raises(RuntimeError, match=r"zero-dimensional tensor \(at position 1\) cannot be concatenated"):
        tw.cat([x, tw.tensor(1.0)])
    with pytest.raises(IndexError, match="Dimension out of range"):
        tw.cat([nothing, x], 2)


def joined_gradients_are_taken_apart(tw):
    x, y = tw.ones(2, 2, requires_grad=True), tw.ones(2, 2, requires_grad=True)
    weights = tw.arange(8.0)
    (tw.cat([x, y], 1).reshape(-1) * weights).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert y.grad.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    x.grad = y.grad = None
    (tw.stack([x, y], -1).reshape(-1) * weights).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [4.0, 6.0]]
    assert y.grad.tolist() == [[1.0, 3.0], [5.0, 7.0]]


def lists_are_keys_where_they_hold_more_than_numbers(tw):
    x = tw.arange(24.0).reshape(2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tw.equal(x[[slice(None), [0, 2]]], x[:, [0, 2]])
        assert tw.equal(x[[[0, 1, 1], [2, 0, 0]]], x[[0, 1, 1], [2, 0, 0]])
        assert tw.equal(x[[None, Ellipsis, 1]], x[None, ..., 1])
        assert tw.equal(x[[1, 0]], x.flip(0))
        x[[[0, 1], [1, 1]]] = 5
    assert x[0, 1].tolist() == x[1, 1].tolist() == [5.0] * 4


def splits_by_their_names(tw):
    x = tw.arange(12.0).reshape(3, 4).requires_grad_()
    assert [p.tolist() for p in tw.hsplit(x, 2)] == [p.tolist() for p in x.split(2, 1)]
    assert [tuple(p.shape) for p in x.hsplit([1, 3])] == [(3, 1), (3, 2), (3, 1)]
    assert [tuple(p.shape) for p in tw.vsplit(x, 3)] == [(1, 4)] * 3
    assert [tuple(p.shape) for p in x[None].dsplit(2)] == [(1, 3, 2)] * 2
    assert [tuple(p.shape) for p in x.split_with_sizes([1, 3], 1)] == [(3, 1), (3, 3)]
    for bad in (lambda: tw.hsplit(x, 3), lambda: tw.vsplit(x, 2), lambda: tw.vsplit(x[0], 2), lambda: tw.dsplit(x, 1)):
        with pytest.raises(RuntimeError, match=r"attempted to split along dimension|requires a tensor with at least"):
            bad()
    for parts in (x * 1).unsafe_split(1), (x * 1).unsafe_split_with_sizes((1, 1, 1)), (x * 1).unsafe_chunk(3):
        parts[0].mul_(parts[1])
        (g,) = tw.autograd.grad(parts[0].sum(), x)
        assert g.tolist() == [[4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0], [0.0] * 4]
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        (x * 1).split_with_sizes((1, 1, 1))[0].mul_(2)


def parts_between_indices_are_slices(tw):
    """Parts of `tensor_split`, by number or by index, may be written where those of `split` may not."""
    cuts = {
        "tensor_split": [
            lambda x: x.tensor_split(2, 1),
            lambda x: x.tensor_split([2], 1),
            lambda x: x.tensor_split(9, 1),
        ],
        "others": [lambda x: x.hsplit(2), lambda x: x.t().vsplit(2), lambda x: x[None].dsplit([1])],
    }
    for cut in (*cuts["tensor_split"], *cuts["others"]):
        x = tw.arange(8.0).reshape(2, 4).requires_grad_()
        y = x * 1
        parts = cut(y)
        parts[0].mul_(3)
        (y.sum() + parts[1].sum() + 10 * parts[0].sum()).backward()
        assert "Slice" in parts[1].grad_fn.name() or "AsStrided" in parts[1].grad_fn.name()
        assert x.grad[:, 0].tolist() == [33.0, 33.0]
        assert x.grad[:, -1].tolist() == ([2.0, 2.0] if len(parts) == 2 else [1.0, 1.0])


def ints_without_dimensions_show_the_memory(tw):
    i, j, small = tw.tensor(1), tw.tensor(0), tw.tensor(1, dtype=tw.int8)
    several = tw.tensor([1, 0])
    keys = [i, small, several[0], (i,), (i, j), (i, 0), (0, i), (slice(None), i), (..., i), (i, None), (i, slice(2)),
            (several[0], slice(1, None))]  # fmt: skip
    for _ in range(20):  # what a key comes to may be remembered
        for key in keys:
            x = tw.zeros(3, 4)
            x[key].add_(1)
            expected = tw.zeros(3, 4)
            expected[key] += 1
            assert tw.equal(x, expected)
            assert expected.sum() > 0
            tw.add(x[key], 1, out=x[key])
            assert tw.equal(x, expected * 2)
        x = tw.zeros(3, 4)
        x[i, several].add_(1)
        assert x.sum() == 0
        y = tw.zeros(3, 4, requires_grad=True) * 1
        assert (y[i]._base is y, y[i].grad_fn.name()) == (True, "SelectBackward0")
        y[i].mul_(3)
        y.sum().backward()
