"""Arguments, dtypes and refusals of public functions as PyTorch has them; expected values are PyTorch's."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TwingradError

F32, I64 = np.float32, np.int64


def a(*values, dtype=F32):
    return np.array(values, dtype)


#: A program of an engine and its arrays, and what it returns.
RETURNS = [
    (lambda tw, x, i: tw.gather(x, 0, i), [a(1, 2), np.zeros((2, 0), I64)], np.zeros((2, 0), F32)),
    (lambda tw, x: tw.masked.normalize(x, 0.0, 0), [np.array(-4, F32)], np.array(-4, F32)),
    (lambda tw, x: tw.masked.norm(x, 0, 0), [np.array(0, F32)], np.array(0, F32)),
    (lambda tw, x: tw.nn.functional.dropout2d(x + 1, 1.0, True, True), [np.zeros((1, 2, 1, 1), F32)],
     np.zeros((1, 2, 1, 1), F32)),
    (lambda tw, x: tw.zeros(2).add_(x).polygamma_(0), [a(1, 2)], a(-0.5772156649, 0.4227843351)),
    (lambda tw, x, w: tw.native_batch_norm(x, w, None, None, None, True, 0.1, 0.0)[1], [a([0, 1], [4, 3]), a(1, 2)],
     a(2, 2)),
    (lambda tw, x, w: tw.native_batch_norm(x, w, None, None, None, True, 0.1, 0.0)[2], [a([0, 1], [4, 3]), a(1, 2)],
     a(0.5, 1)),
    (lambda tw, x, w: tw.native_group_norm(x, w, None, 2, 2, 1, 1, 0.0)[1], [a([0, 2], [4, 6]), a(1, 2)], a([1], [5])),
    (lambda tw, x: tw.nn.functional.multilabel_margin_loss(x, tw.tensor(0)), [a(0.5)[0]], np.float32(0)),
    (lambda tw, x: tw.nn.functional.batch_norm(x, None, None, training=True), [np.zeros(0, F32)], np.zeros(0, F32)),
    (lambda tw, x: tw.nn.functional.batch_norm(x, x, x), [np.zeros(0, F32)], np.zeros(0, F32)),
    (lambda tw, x: tw.grad(lambda x: tw.masked.norm(x, 0, ()).sum())(x), [a(2, 0)], a(0, 0)),
    (lambda tw, x, g: tw.grad(lambda g: tw.nn.functional.grid_sample(x, g, "nearest", align_corners=True).sum())(g),
     [np.ones((1, 1, 2, 2), F32), np.ones((1, 1, 3, 2), F32)], np.zeros((1, 1, 3, 2), F32)),
    (lambda tw, x, y: tw.max(x, other=y), [a(1, 5), a(3, 2)], a(3, 5)),
    (lambda tw, x, y: tw.min(x, other=y), [a(1, 5), a(3, 2)], a(1, 2)),
    (lambda tw, x, y: tw.add(x, y, alpha=3), [a(True, False, dtype=bool), a(True, True, dtype=bool)],
     a(True, True, dtype=bool)),
    (lambda tw, x, y: tw.add(x, y, alpha=-2), [a(0.0), a(-(2**31), dtype=np.int32)], a(2.0**32)),
    (lambda tw, x, m, n: tw.addmm(x, m, n, beta=-1),
     [a([5], dtype=np.uint8), a([0.5]), a([2.0])], a([-4.0])),
    (lambda tw, x, w: tw.mse_loss(x, x * 0, weight=w), [a(1, 2), a(1, 3)], a(3.25)[0]),
    (lambda tw, x, w: tw.l1_loss(x, x * 0, weight=w), [a(1, 2), a(1, 3)], a(1.75)[0]),
    (lambda tw, x, w: tw.huber_loss(x, x * 0, weight=w, reduction="sum"), [a(1, 2), a(1, 3)], a(5)[0]),
    (lambda tw, x, i, v: tw.scatter_add(x, 0, i, v), [a(1, 2, 3), a(0, 0, dtype=I64), a(5, 6, 7)], a(12, 2, 3)),
    (lambda tw, x, i, v: tw.scatter_add(x, 1, i, v), [np.zeros((2, 2), F32), a([1], dtype=I64), a([4, 5])],
     a([0, 4], [0, 0])),
    (lambda tw, x, i: tw.scatter_add(x, 0, i, x), [a(False, True, dtype=bool), a(0, 0, dtype=I64)],
     a(True, True, dtype=bool)),
    (lambda tw, x, w: tw.nn.functional.linear(x, w), [a([1, 2], [3, 4]), a(5, 6)], a(17, 39)),
    (lambda tw, x: tw.topk(x, 2, 0)[1].view(-1), [a([1, 4], [2, 3], [0, 5])], a(1, 2, 0, 0, dtype=I64)),
    (lambda tw, x: tw.sort(x, 0)[1].view(-1), [a([1, 4], [2, 3])], a(0, 1, 1, 0, dtype=I64)),
    (lambda tw, x: tw.argsort(x, 0).view(-1), [a([1, 4], [2, 3])], a(0, 1, 1, 0, dtype=I64)),
    (lambda tw, x: tw.kthvalue(x, 2, 1)[1].view(-1), [a([1, 4, 2], [2, 3, 5])], a(2, 1, dtype=I64)),
    (lambda tw, x: tw.median(x, 0)[1].view(-1), [np.arange(12, dtype=F32).reshape(2, 3, 2)], np.zeros(6, I64)),
    (lambda tw, x: tw.mode(x, 0)[1].view(-1), [np.arange(12, dtype=F32).reshape(2, 3, 2)], np.zeros(6, I64)),
    (lambda tw, x: tw.squeeze(x, ()), [np.zeros((1, 2), F32)], np.zeros((1, 2), F32)),
    (lambda tw, x: tw.squeeze(x), [np.zeros((1, 2), F32)], np.zeros(2, F32)),
    (lambda tw, x: tw.repeat(x, repeats=(2,)), [a(1, 2)], a(1, 2, 1, 2)),
    (lambda tw, x: tw.split(tensor=x, split_size_or_sections=[1, 2], dim=0)[1], [a(1, 2, 3)], a(2, 3)),
    (lambda tw, x: tw.norm(x, dtype=tw.float64), [a(3, 4)], np.float64(5)),
    (lambda tw, x, y: tw.inner(x, y), [np.array(2, I64), a(3, 4)], a(6, 8)),
    (lambda tw, x, y: tw.searchsorted(x, y), [a(1, 3, dtype=I64), a(2.5, 3.0)], a(1, 1, dtype=I64)),
    (lambda tw, x: tw.searchsorted(x, 2.5), [a(1, 2, 3, dtype=I64)], I64(2)),
    (lambda tw, x: tw.cosine_similarity(x, x, 0), [a(3e38, 3e38)], a(0)[0]),
    (lambda tw, x, y: tw.cosine_similarity(x, y, 0), [a(0, 200, dtype=np.uint8), a(0, 1)], a(1)[0]),
    (lambda tw: tw.full((2,), -2, dtype=tw.uint8), [], a(254, 254, dtype=np.uint8)),
    (lambda tw: tw.full((1,), 2.7, dtype=tw.int32), [], a(2, dtype=np.int32)),
    (lambda tw: tw.arange(1.5, dtype=tw.int64), [], a(0, dtype=I64)),
    (lambda tw: tw.linspace(0.5, 5, 8, dtype=tw.uint8), [], a(0, 0, 1, 2, 2, 3, 4, 5, dtype=np.uint8)),
    (lambda tw: tw.logspace(1.5, 5, 8, dtype=tw.int64), [],
     a(10, 37, 138, 517, 1930, 7196, 26826, 100000, dtype=I64)),
    (lambda tw, x: tw.grad(lambda x: tw.as_strided(x[2:8], (2, 2), (1, 2)).square().sum())(x), [np.arange(10.0)],
     np.array([0, 0, 4, 6, 8, 10, 0, 0, 0, 0.0])),
    (lambda tw, x: tw.grad(lambda x: tw.grad(lambda x: tw.as_strided(x, (2, 2), (1, 2)).square().sum())(x)[2])(x),
     [np.arange(6.0)], np.array([0, 0, 2, 0, 0, 0.0])),
    (lambda tw, x, n: tw.segment_reduce(x, "sum", lengths=n), [np.arange(6, dtype=F32), a(2, 0, 3, 1, dtype=I64)],
     a(1, 0, 9, 5)),
    (lambda tw, x, n: tw.segment_reduce(x, "prod", lengths=n), [np.arange(6, dtype=F32), a(2, 0, 3, 1, dtype=I64)],
     a(0, 1, 24, 5)),
    (lambda tw, x, n: tw.segment_reduce(x, "max", lengths=n), [np.arange(6, dtype=F32), a(2, 0, 3, 1, dtype=I64)],
     a(1, -np.inf, 4, 5)),
    (lambda tw, x, n: tw.segment_reduce(x, "amin", lengths=n), [np.arange(6, dtype=F32), a(2, 0, 3, 1, dtype=I64)],
     a(0, np.inf, 2, 5)),
    (lambda tw, x, n: tw.segment_reduce(x, "mean", lengths=n, initial=1.5), [np.arange(6, dtype=F32),
     a(2, 0, 3, 1, dtype=I64)], a(1.25, 1.5, 3.5, 6.5)),
    (lambda tw, x, n: tw.segment_reduce(x, "sum", offsets=n), [np.arange(6, dtype=F32), a(1, 2, 2, 4, dtype=I64)],
     a(1, 0, 5)),
    (lambda tw, x, n: tw.grad(lambda x: tw.segment_reduce(x, "max", lengths=n).sum())(x), [a(1, 3, 3, 2),
     a(3, 1, dtype=I64)], a(0, 0.5, 0.5, 1)),
    (lambda tw, x, n: tw.segment_reduce(x, "sum", lengths=n, axis=1), [np.arange(6, dtype=F32).reshape(2, 3),
     a([1, 2], [2, 1], dtype=I64)], a([0, 3], [7, 5])),
    (lambda tw: tw.arange(0.0, -8.000001, -4.0, dtype=tw.int32), [], a(0, -4, -8, dtype=np.int32)),
    (lambda tw: tw.arange(0.9, 4.2, 0.9, dtype=tw.uint8), [], a(0, 0, 0, 0, dtype=np.uint8)),
    (lambda tw, x, y: tw.addbmm(x, y, y), [a([1], dtype=np.int32), np.full((3, 1, 1), 2, np.int32)],
     a([13], dtype=np.int32)),
    (lambda tw, x: tw.sum_to_size(x, ()), [np.array(3, np.int32)], np.array(3)),
    (lambda tw, x: tw.unravel_index(x, (4, 300))[1], [a(200, 100, dtype=np.uint8)], a(200, 100, dtype=I64)),
    *[(lambda tw, x, o=options: tw.nn.functional.interpolate(x, **o), [a(1, 2, 4).reshape(shape)], wanted)
      for options, shape, wanted in [
          ({"scale_factor": 1.3, "mode": "linear"}, (1, 1, 3), a([[1, 2, 4]])),
          ({"scale_factor": 1.3}, (1, 1, 3), a([[1, 1, 2]])),
          ({"scale_factor": 2.1}, (1, 1, 3), a([[1, 1, 1, 2, 2, 4]])),
          ({"scale_factor": 1.3}, (1, 1, 1, 3), a([[[1, 2, 4]]])),
          ({"scale_factor": (1, 2.1)}, (1, 1, 1, 3), a([[[1, 1, 2, 2, 4, 4]]])),
          ({"scale_factor": 1.3, "mode": "bicubic", "antialias": True}, (1, 1, 1, 3), a([[[1, 2, 4]]])),
      ]],
    (lambda tw, x: tw.nn.functional.interpolate(x, 3, mode="bilinear"), [a([[[0, 255], [255, 100]]], dtype=np.uint8)],
     a([[[0, 128, 255], [128, 153, 178], [255, 178, 100]]], dtype=np.uint8)),
    (lambda tw, x, i, v: tw.scatter(x, 0, i, v, reduce="add"), [a(1, 1, 1), a(0, 0, 1, dtype=I64), a(1, 2, 3)],
     a(4, 4, 1)),
    (lambda tw, x, i: tw.scatter(x, 0, i, 2, reduce="multiply"), [a(1, 1, 1), a(0, 0, 1, dtype=I64)], a(4, 2, 1)),
    (lambda tw, i: tw.zeros(3, dtype=tw.int64).scatter_(0, i, 1, reduce="add"), [a(0, 0, 1, dtype=I64)],
     a(2, 1, 0, dtype=I64)),
    (lambda tw, x: tw.scatter(x, 0, tw.tensor([], dtype=tw.int64), x), [a([1, 2], [3, 4])], a([1, 2], [3, 4])),
    (lambda tw, x: tw.nn.functional.lp_pool1d(x, float("inf"), 2), [a([[1, 2, -3, 0]])], a([[2, 3]])),
    (lambda tw, x: tw.softmax(x, 0, tw.float64), [np.zeros(2, F32)], a(0.5, 0.5, dtype=np.float64)),
    (lambda tw, x: tw.nn.LayerNorm(2, 1e-5, True, True, "cpu", tw.float64)(x).detach(), [np.ones(2)], np.zeros(2)),
    (lambda tw, x: tw.nn.ModuleDict(modules={"a": tw.nn.Identity()})["a"](x), [a(1, 2)], a(1, 2)),
    (lambda tw, x: tw.masked.cumsum(x, 0), [a(1, 2, dtype=np.int8)], a(1, 3, dtype=np.int8)),
    (lambda tw, x, y: tw.nn.functional.cosine_embedding_loss(x, x, y), [a([3, 4], dtype=I64), a(1, dtype=I64)],
     np.float32(0)),
    (lambda tw: tw.tril_indices(2, 2, dtype=tw.int32), [], a([0, 1, 1], [0, 0, 1], dtype=np.int32)),
]  # fmt: skip

#: A program of an engine, its arrays, the class of PyTorch's error and words of its message.
REFUSES = [
    (lambda tw, x, i: tw.nn.functional.ctc_loss(x, i, (2, 3), (1, 1)), [np.zeros((2, 2, 3), F32),
     a([1], [2], dtype=I64)], RuntimeError, "Expected input_lengths to have value at most 2, but got value 3"),
    (lambda tw, x, i: tw.nn.functional.ctc_loss(x, i, [2, 2], [1, 2]), [np.zeros((2, 2, 3), F32),
     a([1], [2], dtype=I64)], RuntimeError, "Expected target_lengths to have value at most 1, but got value 2"),
    (lambda tw, x, i: tw.nn.functional.ctc_loss(x, i, [2, 2], [1, -1]), [np.zeros((2, 2, 3), F32),
     a([1], [2], dtype=I64)], RuntimeError, "Expected target_lengths to have value at least 0, but got value -1"),
    (lambda tw, x: tw.nn.functional.batch_norm(x, None, None, training=True, eps=-1.0), [a([0, 1], [4, 3])], ValueError,
     "eps must be positive during training, but got -1.0"),
    (lambda tw, x: tw.nn.CrossEntropyLoss(ignore_index=1)(x, x), [a([0, 1], [4, 3])], RuntimeError,
     "ignore_index is not supported for floating point target"),
    (lambda tw, x: tw.nn.CircularPad1d(1)(x), [np.zeros((1, 1, 2, 2), F32)], ValueError,
     r"expected 2D or 3D input \(got 4D input\)"),
    (lambda tw, x: tw.nn.RNN(2, 1, bias=0)(x), [a([0, 1])], TypeError, "bias should be of type bool, got: int"),
    (lambda tw, x: tw.nn.LSTM(2, 1, batch_first="yes")(x), [a([0, 1])], TypeError,
     "batch_first should be of type bool, got: str"),
    (lambda tw, x, i: tw.gather(x, 0, i), [a(1, 2), np.zeros((2, 1), I64)], RuntimeError,
     "Index tensor must have the same number of dimensions"),
    (lambda tw, x, i: tw.index_add(x, 0, i, x, alpha=0.5), [a(1, 2, dtype=I64), a(0, 1, dtype=I64)], RuntimeError,
     "alpha must not be a floating point"),
    (lambda tw, x: tw.celu(x, 0), [a(1)], RuntimeError, "alpha cannot be 0 for CELU"),
    (lambda tw, i, w: tw.nn.functional.embedding(i, w), [a(0, dtype=I64), np.zeros((2, 2, 2), F32)], RuntimeError,
     "'weight' must be 2-D"),
    (lambda tw, x, w: tw.nn.functional.linear(x, w), [np.array(1, F32), a([1])], RuntimeError, "at least 1D"),
    (lambda tw, x, i, v: tw.scatter_add(x, 0, i, v), [a(1), a(0, dtype=I64), a(1, dtype=I64)], RuntimeError, "dtypes"),
    (lambda tw, x, i, v: tw.scatter_add(x, 0, i, v), [a(1), a(0, 0, dtype=I64), a(1)], RuntimeError, "no larger"),
    (lambda tw, x: tw.where(x, x, x), [a(1)], RuntimeError, "boolean tensor"),
    (lambda tw, x: tw.slice_scatter(x, x, step=0.5), [a(1)], TypeError, "'step' must be int"),
    (lambda tw, x: tw.roll(x, 1, (0,)), [np.array(1, F32)], IndexError, "no dimensions"),
    (lambda tw, x: tw.unflatten(x, 0, (1, 1)), [np.array(1, F32)], RuntimeError, "no dimensions"),
    (lambda tw, x: tw.take_along_dim(x, tw.zeros((), dtype=tw.int64), 0), [np.array(1, F32)], IndexError,
     "no dimensions"),
    (lambda tw, x, s: tw.searchsorted(x, x, sorter=s), [a(1, 2), a(0, 1, 2, dtype=I64)], RuntimeError, "sorter"),
    (lambda tw, x, y: tw.margin_ranking_loss(x, x, y), [a(1, 2), a([1])], RuntimeError, "same dimension"),
    (lambda tw, x, y: tw.soft_margin_loss(x, y), [a(1, 2), a([1], [1])], RuntimeError, "broadcast shape"),
    (lambda tw, x, w: tw.mse_loss(x, x, weight=w), [a(1, 2), a(1)], ValueError, "same size"),
    (lambda tw, x, t: tw.cross_entropy(x, t, reduction="avg"), [np.zeros((2, 0), F32), a(0, 0, dtype=I64)], ValueError,
     "not a valid value for reduction"),
    (lambda tw, x: tw.einsum("ij,jk", x), [a([1])], RuntimeError, "fewer operands"),
    (lambda tw, x: tw.add(x, x, alpha=True), [a(1, 2)], RuntimeError, "Boolean alpha only supported"),
    (lambda tw, x: tw.sub(x, x, alpha=False), [a(1, 2)], RuntimeError, "Boolean alpha only supported"),
    (lambda tw, x, i: tw.narrow(x, 0, i, 1), [a(1, 2), a(0, dtype=I64)], RuntimeError, "0-dim integral Tensor"),
    (lambda tw, x: tw.narrow(x, 0, tw.tensor(0.0), 1), [a(1, 2)], RuntimeError, "0-dim integral Tensor"),
    (lambda tw: tw.full((1,), 300, dtype=tw.uint8), [], RuntimeError, "without overflow"),
    (lambda tw: tw.full((1,), float("nan"), dtype=tw.int32), [], RuntimeError, "without overflow"),
    (lambda tw: tw.full((1,), 1e300), [], RuntimeError, "without overflow"),
    (lambda tw, x, y: tw.diff(x, prepend=y), [np.ones((2, 3)), np.ones(3)], RuntimeError, "to match that of input"),
    (lambda tw, x, y: tw.diff(x, append=y, dim=0), [np.ones((2, 3)), np.ones((2, 2))], RuntimeError, "to match that"),
    (lambda tw, x: tw.nn.functional.interpolate(x, 2, mode="area", antialias=True), [np.ones((1, 1, 4), F32)],
     ValueError, "only supported for bilinear and bicubic"),
    (lambda tw, x, n: tw.segment_reduce(x, "sum", lengths=n, axis=1), [np.ones((2, 3)), a(1, 2, dtype=I64)],
     RuntimeError, "Expected axis to be the last dimension of lengths but got 1"),
    (lambda tw, x: tw.segment_reduce(x, "sum"), [a(1)], RuntimeError, "Either lengths or offsets must be defined"),
    (lambda tw, x, n: tw.segment_reduce(x, "middle", lengths=n), [a(1), a(1, dtype=I64)], RuntimeError,
     "must be either sum, prod, mean, amax or amin, got middle"),
    (lambda tw, x, n: tw.segment_reduce(x, "sum", offsets=n), [a(1), np.zeros(0, I64)], RuntimeError, "at least one"),
    (lambda tw, x: tw.narrow(x, 0, tw.tensor(True), 1), [a(1, 2)], RuntimeError, "0-dim integral Tensor"),
    (lambda tw, x, i: tw.scatter(x, 0, i, 2, reduce="max"), [a(1), a(0, dtype=I64)], RuntimeError,
     "reduce argument must be either add or multiply"),
    (lambda tw: tw.randint(3, 1), [], TypeError, "must be tuple of ints"),
]  # fmt: skip


def ways(program, arrays):
    """The program in the eager engine, in the other one at once, and there in a trace."""
    yield lambda: program(dynamic, *map(dynamic.as_tensor, arrays))
    yield lambda: program(static, *arrays)
    yield lambda: static.function(lambda *xs: program(static, *xs))(*arrays)


@pytest.mark.parametrize(("program", "arrays", "expected"), RETURNS)
def test_returns(program, arrays, expected):
    for run in ways(program, arrays):
        found = np.asarray(run())
        assert found.dtype == expected.dtype
        assert found.tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize(("program", "arrays", "error", "words"), REFUSES)
def test_refuses(program, arrays, error, words):
    for run in ways(program, arrays):
        with pytest.raises(error, match=words) as raised:
            run()
        assert isinstance(raised.value, TwingradError)


def test_methods_have_their_own_names_and_refuse_by_them():
    x, y = dynamic.tensor([1.0, 2.0, 3.0]), dynamic.tensor([2.0, 2.0, 2.0])
    assert x.split(split_size=2)[1].tolist() == [3.0]
    assert x.max(other=y).tolist() == [2.0, 2.0, 3.0]
    for call in (lambda: x.gather(0, "a"), lambda: x.take({}), lambda: x.masked_select("a")):
        with pytest.raises(TypeError, match=r"must be Tensor, not (dict|str)"):
            call()


def test_unique_of_slices_without_elements():
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        dynamic.unique(dynamic.zeros(2, 0), dim=0)
    with pytest.raises(IndexError, match="no dimensions"):
        dynamic.unique(dynamic.tensor(1.0), dim=0)
    assert dynamic.unique(dynamic.zeros(0, 2), dim=0).shape == (0, 2)


@pytest.mark.parametrize("tw", [dynamic, static])
def test_the_statistics_of_native_norms_are_constants(tw):
    x = tw.tensor(a([0, 2], [4, 7]), requires_grad=True)
    for y, mean, rstd in (
        tw.native_layer_norm(x, [2], None, None, 1e-3), tw.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3)
    ):  # fmt: skip
        assert [z.requires_grad for z in (y, mean, rstd)] == [True, False, False]
    (g,) = tw.autograd.grad(sum(tw.native_layer_norm(x, [2], None, None, 1e-3)[0][0] * tw.tensor(a(1, 3))), x)
    # of two numbers -1, 1 about their mean: weights 1, 3, minus their mean 2, minus the part along the output
    assert np.allclose(g.numpy(), [[-1e-3 * 1.001**-1.5, 1e-3 * 1.001**-1.5], [0, 0]], atol=1e-7)


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_dropout_over_its_operand_draws_what_it_draws_elsewhere(tw, name):
    function = getattr(tw.nn.functional, name)
    x = tw.ones(*(2, 3, 4, 5, 6)[: {"dropout1d": 3, "dropout2d": 4}.get(name, 5)])
    tw.manual_seed(5)
    expected = function(x, 0.5).numpy()
    tw.manual_seed(5)
    assert function(x, 0.5, inplace=True) is x
    assert x.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("bilinear", [[4.3122, 6.4429, 9.1592], [22.6306, 28.1286, 34.2122]]),
     ("bicubic", [[2.5959, 4.5853, 7.3066], [23.5137, 29.7902, 36.7988]])],
)  # fmt: skip
def test_smaller_images_are_smoothed(mode, expected):
    x = dynamic.arange(24, dtype=dynamic.float32).reshape(1, 1, 4, 6) ** 2 / 10
    y = dynamic.nn.functional.interpolate(x, (2, 3), mode=mode, antialias=True)
    np.testing.assert_allclose(y[0, 0].numpy(), expected, atol=1e-4)
    flat = dynamic.nn.functional.interpolate(x * 0 + 1, (3, 9), mode=mode, antialias=True, align_corners=True)
    np.testing.assert_allclose(flat.numpy(), 1, rtol=1e-6)


def test_a_view_of_a_views_memory_has_the_views_gradient():
    base = dynamic.arange(10.0).requires_grad_()
    part = base[2:8]
    (slope,) = dynamic.autograd.grad((dynamic.as_strided(part, (2, 2), (1, 2)) ** 2).sum(), part)
    assert slope.tolist() == [4, 6, 8, 10, 0, 0]
    assert dynamic.as_strided(part, (2,), (1,), 0).tolist() == [0, 1]


def test_lengths_of_segments_sum_to_what_there_is():
    x = dynamic.ones(3)
    for lengths, words in (([1, 1], "they sum to 2, not 3"), ([4, -1], "negative value")):
        with pytest.raises(RuntimeError, match=words):
            dynamic.segment_reduce(x, "sum", lengths=dynamic.tensor(lengths))
    assert dynamic.segment_reduce(x, "sum", lengths=dynamic.tensor([1, 1]), unsafe=True).tolist() == [1, 1]


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_tensors_by_strides(tw):
    x = tw.empty_strided((2, 3), (1, 2), dtype=tw.float64, requires_grad=True)
    assert (x.stride(), x.dtype, x.requires_grad, x.layout) == ((1, 2), np.float64, True, tw.strided)
    assert tw.empty_permuted((2, 3, 4), (1, 0, 2)).fill_(2).sum().item() == 48
    assert tw.empty_permuted((2, 3, 4), (1, 0, 2)).stride() == (4, 8, 1)
    y = tw.zeros(1, dtype=tw.int64).new_empty_strided((2, 2), (0, 1))
    assert (y.stride(), y.dtype) == ((0, 1), np.int64)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        y.add_(1)
    for wrong in (lambda: tw.empty_strided((2,), ()), lambda: tw.empty_strided((2,), (-1,)),
                  lambda: tw.empty_permuted((2,), (0, 1)), lambda: tw.empty_permuted((2, 2), (0, 0))):  # fmt: skip
        with pytest.raises(RuntimeError):
            wrong()
