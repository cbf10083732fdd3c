"""Making, converting, indexing and printing tensors; random state."""

import copy
import pickle

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError, DTypeError


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"), (2, "int64"), (True, "bool"), ([1, 2.5], "float32"), ([[1], [2]], "int64"), ([], "float32"),
        (np.float64(1), "float64"), ([np.float64(1)], "float64"), (np.ones(2, np.int8), "int8"),
        (np.ones(2, ">f4"), "float32"), (np.ones(2, np.float64), "float64"),
    ],
)  # fmt: skip
def test_dtypes_of_data(data, dtype):
    t = tw.tensor(data)
    assert t.dtype == np.dtype(dtype)
    assert t.numpy().dtype.isnative
    assert tw.tensor(data, dtype=tw.float64).dtype == np.float64


def test_what_is_copied_and_what_is_shared():
    array = np.ones(2, np.float32)
    copied, shared, same = tw.tensor(array), tw.as_tensor(array), tw.from_numpy(array)
    array[0] = 5
    assert (copied.tolist(), shared.tolist(), same.tolist()) == ([1, 1], [5, 1], [5, 1])
    assert tw.as_tensor(shared) is shared
    assert tw.as_tensor(shared, dtype=tw.int64).tolist() == [5, 1]
    x = tw.tensor([1.0], requires_grad=True)
    assert tw.tensor(x).is_leaf
    assert not tw.tensor(x).requires_grad
    with pytest.raises(ArgumentError, match=r"expected np.ndarray"):
        tw.from_numpy([1.0])


def test_creation():
    assert tw.zeros(2, 3).shape == tw.zeros((2, 3)).shape == tw.ones([2, 3]).shape == (2, 3)
    assert tw.ones(2, dtype=tw.int8).dtype == np.int8
    assert tw.full((2,), True).dtype == bool
    assert tw.full((2,), 2.5, dtype=tw.float64).tolist() == [2.5, 2.5]
    assert tw.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert tw.arange(4).tolist() == [0, 1, 2, 3]
    assert tw.arange(5, -1, -2).tolist() == [5, 3, 1]
    assert tw.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75]
    assert (tw.arange(3).dtype, tw.arange(3.0).dtype, tw.arange(3, dtype=tw.int32).dtype) == (
        "int64",
        "float32",
        "int32",
    )
    x = tw.tensor([1.0, np.nan])
    assert (tw.zeros_like(x).tolist(), tw.ones_like(x).tolist()) == ([0, 0], [1, 1])


def test_arange_rounds_once():
    step = 0.1
    assert (tw.arange(0, 1, step).numpy() == (np.arange(10) * step).astype(np.float32)).all()


def test_conversions():
    x = tw.tensor([[1.5, -2.5]])
    assert (x.double().dtype, x.long().tolist(), x.bool().tolist()) == (np.float64, [[1, -2]], [[True, True]])
    assert x.to(np.float32) is x
    assert (float(tw.tensor(1.5)), int(tw.tensor(2)), bool(tw.tensor(0)), [5, 6][tw.tensor(1)]) == (1.5, 2, False, 6)
    assert np.asarray(x).tolist() == x.tolist() == [[1.5, -2.5]]
    assert (x.size(), x.size(1), x.dim(), x.numel(), len(x), x.ndim) == ((1, 2), 2, 2, 2, 1, 2)
    assert [row.tolist() for row in tw.ones(2, 1)] == [[1.0], [1.0]]
    assert tw.tensor([1, 2]).type_as(x).dtype == np.float32
    with pytest.raises(DTypeError):
        x.to(np.complex128)


def test_numpy_shares_memory():
    x = tw.zeros(2)
    x.numpy()[0] = 3
    assert x.tolist() == [3.0, 0.0]


def test_leaves_can_be_copied_and_pickled():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    view = x.detach()[0:1]
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (y.tolist(), y.requires_grad) == ([1.0, 2.0], True)
        assert not np.shares_memory(y.detach().numpy(), x.detach().numpy())
    assert copy.deepcopy(x).grad.tolist() == [2.0, 4.0]
    assert pickle.loads(pickle.dumps(view)).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
    assert tw.Tensor([1.5, 2.0]).dtype == np.float32


def test_tensors_of_one_element_are_numbers_in_lists():
    one, double, pair = tw.ones(1), tw.full((1, 1), 2.0, dtype=tw.float64), tw.ones(2)
    for make in (tw.tensor, tw.as_tensor, tw.Tensor):  # shapes and dtypes are PyTorch's
        assert [make(x).shape for x in ([one, one], [[one], [double]], [pair, pair])] == [(2,), (2, 1), (2, 2)]
    for data, dtype in (([double, 2], "float64"), ([one, 1.5], "float32"), ([one.long(), 4], "int64"),
                        ([1.0, one], "float32"), ([1, double], "float64"), ([[True], [one > 0]], "bool")):  # fmt: skip
        assert tw.tensor(data).dtype == dtype
    assert tw.tensor([[1.0, one], [double, 4]]).tolist() == [[1.0, 1.0], [2.0, 4.0]]
    with pytest.raises(ValueError, match="equally long"):
        tw.tensor([one, pair])


def test_a_tensor_of_an_array_is_float32_and_shares_only_that():
    wide, narrow = np.zeros(2), np.zeros(2, np.float32)
    a, b = tw.Tensor(wide), tw.Tensor(narrow)
    wide[0] = narrow[0] = 3.0
    assert (a.tolist(), b.tolist()) == ([0.0, 0.0], [3.0, 0.0])
    assert {tw.Tensor(x).dtype for x in (wide, np.arange(2), np.array([True]), wide.astype(">f4"))} == {tw.float32}


KEYS = [
    0,
    -1,
    slice(1, None),
    slice(None, None, 2),
    (slice(None), 1),
    (None, 0),
    (..., 2),
    (1, ..., None),
    (slice(0, 0),),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing(key):
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = tw.tensor(array, requires_grad=True)
    y = x[key]
    assert y.tolist() == array[key].tolist()
    y.sum().backward()
    expected = np.zeros_like(array)
    expected[key] = 1
    assert x.grad.tolist() == expected.tolist()


def test_operators_with_numbers_and_arrays_on_both_sides():
    x = tw.tensor([2.0, 4.0])
    array = np.float32([1.0, 2.0])
    assert [(1 - x).tolist(), (8 / x).tolist(), (2**x).tolist(), (x**2).tolist()] == [
        [-1, -3],
        [4, 2],
        [4, 16],
        [4, 16],
    ]
    assert [(array * x).tolist(), (x - array).tolist(), (array @ x).item()] == [[2, 8], [1, 2], 10.0]
    assert type(array * x) is type(np.float64(2) * x) is tw.Tensor
    assert [(-x).tolist(), abs(-x).tolist(), (x == 2).tolist(), (x != array).tolist()] == [
        [-2, -4],
        [2, 4],
        [True, False],
        [True, True],
    ]
    a, b = tw.tensor([True, False]), tw.tensor([True, True])
    assert [(a & b).tolist(), (a | b).tolist(), (a ^ b).tolist(), (~a).tolist(), (True & a).tolist()] == [
        [True, False], [True, True], [False, True], [False, True], [True, False]]  # fmt: skip


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (tw.tensor(3.0), "tensor(3.)"),
        (tw.tensor([[1.0, 2.5], [3, 4]]), "tensor([[1.0000, 2.5000],\n        [3.0000, 4.0000]])"),
        (tw.tensor([1, 2]), "tensor([1, 2])"),
        (tw.ones(2, dtype=tw.float64), "tensor([1., 1.], dtype=float64)"),
        (tw.ones(1).requires_grad_(), "tensor([1.], requires_grad=True)"),
        (tw.ones(1).requires_grad_() * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (tw.zeros(0, 3), "tensor([], size=(0, 3))"),
        (tw.tensor([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
        (tw.tensor([np.nan, np.inf]), "tensor([nan, inf])"),
    ],
)
def test_repr_is_pytorchs(tensor, text):
    assert repr(tensor) == text


def continued(first):
    """Two more numbers of the stream of seed 7."""
    state = tw.get_rng_state()
    tw.manual_seed(7)
    assert tw.rand(len(first)).tolist() == first.tolist()
    more = tw.rand(2).tolist()
    tw.set_rng_state(state)
    return more


def test_random_streams():
    tw.manual_seed(7)
    a, state, b = tw.rand(3), tw.get_rng_state(), tw.randn(2, 2)
    tw.set_rng_state(state)
    assert tw.randn(2, 2).tolist() == b.tolist()
    tw.manual_seed(7)
    assert tw.rand(5)[:3].tolist() == a.tolist()  # element i depends on the seed and on i alone
    tw.manual_seed(7)
    assert tw.rand(5).tolist() == a.tolist() + continued(a)
    own = tw.Generator(7)
    before = tw.get_rng_state().tolist()
    assert tw.rand(3, generator=own).tolist() == a.tolist()
    assert tw.get_rng_state().tolist() == before
    assert tw.rand(2, dtype=tw.float64).dtype == np.float64
    assert tw.manual_seed(-1).get_state().tolist() == [-1, 0]
    with pytest.raises(DTypeError):
        tw.rand(2, dtype=tw.int64)


def test_random_distributions():
    tw.manual_seed(0)
    u, z = tw.rand(100_000).numpy(), tw.randn(100_000).numpy()
    assert 0 <= u.min() < 1e-3 < 0.999 < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    assert abs(z.mean()) < 0.02
    assert abs(z.std() - 1) < 0.01


def test_contiguous_copies_only_what_is_out_of_order():
    x = tw.tensor(np.arange(6.0).reshape(2, 3))
    for same in (x, x[1:], x[:, :], x[1], x[:0], x.reshape(3, 2), x[:1].t()):
        assert same.contiguous() is same
    for other in (x.t(), x[:, 1:], x.expand(2, 2, 3), x[:, 0]):
        y = other.contiguous()
        assert y.tolist() == other.tolist()
        assert y.numpy().flags.c_contiguous
        assert not np.shares_memory(y.numpy(), x.numpy())
    x.requires_grad_()
    (x.t().contiguous().view(-1) * tw.tensor(np.arange(6.0))).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("engine", [tw, static], ids=lambda e: e.__name__)
def test_parameters_and_buffers_take_attributes_of_users(engine):
    layer = engine.nn.Linear(2, 2)
    layer.weight._no_weight_decay, layer.bias.group = True, "slow"
    decayed = [p for p in layer.parameters() if not getattr(p, "_no_weight_decay", False)]
    assert decayed[0] is layer.bias
    assert len(decayed) == 1
    step = engine.function(lambda x: layer(x).sum())
    step(engine.ones(3, 2)).backward()
    engine.optim.SGD(layer.parameters(), lr=0.1).step()
    layer.double()
    assert (layer.weight._no_weight_decay, layer.bias.group) == (True, "slow")
    running = engine.nn.Buffer(engine.zeros(2))
    running.kind = "mean"
    assert running.kind == "mean"
    with pytest.raises(AttributeError, match="'Parameter' object has no attribute 'grda'"):
        layer.weight.grda  # noqa: B018


@pytest.mark.parametrize("engine", [tw, static], ids=lambda e: e.__name__)
def test_numbers_of_numpy_among_pythons_decide_the_dtype_together(engine):
    for data, wanted in (
        ([np.float32(1), 2], "float32"), ([np.float32(1), 0.5], "float32"), ([np.float64(1), 2], "float64"),
        ([np.float64(1), 0.5], "float64"), ([np.int32(1), 2], "int64"), ([np.int32(1), np.int32(2)], "int32"),
        ([np.int64(1), 0.5], "float32"), ([np.float32(1), np.float64(2)], "float64"),
    ):  # fmt: skip
        assert engine.tensor(data).dtype.name == wanted, data
        assert engine.tensor(data).tolist() == [float(x) for x in data]
