"""Modules: registration, names, state, initial values."""

import copy
import pickle

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import ArgumentError, DTypeError, ShapeError, StateError, TraceError

nn = tw.nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(np.ones(2, np.float32))
        self.register_buffer("count", np.zeros((), np.int64))
        self.note = "plain"

    def forward(self, x):
        return self.body(x) * self.scale


def test_names_are_qualified_and_in_order():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "body.0.weight", "body.0.bias", "body.2.weight"]
    assert [n for n, _ in net.named_modules()] == ["", "body", "body.0", "body.1", "body.2"]
    assert [n for n, _ in net.named_buffers()] == ["count"]
    assert [type(m).__name__ for m in net.children()] == ["Sequential"]
    assert len(list(net.modules())) == 5
    assert net.body[0].weight.name == "body.0.weight"


def test_shared_parameters_are_listed_once():
    net = Net()
    net.tied = net.body[0]
    assert len(list(net.parameters())) == 4
    assert "tied.weight" in net.state_dict()


def test_attributes_behave():
    net = Net()
    net.scale = None
    assert net.scale is None
    assert "scale" not in dict(net.named_parameters())
    net.scale = nn.Parameter([1.0])
    del net.scale
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'scale'"):
        _ = net.scale
    with pytest.raises(TypeError, match="cannot assign"):
        net.body[0].weight = tw.ones(2)

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Tanh()

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()

    class Bare(nn.Module):
        def __init__(self):
            pass

    for use in (Bare.zero_grad, lambda module: [*module.parameters()], Bare.state_dict):
        with pytest.raises(AttributeError, match=r"Bare.__init__ has to call super\(\).__init__\(\) first"):
            use(Bare())
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(tw.ones(1))


def test_training_mode():
    net = Net()
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())


def test_state_dict_round_trip():
    tw.manual_seed(1)
    a = Net()
    tw.manual_seed(2)
    b = Net()
    x = np.ones((5, 3), np.float32)
    assert a(x).tolist() != b(x).tolist()
    b.load_state_dict(a.state_dict())
    assert a(x).tolist() == b(x).tolist()
    a.state_dict()["scale"][...] = 7  # no copy, as in PyTorch
    assert a.scale.tolist() == [7.0, 7.0]
    kept = copy.deepcopy(a.state_dict())
    kept["scale"][...] = 8
    assert a.scale.tolist() == [7.0, 7.0]


def test_loading_is_a_write():
    net = Net()
    loss = net(np.ones((1, 3), np.float32)).sum()
    net.load_state_dict(net.state_dict())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_state_dict_is_strict_and_changes_nothing_on_error():
    net = Net()
    before = {n: a.numpy().copy() for n, a in net.state_dict().items()}
    state = {n: a + 1 for n, a in before.items()}
    missing = dict(state)
    del missing["scale"]
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(missing)
    with pytest.raises(StateError, match="Unexpected key"):
        net.load_state_dict({**state, "other": np.zeros(1)})
    with pytest.raises(ShapeError, match=r"size mismatch for scale"):
        net.load_state_dict({**state, "scale": np.zeros(3)})
    assert all((net.state_dict()[n].numpy() == a).all() for n, a in before.items())
    net.load_state_dict(missing, strict=False)
    assert (net.state_dict()["body.0.bias"].numpy() == state["body.0.bias"]).all()


def test_zero_grad():
    net = Net()
    net(np.ones((2, 3), np.float32)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_requires_grad_switches_all():
    net = Net().requires_grad_(False)
    assert not net(np.ones((2, 3), np.float32)).requires_grad


def test_repr_is_pytorchs():
    assert repr(nn.Sequential(nn.Linear(64, 10), nn.ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=64, out_features=10, bias=True)\n  (1): ReLU()\n)"
    )


def test_sequential():
    net = nn.Sequential({"first": nn.Tanh(), "second": nn.ReLU()})
    assert [n for n, _ in net.named_children()] == ["first", "second"]
    assert len(net) == 2
    assert [type(m) for m in net] == [nn.Tanh, nn.ReLU]
    with pytest.raises(ArgumentError, match="not a Module"):
        nn.Sequential(nn.Tanh(), tw.tanh)


def test_a_list_of_modules():
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()]).extend([nn.Linear(2, 3)])
    assert [n for n, _ in layers.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [type(m) for m in layers] == [nn.Linear, nn.Tanh, nn.Linear]
    layers[-1] = nn.ReLU()
    assert type(layers[2]) is nn.ReLU
    assert len(layers) == 3
    assert [type(m) for m in layers[1:]] == [nn.Tanh, nn.ReLU]
    assert repr(layers[1:]) == "ModuleList(\n  (0): Tanh()\n  (1): ReLU()\n)"
    with pytest.raises(ArgumentError, match="not a Module"):
        layers.append(tw.tanh)
    with pytest.raises(IndexError):
        layers[3]


def test_apply_visits_children_first():
    net, seen = nn.Sequential(nn.Sequential(nn.Tanh()), nn.ReLU()), []
    assert net.apply(lambda m: seen.append(m)) is net
    assert seen == [net[0][0], net[0], net[1], net]


def test_initial_values_have_pytorchs_distributions():
    tw.manual_seed(0)
    linear, table = nn.Linear(100, 1000), nn.Embedding(1000, 50)
    w, b, e = linear.weight.numpy(), linear.bias.numpy(), table.weight.numpy()
    bound = 0.1  # 1 / sqrt(100)
    assert -bound <= w.min() < -0.0999
    assert 0.0999 < w.max() <= bound
    assert abs(w.std() - bound / np.sqrt(3)) < 1e-4
    assert np.abs(b).max() <= bound
    assert abs(e.mean()) < 0.01
    assert abs(e.std() - 1) < 0.01
    assert all(p.dtype == np.float32 for p in (*linear.parameters(), *table.parameters()))


def test_initial_values_repeat_with_the_seed():
    def weights(seed):
        tw.manual_seed(seed)
        return [p.numpy().tobytes() for p in Net().parameters()]

    assert weights(5) == weights(5)
    assert weights(5) != weights(6)


def test_layers_compute_what_they_say():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 6)).astype(np.float32)
    linear, norm, table = nn.Linear(6, 3), nn.LayerNorm(6), nn.Embedding(7, 2)
    expected = x.astype(np.float64) @ linear.weight.numpy().T.astype(np.float64) + linear.bias.numpy()
    assert np.allclose(linear(x).detach().numpy(), expected, atol=1e-6)
    assert np.allclose(linear(x.reshape(2, 2, 6)).detach().numpy(), expected.reshape(2, 2, 3), atol=1e-6)
    centred = x - x.mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    assert np.allclose(norm(x).detach().numpy(), wanted, atol=1e-5)
    index = np.array([[6, 0], [0, 3]])
    assert (table(index).detach().numpy() == table.weight.numpy()[index]).all()
    assert nn.Flatten()(x.reshape(2, 2, 6)).shape == (2, 12)


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (nn.Tanh(), tw.tanh), (nn.ReLU(), tw.relu), (nn.Sigmoid(), tw.sigmoid), (nn.GELU(), tw.gelu),
        (nn.GELU("tanh"), lambda x: tw.gelu(x, "tanh")), (nn.Softmax(1), lambda x: tw.softmax(x, 1)),
        (nn.LogSoftmax(0), lambda x: tw.log_softmax(x, 0)),
    ],
    ids=lambda x: getattr(x, "__name__", repr(x)),
)  # fmt: skip
def test_activations(module, function):
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    assert module(x).numpy().tobytes() == function(x).numpy().tobytes()


def test_losses():
    x = np.random.default_rng(2).standard_normal((3, 5)).astype(np.float32)
    target = np.array([4, 0, 2])
    p = np.exp(x.astype(np.float64))
    nll = -np.log(p / p.sum(1, keepdims=True))[np.arange(3), target]
    assert np.allclose(nn.CrossEntropyLoss()(x, target).item(), nll.mean())
    assert np.allclose(nn.CrossEntropyLoss(reduction="none")(x, target).numpy(), nll)
    assert np.allclose(nn.NLLLoss(reduction="sum")(tw.log_softmax(x, 1), target).item(), nll.sum())
    assert np.allclose(nn.MSELoss()(x, np.zeros_like(x)).item(), (x**2).mean())


def test_dropout():
    tw.manual_seed(0)
    x = np.ones(10_000, np.float32)
    drop = nn.Dropout(0.25)
    y = drop(x).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert (drop.eval()(x).numpy() == x).all()
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            nn.Dropout(p)


def test_dtypes():
    x = np.random.default_rng(0).standard_normal((2, 3))
    for net in (nn.Linear(3, 4, dtype=tw.float64), nn.Linear(3, 4).double(), nn.LayerNorm(3, dtype=tw.float64)):
        assert net(x).dtype == np.float64
        assert all(p.dtype == np.float64 for p in net.parameters())
    assert nn.Embedding(3, 2, dtype=tw.float64).weight.dtype == np.float64
    net = Net().double()
    assert (net.count.dtype, net.scale.dtype) == (np.int64, np.float64)
    assert net.float().scale.dtype == np.float32
    with pytest.raises(DTypeError, match="floating point"):
        net.to(tw.int64)


def test_parameters_copy_their_data():
    array = np.ones(2, np.float32)
    p = nn.Parameter(array)
    array[0] = 5
    assert p.tolist() == [1.0, 1.0]
    assert nn.Parameter([1.0, 2.0]).dtype == np.float32
    assert nn.Parameter(tw.ones(2)).is_leaf
    assert not nn.Parameter(np.ones(1), requires_grad=False).requires_grad
    with pytest.raises(DTypeError, match="not supported"):
        nn.Parameter(np.ones(1, np.complex64))


def test_parameters_are_not_made_in_a_trace():
    import static

    with pytest.raises(TraceError, match="make it before the traced function"):
        static.function(lambda x: nn.Parameter(x))(np.ones(2, np.float32))
    for make in (lambda: nn.LSTM(2, 3), lambda: nn.Linear(2, 3), lambda: nn.Embedding(2, 3)):
        with pytest.raises(TraceError, match=r"module with parameters .* make it before the function"):
            static.function(lambda x, make=make: make()(x))(np.ones((2, 2), np.float32))


def test_modules_can_be_copied_and_pickled():
    net = Net()
    x = np.ones((1, 3), np.float32)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net.state_dict())) and copy.deepcopy(net)):
        assert other(x).tolist() == net(x).tolist()
        assert other.scale is not net.scale
        assert other.scale.name == "scale"
    p = pickle.loads(pickle.dumps(net.scale))
    assert (p.tolist(), p.requires_grad, p.name) == ([1.0, 1.0], True, "scale")


@pytest.mark.parametrize(
    ("module", "function", "shown"),
    [
        (nn.Softplus(2, 30), lambda x: np.log1p(np.exp(2 * x)) / 2, "Softplus(beta=2, threshold=30)"),
        (nn.LogSigmoid(), lambda x: -np.log1p(np.exp(-x)), "LogSigmoid()"),
        (nn.Softsign(), lambda x: x / (1 + abs(x)), "Softsign()"),
        (nn.SiLU(), lambda x: x / (1 + np.exp(-x)), "SiLU()"),
        (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x))), "Mish()"),
        (nn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), "ELU(alpha=0.5)"),
        (nn.CELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5)), "CELU(alpha=0.5)"),
        (nn.SELU(), lambda x: 1.05070098735548 * np.where(x > 0, x, 1.67326324235437 * np.expm1(x)), "SELU()"),
        (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x), "LeakyReLU(negative_slope=0.2)"),
        (nn.Hardtanh(-1, 2), lambda x: np.clip(x, -1, 2), "Hardtanh(min_val=-1, max_val=2)"),
        (nn.ReLU6(), lambda x: np.clip(x, 0, 6), "ReLU6()"),
    ],
)
def test_activations_are_their_formulas(module, function, shown):
    x = np.linspace(-7, 7, 29)
    np.testing.assert_allclose(module(tw.tensor(x)).numpy(), function(x), rtol=1e-14, atol=1e-16)
    assert repr(module) == shown


def test_activations_at_the_ends_of_the_range():
    x = tw.tensor([-1000.0, 0.0, 1000.0], requires_grad=True)
    for function, values, slopes in (
        (tw.softplus, [0.0, 0.6931472, 1000.0], [0.0, 0.5, 1.0]),
        (tw.logsigmoid, [-1000.0, -0.6931472, 0.0], [1.0, 0.5, 0.0]),
        (tw.elu, [-1.0, 0.0, 1000.0], [0.0, 1.0, 1.0]),
        (tw.celu, [-1.0, 0.0, 1000.0], [0.0, 1.0, 1.0]),
        (tw.silu, [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        (tw.mish, [0.0, 0.0, 1000.0], [0.0, 0.6, 1.0]),
        (lambda x: tw.hardtanh(x, 0, 1000), [0.0, 0.0, 1000.0], [0.0, 0.0, 0.0]),
    ):
        y = function(x)
        (slope,) = tw.autograd.grad(y.sum(), [x], create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), values, rtol=1e-6)
        np.testing.assert_allclose(slope.detach().numpy(), slopes, rtol=1e-6)
        if slope.requires_grad:
            assert np.isfinite(tw.autograd.grad(slope.sum(), [x])[0].numpy()).all()


def test_bounds_of_hardtanh_must_not_cross():
    with pytest.raises(ArgumentError, match="min_val cannot be greater than max_val, got 1 and 0"):
        tw.hardtanh(tw.tensor([0.5]), 1, 0)


def test_a_sequence_calls_what_hangs_in_its_modules():
    """Steps of a call between two modules are left out only where nobody asks for them."""
    seen = []

    class Called(tw.nn.Identity):
        def __call__(self, *args):
            seen.append("call")
            return super().__call__(*args)

    class Arrays(tw.nn.Module):
        def forward(self, x):
            return x.numpy() + 1

    model = tw.nn.Sequential(tw.nn.Identity(), Called(), Arrays(), tw.nn.ReLU())
    x = tw.tensor([-2.0, 1.0])
    assert model(x).tolist() == [0, 2]
    model[0].register_forward_hook(lambda module, args, y: seen.append("hook") or y * 2)
    assert model(x).tolist() == [0, 3]
    handle = tw.nn.modules.module.register_module_forward_hook(lambda module, args, y: seen.append("all"))
    assert model(x).tolist() == [0, 3]
    handle.remove()
    assert seen == ["call", "hook", "call", "all", "hook", "call", "all", "all", "all", "all"]


def test_a_bias_that_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match="linear"):
        nn.functional.linear(tw.zeros(3, 4), tw.zeros(2, 4), tw.zeros(5))
    with pytest.raises(ValueError, match="cannot be multiplied"):
        nn.functional.linear(tw.zeros(3, 4), tw.zeros(2, 5), tw.zeros(2))


def test_normalisations_may_do_without_a_bias():
    x = np.random.default_rng(2).standard_normal((4, 6, 5)).astype(np.float32)
    for make in (lambda **o: nn.BatchNorm1d(6, **o), lambda **o: nn.GroupNorm(3, 6, **o)):
        layer, whole = make(bias=False), make()
        assert [name for name, _ in layer.named_parameters()] == ["weight"]
        assert layer(x).tolist() == whole(x).tolist()
        assert list(make(affine=False, bias=True).parameters()) == []


def test_the_input_of_a_layer_has_the_name_that_it_has_in_pytorch():
    x = np.ones((2, 4), np.float32)
    for layer in (
        nn.Linear(4, 4), nn.ReLU(), nn.Softmax(1), nn.LayerNorm(4), nn.RMSNorm(4), nn.GroupNorm(2, 4), nn.Flatten(),
        nn.BatchNorm1d(4), nn.Dropout(0.0), nn.Identity(), nn.PReLU(), nn.GLU(), nn.Sequential(nn.Tanh()),
    ):  # fmt: skip
        y = layer(input=x)
        assert y.tolist() == layer.eval()(x).tolist() or isinstance(layer, nn.BatchNorm1d)
    index = np.array([1, 0])
    table = nn.Embedding(3, 2)
    assert table(input=index).tolist() == table(index).tolist()


def test_dropout_of_everything():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    y = nn.Dropout(1.0)(x)
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [0.0, 0.0]
    assert nn.Dropout(1.0).eval()(x).tolist() == [1.0, 2.0]
