"""Functions as PyTorch's users see them: the names of nodes, and between which nodes they stand."""

import pytest


def _matrix(tw):
    return tw.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]], requires_grad=True)


def _name(y):
    return y.grad_fn.name()


def views(tw):
    x = _matrix(tw)
    named = {
        "UnsqueezeBackward0": [x.unsqueeze(0), tw.unsqueeze(x, -1)],
        "SqueezeBackward0": [x[:1].squeeze(), x.squeeze()], "SqueezeBackward1": [x[:1].squeeze(0), x.squeeze(-1)],
        "SqueezeBackward2": [x[:1].squeeze((0, 1))], "TBackward0": [x.t()], "PermuteBackward0": [x.T, x.permute(1, 0)],
        "TransposeBackward0": [x.transpose(0, 1), x.mT, x.swapaxes(0, 1), tw.swapdims(x, 0, 1)],
        "ViewBackward0": [x.view(6), x.reshape(3, 2), x.flatten()], "SelectBackward0": [x[0], x.select(1, 0)],
        "SliceBackward0": [x[:1], x.narrow(1, 0, 2)], "ExpandBackward0": [x.expand(2, 2, 3)],
        "UnbindBackward0": [x.unbind()[1]], "SplitBackward0": [x.split(1)[0], x.chunk(2)[1]],
    }  # fmt: skip
    assert {name: {_name(y) for y in found} for name, found in named.items()} == {name: {name} for name in named}


def extremes_and_order(tw):
    x = _matrix(tw)
    named = {
        "MaxBackward1": x.max(), "MinBackward1": x.min(), "MaxBackward0": x.max(0).values,
        "MinBackward0": x.min(1, keepdim=True)[0], "AmaxBackward0": x.amax(0), "SortBackward0": x.sort(1)[0],
        "TopkBackward0": x.topk(2)[0], "KthvalueBackward0": x.kthvalue(2)[0], "MedianBackward0": x.median(),
        "MedianBackward1": x.median(0)[0], "CummaxBackward0": x.cummax(0)[0], "SumBackward1": x.sum((0, 1)),
    }  # fmt: skip
    assert {name: _name(y) for name, y in named.items()} == {name: name for name in named}
    assert len(x.max(0)[0].grad_fn.next_functions) == 1


def networks(tw):
    x, F = _matrix(tw), tw.nn.functional
    w, b = tw.ones(4, 3, requires_grad=True), tw.zeros(4, requires_grad=True)
    target, mask = tw.tensor([1, 2]), tw.tensor([True, False, True])
    named = {
        "AddmmBackward0": F.linear(x, w, b), "MmBackward0": F.linear(x, w), "NativeLayerNormBackward0":
        F.layer_norm(x, (3,), tw.ones(3, requires_grad=True)), "MseLossBackward0": F.mse_loss(x, tw.zeros(2, 3)),
        "NllLossBackward0": F.cross_entropy(x, target), "SmoothL1LossBackward0": F.smooth_l1_loss(x, tw.zeros(2, 3)),
        "HuberLossBackward0": F.huber_loss(x, tw.zeros(2, 3)), "MaskedFillBackward0": x.masked_fill(mask, 0.0),
        "BinaryCrossEntropyWithLogitsBackward0": F.binary_cross_entropy_with_logits(x, tw.ones(2, 3)),
        "EmbeddingBackward0": F.embedding(target, w), "MulBackward0": F.dropout(x, 0.5), "GluBackward0": F.glu(x, 0),
        "EluBackward0": F.selu(x), "LeakyReluBackward0": F.leaky_relu(x),
        "BmmBackward0": tw.bmm(x.view(1, 2, 3), x.view(1, 3, 2)), "UnsafeViewBackward0": x.view(1, 2, 3) @ w.t(),
    }  # fmt: skip
    assert {name: _name(y) for name, y in named.items()} == {name: name for name in named}
    layer = tw.nn.Linear(3, 4)
    (bias, i), (operand, j), *_ = layer(x * 1).grad_fn.next_functions
    assert (bias.variable is layer.bias, operand.name(), i, j) == (True, "MulBackward0", 0, 0)


def neighbours_are_operands_with_a_derivative(tw):
    x, F = _matrix(tw), tw.nn.functional
    count = {
        "gather": x.gather(1, tw.tensor([[0], [1]])), "where": tw.where(x > 0, x, x), "clamp": x.clamp(0, 1),
        "pow": x**2, "mul": x * 2, "masked_fill": x.masked_fill(x > 0, 1.0), "loss": F.mse_loss(x, tw.zeros(2, 3)),
    }  # fmt: skip
    found = {name: len(y.grad_fn.next_functions) for name, y in count.items()}
    assert found == {"gather": 1, "where": 2, "clamp": 1, "pow": 1, "mul": 2, "masked_fill": 1, "loss": 2}


def names_survive_a_write_to_the_base(tw):
    y = _matrix(tw) * 1
    view = y.view(6)
    y.mul_(2)
    assert _name(y) == "MulBackward0"
    assert view.grad_fn is not None


def a_choice_between_numbers_has_the_default_dtype(tw):
    condition = tw.tensor([True, False])
    for a, b, dtype in ((0.5, -1.0, tw.float32), (1, 0.5, tw.float32), (0.5, 1, tw.float32), (1, 0, tw.int64),
                        (True, False, tw.bool)):  # fmt: skip
        chosen = tw.where(condition, a, b)
        assert chosen.dtype == dtype
        assert chosen.tolist() == [a, b]
    assert tw.where(condition, tw.ones(2, dtype=tw.float64), 0.5).dtype == tw.float64


def other_names_of_arguments(tw):
    x, linalg, functional = tw.tensor([[4.0, 2.0], [2.0, 3.0]]), tw.linalg, tw.nn.functional
    assert [p.tolist() for p in tw.tensor_split(x, indices=[1])] == [[[4.0, 2.0]], [[2.0, 3.0]]]
    for parts in (x.tensor_split(sections=2, dim=1), tw.hsplit(x, sections=2), x.hsplit(indices=[1])):
        assert [p.tolist() for p in parts] == [[[4.0], [2.0]], [[2.0], [3.0]]]
    assert x.vsplit(sections=2)[1].tolist() == [[2.0, 3.0]]
    assert tw.dsplit(x.view(1, 2, 2), indices=[1])[0].shape == (1, 2, 1)
    assert tw.equal(linalg.norm(input=x), linalg.vector_norm(input=x))
    assert tw.equal(linalg.matrix_power(input=x, n=2), x @ x)
    assert tw.allclose(linalg.lstsq(input=x, b=x)[0], tw.eye(2), atol=1e-6)
    assert linalg.vecdot(x=x, y=x).tolist() == [20.0, 13.0]
    assert linalg.vander(x=tw.tensor([2, 3])).tolist() == [[1, 2], [1, 3]]
    assert tw.broadcast_to(x, size=(3, 2, 2)).shape == (3, 2, 2)
    assert tw.equal(functional.softmax(x, dim=1, _stacklevel=5), x.softmax(1))
    assert tw.equal(tw.dropout(x, 0.5, train=False), x)
    assert tw.dropout(x, p=1.0, train=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tw.asarray([1.0], requires_grad=True).requires_grad
    assert tw.asarray(x, copy=True).data_ptr() != x.data_ptr() == tw.asarray(x).data_ptr()
    assert not tw.detach(x.clone().requires_grad_() * 2).requires_grad
    assert tw.normal(tw.zeros(3), tw.tensor([1, 2, 3])).dtype == tw.float32


def elements_of_other_dtypes(tw):
    x = tw.tensor([[1.0, -2.0], [3.0, 0.0]])
    bits = x.view(tw.int32)
    assert bits.tolist() == [[0x3F800000, -0x40000000], [0x40400000, 0]]
    bits[1, 1] = 0x3F800000
    assert x[1, 1] == 1
    assert [x.view(t).shape for t in (tw.uint8, tw.int16, tw.float64)] == [(2, 8), (2, 4), (2, 1)]
    assert tw.equal(x.view(dtype=tw.uint8).view(tw.float32), x)
    assert tw.zeros(0, 4).view(tw.int16).shape == (0, 8)
    assert tw.tensor([0, 1], dtype=tw.uint8).view(tw.bool).tolist() == [False, True]
    for wrong in (lambda: x[:, :1].view(tw.float64), lambda: x.t().view(tw.int16), lambda: x[0, 0].view(tw.uint8)):
        with pytest.raises(RuntimeError, match=r"self\.(size|stride)\(-1\)|self.dim\(\) cannot be 0"):
            wrong()


def outer_products_of_two_dtypes(tw):
    t, frequencies = tw.arange(3), tw.tensor([0.5, 0.25])
    angles = tw.einsum("i,j->ij", t, frequencies)
    assert angles.dtype == tw.float32
    assert angles.tolist() == [[0.0, 0.0], [0.5, 0.25], [1.0, 0.5]]
    assert tw.einsum("i,i->i", t[:2], frequencies).tolist() == [0.0, 0.25]
    with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
        tw.einsum("i,i->", t[:2], frequencies)


def empty_indices_of_another_rank_change_nothing(tw):
    none, src = tw.tensor([], dtype=tw.int64), tw.full((2, 2), 3.0)
    for write in (lambda d: tw.scatter(d, 0, none, src), lambda d: d.scatter_(0, none, src),
                  lambda d: d.scatter_(0, none, 1.0), lambda d: d.scatter_(0, none, 2.0, reduce="multiply"),
                  lambda d: d.scatter_add_(0, none, src), lambda d: tw.scatter_add(d, 1, none, src),
                  lambda d: d.scatter_reduce(0, none, src, "sum"),
                  lambda d: d.scatter_reduce_(1, none, src, "mean", include_self=False)):  # fmt: skip
        assert write(tw.ones(2, 2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def nothing_to_solve_and_nothing_to_move(tw):
    a = tw.tensor([[4.0, 2.0], [2.0, 3.0], [1.0, 0.0]])
    for driver in ("gels", "gelsy"):
        assert tw.linalg.lstsq(a, tw.zeros(3, 0), driver=driver).solution.shape == (2, 0)
    layer = tw.nn.Linear(2, 3)
    assert layer.to_empty(device="cpu") is layer
    assert layer.weight.shape == (3, 2)
